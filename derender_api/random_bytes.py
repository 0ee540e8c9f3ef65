"""Random bytes for names that must not occur twice, but need not be hard to guess: IDs of requests and calls.

The system's generator costs a call into the kernel, which is a part of every small request.
"""

import os
from random import Random

_random = Random()
os.register_at_fork(after_in_child=_random.seed)

random_bytes = _random.randbytes
"""`random_bytes(size)`: so many bytes. Forked processes draw different ones."""
