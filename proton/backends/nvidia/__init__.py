"""The NVIDIA back end: from tile IR to a cubin, with no GPU and no driver."""
