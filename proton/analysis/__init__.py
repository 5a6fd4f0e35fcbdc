"""Analyses: they answer with frozen results and never edit IR."""
