"""Transforms: the same dialects in and out, one pass a file."""
