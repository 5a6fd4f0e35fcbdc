"""Clusters of blocks of threads. A program runs in one block."""

from proton.language.function import builtin


@builtin
def barrier(relaxed=False):
    """All threads of the cluster arrive before any goes on."""
