"""`import proton.profiler.language as pl`: the profiling ops of kernels, by Triton's names."""

from proton.base.errors import ProfileError
from proton.language.profiling import Event as Event
from proton.language.profiling import allocate_event as allocate_event
from proton.language.profiling import end_event as end_event
from proton.language.profiling import enter_scope as enter_scope
from proton.language.profiling import exit_scope as exit_scope
from proton.language.profiling import mark as mark
from proton.language.profiling import scope as scope
from proton.language.profiling import start_event as start_event


def enable_semantic(name: str) -> None:
    """Triton needs this before kernels in its language may have scopes. Here they always may.

    Raises ProfileError for another language (Gluon).
    """
    _check(name)


def disable_semantic(name: str) -> None:
    """The opposite, which means nothing, either: without a session scopes leave no code."""
    _check(name)


def _check(name: str) -> None:
    if name != "triton":
        raise ProfileError(
            f"the language of kernels is 'triton', got {name!r}; there is no other yet"
        )
