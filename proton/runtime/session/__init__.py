"""Sessions: what is recorded while kernels run."""
