"""Facts of the GPUs that code is compiled for: `chip.py` says which, a file for each vendor what
they are. A new chip is an entry of its vendor's table."""
