"""Passes on buffers and loops, for CPUs."""
