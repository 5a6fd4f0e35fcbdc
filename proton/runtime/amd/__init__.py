"""AMD's GPUs at run time: none is ever found. Kernels are compiled for them, and not launched."""
