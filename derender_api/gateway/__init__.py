"""The whole loop in one call: render, generate on an engine, derender.

`views.py` answers `/v1/chat/completions` and `/v1/completions` where a model has engines; `chat.py` and `completion.py`
tell the story, `engines.py` chooses and calls the engine, `events.py` reads and writes server-sent events.
"""
