"""Launch options: what keywords beside the arguments of a kernel ask for, `num_warps=8`."""

from collections.abc import Sequence

from proton.language import types as ty
from proton.language.ir_text import IRText
from proton.runtime.backend import backends
from proton.runtime.launch.arguments import Parameter
from proton.runtime.launch.interface import Named, Values


def launch_options() -> tuple[str, ...]:
    """What launches may ask for, on any back end: the others accept it, and it means nothing."""
    return tuple(dict.fromkeys(name for backend in backends() for name in backend.options))


class LaunchOptions:
    """The options of the launches of one kernel. A constant of the kernel of such a name is both,
    as in Triton: its value is an argument and the option."""

    def __init__(self, params: Sequence[Parameter]) -> None:
        names = launch_options()
        known = {parameter.name for parameter in params}
        self.keywords = tuple(name for name in names if name not in known)
        self.constants = {p.name: p.num for p in params if p.constexpr and p.name in names}
        self._keywords = frozenset(self.keywords)

    def of(self, bound: Values, kwargs: Named) -> Named:
        """Those of a launch with these arguments, in order, and keywords."""
        chosen: Named = {}
        if not self._keywords.isdisjoint(kwargs):
            chosen = {name: kwargs[name] for name in self.keywords if name in kwargs}
        for name, position in self.constants.items():
            chosen[name] = ty.unwrap(bound[position])
        if chosen.get("ir_override") is not None:  # a file may be another one at each launch
            chosen["ir_override"] = IRText.read(chosen["ir_override"])
        return chosen
