"""Passes on tiles, for every target: no layouts, no buffers."""
