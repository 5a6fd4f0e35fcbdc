"""Which configuration of a kernel is the fastest."""
