"""Whether the present thread is one that must not wait."""

import asyncio


def on_event_loop() -> bool:
    """Whether an event loop runs in this thread, which a database or a lock must not hold up."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
