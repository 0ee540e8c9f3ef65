"""What can go wrong in the core, and whose fault it is."""


class ParserError(Exception):
    """Base of everything the core raises on purpose."""


class ParserConfigurationError(ParserError):
    """The operator's fault: an unknown format, or a tokenizer that lacks what a format needs. Raised at start-up."""


class UnsupportedRequestError(ParserError):
    """The caller's fault: this request cannot be parsed with the configured formats and tokenizer."""


class InvalidSnapshotError(ParserError):
    """The caller's fault: a snapshot that this parser did not write."""
