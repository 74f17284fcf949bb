# Generated from hoplake/_async by generate_sync.py: change it there.
