"""Tiles to the code of one thread, on any GPU."""
