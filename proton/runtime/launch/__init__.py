"""From a call of a kernel to the launch of its code."""
