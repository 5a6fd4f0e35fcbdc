"""`@proton.heuristics`: constants of a kernel that follow from its other arguments."""

from collections.abc import Callable
from typing import Any

from proton.base.errors import LaunchError
from proton.base.tracebacks import boundary
from proton.base.words import did_you_mean, shown
from proton.compiler import Request
from proton.runtime.launch.decorated import Decorated


class Heuristics(Decorated):
    """Gives parameters, and options of the launch, the values of functions of the arguments, in the
    order of `values`."""

    def __init__(self, fn: Any, values: dict[str, Callable[[dict[str, Any]], Any]]) -> None:
        super().__init__(fn, "proton.heuristics")
        for name, function in values.items():
            known = (*self.arg_names, *self.kernel.options) if self.kernel else (name,)
            if name not in known:
                guess = did_you_mean(name, known)
                raise ValueError(
                    f"heuristics: {self.__name__} has no parameter {shown(name)}{guess}"
                )
            if not callable(function):
                raise TypeError(
                    f"heuristics: {name} must be a function of the arguments by name, such as "
                    f"lambda args: args['n'] % 16 == 0, got {shown(function)}"
                )
        self.values = dict(values)
        parameters = self.kernel.signature.parameters.values() if self.kernel else ()
        self.defaults = {p.name: p.default for p in parameters if p.default is not p.empty}

    @boundary
    def launch(self, grid: object, /, *args: object, **kwargs: object) -> Any:
        return self._launch_inner(grid, args, self._completed(args, kwargs))

    @boundary
    def warmup(self, /, *args: object, **kwargs: object) -> Any:
        return self._warm_inner(args, self._completed(args, kwargs))

    def request(self, /, *args: object, **kwargs: object) -> Request | None:
        return self._inner_request(args, self._completed(args, kwargs))

    def _completed(self, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, Any]:
        """The keywords, with what the functions say, also in the place of what was given. torch
        traces this in graphs, and has to understand it."""
        known = _Known(self.__name__, self.defaults | self.named(args, kwargs))
        for name, function in self.values.items():
            known[name] = function(known)
        return kwargs | {name: known[name] for name in self.values}


class _Known(dict[str, Any]):
    """The arguments of a launch, those with defaults included."""

    def __init__(self, kernel: str, given: dict[str, Any]) -> None:
        super().__init__(given)
        self.kernel = kernel

    def __missing__(self, name: object) -> Any:
        guess = did_you_mean(name, self) or f"; there are {', '.join(self) or 'none'}"
        raise LaunchError(
            f"a heuristic of {self.kernel} asks for {shown(name)}, which it is not "
            f"given{guess}. What autotune chooses is known to heuristics below it"
        )


def heuristics(
    values: dict[str, Callable[[dict[str, object]], object]],
) -> Callable[[object], Heuristics]:
    """Computes parameters of a kernel at each launch, by functions of the arguments by name:
    `@proton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})`."""
    return lambda fn: Heuristics(fn, values)
