"""Launching: arguments, grids, threads, sessions."""
