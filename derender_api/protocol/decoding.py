"""Body bytes to a validated wire model, in one pass where the body is valid.

The shape (one-shot or streaming) is guessed from the bytes and validated straight from them. Only what fails that way
is read again with the rules of Python's json module (protocol 2), which also words the errors.
"""

import codecs
import json
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from derender_api.exceptions import InvalidJson, SchemaViolation

STREAM_MARK = b'"generate_chunk"'
BULK_KEY = "generate_chunks"
BULK_MARK = b'"generate_chunks"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """The shapes of a derender body; `*_label` is what vLLM calls its two in the `param` of a schema error.

    `bulk` is the streaming shape with several chunks.
    """

    oneshot: type[BaseModel]
    streaming: type[BaseModel]
    bulk: type[BaseModel]
    oneshot_label: str
    streaming_label: str


def decode_shaped(body: bytes, shapes: Shapes) -> BaseModel:
    """The request in `body`, of the shape that its `stream` selects.

    Raises InvalidJson, SchemaViolation or RequestRuleViolation.
    """
    guess = shapes.streaming if STREAM_MARK in body else shapes.bulk if BULK_MARK in body else shapes.oneshot
    try:
        return guess.model_validate_json(body)
    except ValidationError:
        content = read_json(body)
    is_streaming = isinstance(content, dict) and _is_true(content.get("stream", False))
    model = shapes.streaming if is_streaming else shapes.oneshot
    if is_streaming and BULK_KEY in content and "generate_chunk" not in content:
        model = shapes.bulk
    return validate(content, model, label=shapes.streaming_label if is_streaming else shapes.oneshot_label)


def decode_one_of(
    body: bytes, model: type[BaseModel], other: type[BaseModel] | None = None, *, key: str = ""
) -> BaseModel:
    """The request in `body`: an `other` if it is an object with `key`, else a `model`.

    Raises InvalidJson or SchemaViolation.
    """
    content = read_json(body)
    if other is not None and isinstance(content, dict) and key in content:
        return validate(content, other)
    return validate(content, model)


def validate(content: Any, model: type[BaseModel], *, label: str = "") -> BaseModel:
    """`content` as a `model`; raises SchemaViolation with every error found."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise SchemaViolation.from_errors(error.errors(include_url=False), label=label) from error
    except RecursionError as error:
        raise InvalidJson("too deeply nested") from error


def read_json(body: bytes) -> Any:
    """`body` as Python's json module reads it; raises InvalidJson."""
    if not body:
        return None
    try:
        return json.loads(body.removeprefix(codecs.BOM_UTF8))
    except json.JSONDecodeError as error:
        raise InvalidJson(error.msg, position=error.pos) from error
    except RecursionError as error:
        raise InvalidJson("too deeply nested") from error
    except ValueError as error:  # not UTF-8, or an integer of thousands of digits
        raise InvalidJson(str(error)) from error


def _is_true(value: Any) -> bool:
    """Whether `stream` selects the streaming shape; 1 counts as true (protocol 2.1)."""
    return isinstance(value, (bool, int, float)) and value == 1
