"""The sans-IO parser core: a plain library without Django, transformers or the wire models.

Read `events.py` (the vocabulary), `parser.py` (one stream from token IDs to deltas) and `stage.py` (what a format
implements).
"""
