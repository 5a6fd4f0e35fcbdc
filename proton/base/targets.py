"""What code is generated for."""

from dataclasses import dataclass

from proton.base.errors import ProtonError


@dataclass(frozen=True)
class Target:
    """A back end and the machine behind it; `str(target)` is its short name."""

    backend: str
    arch: str = ""

    def __str__(self) -> str:
        return f"{self.backend}:{self.arch}" if self.arch else self.backend


CPU = Target("cpu")


def parse_target(text: str) -> Target:
    """The target that a name like "cpu" stands for."""
    backend, _, arch = text.partition(":")
    if backend != "cpu":
        raise ProtonError(f"target {text!r} is not supported yet; there is: cpu")
    return Target(backend, arch)
