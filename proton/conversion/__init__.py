"""Conversions between dialects: `a_to_b`, one a file."""
