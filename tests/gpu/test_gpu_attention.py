"""tests/cpu/test_attention.py, on the GPU: what is not of fp32, which is rounded there."""

from tests.cpu.test_attention import test_float8  # noqa: F401

STAGED = True
