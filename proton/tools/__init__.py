"""Commands for those who work on the compiler, and what Triton has under this name."""
