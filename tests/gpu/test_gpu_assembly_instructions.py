"""tests/cpu/test_assembly_instructions.py on the GPU: what the reference says is what it does."""

from tests.cpu.test_assembly_instructions import *  # noqa: F403

STAGED = True
