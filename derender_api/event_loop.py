"""Whether the present thread is one that must not wait."""

import asyncio


def on_event_loop() -> bool:
    """Whether an event loop runs in this thread, which a database or a lock must not hold up."""
    return asyncio._get_running_loop() is not None
