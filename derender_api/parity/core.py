"""Streams from the parser core alone: what the service does with a chunk, without HTTP and without replaying.

The self rule needs hundreds of groupings per output; here each costs what its tokens cost. Groupings by size are
answered twice, by one parser and by parsers restored from a JSON snapshot at every boundary; two-way splits by restored
ones only.
"""

import json

from derender_api.loaded_model import LoadedModel
from parsers.configuration import ModelConfigurationError
from parsers.registry import reasoning_formats, tool_formats

_JSON = json.JSONEncoder(separators=(",", ":"))


def load(model: LoadedModel) -> str | None:
    """Load a model; why it cannot be run, None where it can.

    "not built: ..." where it names a parser that this build has not.
    """
    configuration = model.configuration
    missing = [
        f"{kind} parser {name}"
        for kind, name, known in (
            ("tool", configuration.active_tool_parser, tool_formats()),
            ("reasoning", configuration.reasoning_parser, reasoning_formats()),
        )
        if name and name not in known
    ]
    if missing:
        return f"not built: {', '.join(missing)}"
    try:
        model.load()
    except ModelConfigurationError as error:
        return f"cannot start: {error}"
    return None
