"""flag-gems' operators, each with the samples that torch has for its own operators.

flag-gems has a table of torch's operators and its functions in their place. Here torch's samples
(`op_db`) run through torch while what reaches the operators of that table is noted; then the
function of flag-gems gets the same arguments.
"""

import contextlib
import functools
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
from gems_samples import LIBRARYS_OWN, SAMPLES, SYNONYMS, Call
from library_results import Wrong, compare, compare_kinds
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from proton.base.errors import ProtonError

DTYPES = (torch.float32, torch.int64, torch.float16)
# Their results are random: only shapes and types are compared.
RANDOM = ("bernoulli", "dropout", "exponential", "multinomial", "normal", "rand", "uniform")
MOST_ELEMENTS = 1 << 16
SAMPLES_OF_ONE = 6  # of torch's samples of an operator and a dtype, how many are looked at


def checks(samples: int) -> dict[str, Callable[[], int]]:
    """A check of each operator, by its name in torch."""
    gems = _flag_gems()
    _database()  # before processes are forked
    found = {}
    for name, function, *when in gems._FULL_CONFIG:
        if (not when or when[0]()) and _operator(name) is not None:
            found[name] = functools.partial(_check, name, function, samples)
    return found


def _flag_gems() -> types.ModuleType:
    """The library, told that the CPU is a device of a vendor that it knows ("arm" has a folder, and
    is missing in the list of vendors)."""
    os.environ["GEMS_VENDOR"] = "arm"
    torch.cpu.device = _Device  # type: ignore[attr-defined]
    torch.cpu.default_generators = [_Generator()]  # type: ignore[attr-defined]
    torch.Tensor.is_cuda = property(_is_cuda)  # type: ignore[assignment]
    torch.cpu.current_device = lambda: 0  # type: ignore[assignment,return-value]
    torch.cpu.get_device_properties = lambda device=None: types.SimpleNamespace(  # type: ignore[attr-defined]
        name="cpu", major=9, minor=0, multi_processor_count=os.cpu_count(), L2_cache_size=1 << 25
    )
    package = importlib.util.find_spec("flag_gems")
    assert package is not None
    assert package.submodule_search_locations is not None
    file = f"{package.submodule_search_locations[0]}/runtime/common.py"
    spec = importlib.util.spec_from_file_location("flag_gems.runtime.common", file)
    assert spec is not None
    assert spec.loader is not None
    common = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(common)
    known = common.vendors.get_all_vendors()
    common.vendors.get_all_vendors = classmethod(lambda _: known | {"arm": common.vendors.NVIDIA})
    sys.modules[spec.name] = common
    with contextlib.redirect_stdout(sys.stderr):
        import flag_gems
    return flag_gems


def _is_cuda(tensor: torch.Tensor) -> bool:
    """Tells the library that tensors are where it wants them: some operators ask."""
    asks: str = sys._getframe(1).f_globals.get("__name__", "")
    return asks.startswith("flag_gems.") or bool(_IS_CUDA.__get__(tensor))


_IS_CUDA: Any = torch.Tensor.is_cuda


class _Generator:
    """A generator of Philox's numbers, as torch has them on GPUs."""

    def __init__(self) -> None:
        self.state = torch.tensor([12345, 0]).view(torch.uint8)

    def get_state(self) -> torch.Tensor:
        return self.state.clone()

    def set_state(self, state: torch.Tensor) -> None:
        self.state = state


class _Device(contextlib.nullcontext):  # type: ignore[type-arg]
    def __init__(self, device: Any = None) -> None:
        super().__init__(device)


def _check(name: str, function: Callable[..., Any], samples: int) -> int:
    """Compares an operator on some samples; how many. A sample that the library does not take is
    none, unless there is no other."""
    operator, done, problems = _operator(name), 0, list[Exception]()
    for args, kwargs in _calls(name, operator, samples):
        try:
            done += _compare_one(name, operator, function, args, kwargs)
        except (Wrong, ProtonError):
            if name not in LIBRARYS_OWN:
                raise
            problems.append(ValueError(LIBRARYS_OWN[name]))
        except Exception as problem:
            if isinstance(problem.__context__, ProtonError):
                raise
            problems.append(problem)
    if problems and not done:
        raise problems[0]
    return done


def _compare_one(
    name: str, operator: Any, function: Callable[..., Any], args: Any, kwargs: Any
) -> int:
    """1, or 0 for a sample of an error; raises what the library's function does."""
    ours, theirs = _copied((args, kwargs)), _copied((args, kwargs))
    torch.manual_seed(0)
    try:
        expected = operator(*theirs[0], **theirs[1])
    except RuntimeError:
        return 0
    what = f"{name}({_shown(args, kwargs)})"
    try:
        found = function(*ours[0], **ours[1])
    except Exception as problem:
        problem.args = (f"{what}: {problem}",)
        raise
    compare_kinds(found, expected, what)
    if any(part in name for part in RANDOM):
        return 1
    if (why := LIBRARYS_OWN.get(name)) is not None:
        with contextlib.suppress(Wrong):
            compare(found, expected, what)
            return 1
        raise ValueError(f"{what}: {why}")
    compare(found, expected, what)
    compare(_tensors(ours), _tensors(theirs), f"{what}, the arguments afterwards")
    return 1


def _operator(name: str) -> Any:
    """torch's operator; None where it has none of this name."""
    base, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, base, None)
    if packet is None or overload:
        return getattr(packet, overload, None)
    return packet.default if "default" in packet.overloads() else packet


