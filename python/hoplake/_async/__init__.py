"""The calls, as they are written. ``_sync`` is generated from this folder by ``python/generate_sync.py``."""
