"""Launching on NVIDIA GPUs, and fetching what their kernels record."""
