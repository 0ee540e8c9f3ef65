"""One file per family of output formats; each opens with a sample of the wire text."""
