"""Tests that need Redis, left out where it is not installed (tests/redis_servers.py)."""

from tests import redis_servers

collect_ignore_glob = [] if redis_servers.is_tested() else ["test_*.py"]
