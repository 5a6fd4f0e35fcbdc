"""What only NVIDIA's GPUs have: their instructions, barriers, tensor cores and libraries."""
