"""Launching on the CPU."""
