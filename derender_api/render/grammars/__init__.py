"""Grammars of tool calls per family: what the engine may write where the request forces or guards its calls."""