def _calls(name: str, operator: Any, samples: int) -> list[Call]:
    """Arguments of an operator: what reaches it where torch's samples run, else the samples of the
    operator of its name, as they are or with numbers in the place of tensors; or our own."""
    found: list[Call] = []
    with _Noting(operator) as noting:
        for kind, sample in _samples(name):
            args = (sample.input, *sample.args)
            with contextlib.suppress(Exception):
                result = kind.op(*_copied(args), **_copied(sample.kwargs))
                if "backward" in name:
                    _backward(result)
            if name.partition(".")[0].endswith("_") and kind.inplace_variant is not None:
                with contextlib.suppress(Exception):
                    kind.inplace_variant(*_copied(args), **_copied(sample.kwargs))
    found = noting.calls or list(_direct(name, operator)) or SAMPLES.get(name, list)()
    return _spread(found, samples)


def _direct(name: str, operator: Any) -> Iterator[Call]:
    """Calls of an operator with the arguments of torch's samples."""
    for _, sample in _samples(name):
        args, kwargs = (sample.input, *sample.args), dict(sample.kwargs)
        if not _is_plain((args, kwargs)):
            continue
        for call in _variants(args, kwargs):
            with contextlib.suppress(Exception):
                result = operator(*_copied(call[0]), **_copied(call[1]))
                if name.endswith("out") and "out" not in call[1]:
                    raise ValueError
                del result
                yield call
                break


def _variants(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Call]:
    """A call, and like it: with a number for one of its tensors, with a tensor for the result."""
    yield args, kwargs
    for place, tensor in enumerate(args):
        if isinstance(tensor, torch.Tensor):
            number = tensor.flatten()[0].item()
            yield (*args[:place], number, *args[place + 1 :]), kwargs
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    if tensors:
        with contextlib.suppress(RuntimeError):
            shape = torch.broadcast_shapes(*[tensor.shape for tensor in tensors])
            yield args, kwargs | {"out": torch.zeros(shape, dtype=tensors[0].dtype)}


def _backward(result: Any) -> None:
    """Runs the gradients of a result."""
    outputs = [tensor for tensor in _tensors(result) if tensor.requires_grad]
    sum(torch.sin(tensor).sum() for tensor in outputs).backward()  # type: ignore[union-attr]


def _spread(calls: list[Call], count: int) -> list[Call]:
    """Some of them, from the first to the last; scalars only where there is nothing else."""
    calls = [call for call in calls if any(t.dim() for t in _tensors(call))] or calls
    step = max(1, len(calls) // count)
    return calls[::step][:count]


@functools.cache
def _database() -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


def _samples(name: str) -> Iterator[tuple[Any, Any]]:
    """torch's samples of operators that may reach this one: (their kind, sample)."""
    base = name.partition(".")[0].strip("_")
    short = base.removeprefix("native_").removeprefix("special_").removeprefix("linalg_")
    stem = short.removesuffix("_backward").removesuffix("_backward_data").removesuffix("_forward")
    wanted = {base, short, stem, stem.removesuffix("_nd"), stem.removesuffix("2d")}
    wanted |= {SYNONYMS.get(name, name) for name in wanted}
    for kind in _database():
        last = kind.name.rpartition(".")[2]
        names = {last, kind.name, kind.aten_name, *[alias.name for alias in kind.aliases]}
        if not wanted & names:
            continue
        grad = "backward" in name and kind.supports_autograd
        for dtype in DTYPES:
            if dtype not in kind.supported_dtypes("cpu") & kind.supported_dtypes("cuda"):
                continue
            with contextlib.suppress(Exception):
                for number, sample in enumerate(kind.sample_inputs("cpu", dtype, grad)):
                    if number >= SAMPLES_OF_ONE:
                        break
                    yield kind, sample


class _Noting(TorchDispatchMode):
    """Notes the arguments with which an operator is called."""

    def __init__(self, operator: Any) -> None:
        super().__init__()
        self.operator, self.calls = operator, list[Call]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func == self.operator and _is_plain((args, kwargs)):
            with torch.no_grad():
                copies = tree_map_only(torch.Tensor, torch.Tensor.detach, (args, kwargs or {}))
            self.calls.append(_copied(copies))
        return func(*args, **(kwargs or {}))


def _is_plain(args: Any) -> bool:
    """Neither large nor empty nor sparse, nor of a type that the library does not take."""
    tensors = _tensors(args)
    if any(tensor.layout != torch.strided for tensor in tensors):
        return False
    return all(0 < t.numel() <= MOST_ELEMENTS and t.dtype in (*DTYPES, torch.bool) for t in tensors)


def _copied(value: Any) -> Any:
    """The value with tensors of its own, whose strides are the same."""
    return tree_map_only(torch.Tensor, _copy, value)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach()
    copy = plain.clone()
    if not plain.is_contiguous() and 0 not in plain.stride():
        copy = torch.empty_strided(plain.shape, plain.stride(), dtype=plain.dtype).copy_(plain)
    return copy.requires_grad_(tensor.requires_grad)


def _tensors(value: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    tree_map_only(torch.Tensor, found.append, value)
    return found


def _shown(args: Any, kwargs: Any) -> str:
    """The arguments as text: of tensors their types and shapes."""
    shown = tree_map_only(
        torch.Tensor, lambda t: f"{str(t.dtype).removeprefix('torch.')}{[*t.shape]}", args
    )
    parts = [str(arg) for arg in shown] + [
        f"{name}={_shown((value,), {})}" for name, value in kwargs.items()
    ]
    return ", ".join(parts)
