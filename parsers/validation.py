"""The checks that a configuration must pass before it is served, wherever it comes from.

What needs a tokenizer lives in the HTTP layer, above this package; `settings.DERENDER["MODEL_VALIDATORS"]` names those
checks by dotted path.
"""

from django.conf import settings
from django.utils.module_loading import import_string

from parsers.configuration import ModelConfiguration


def validate_configuration(configuration: ModelConfiguration) -> None:
    """Run every configured validator; the first that fails raises ModelConfigurationError."""
    for dotted_path in getattr(settings, "DERENDER", {}).get("MODEL_VALIDATORS", ()):
        import_string(dotted_path)(configuration)
