"""What tests of kernels that were written for Triton share: dtypes by name, random arrays, arrays
to tensors of torch and back, questions about the device.

The names are those of `triton._internal_testing`; what needs torch or pytest imports it when it is
asked for.
"""

import contextlib
import importlib
import multiprocessing
import os
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from proton import language as tl
from proton.base.foreign_knobs import FOREIGN
from proton.base.knobs import KNOBS, knobs, set_environment
from proton.base.targets import GPUTarget, Target
from proton.compat.triton import install_as_triton
from proton.language.types import dtype
from proton.runtime.driver import active
from proton.runtime.launch.arguments import type_canonicalisation_dict
from proton.runtime.launch.reinterpret import TensorWrapper, reinterpret

int_dtypes = ["int8", "int16", "int32", "int64"]
uint_dtypes = ["uint8", "uint16", "uint32", "uint64"]
integral_dtypes = int_dtypes + uint_dtypes
float_dtypes = ["float16", "float32", "float64"]
float_dtypes_with_bfloat16 = [*float_dtypes, "bfloat16"]
dtypes = integral_dtypes + float_dtypes
dtypes_with_bfloat16 = [*dtypes, "bfloat16"]
torch_float8_dtypes = ["float8_e4m3fn", "float8_e5m2"]
torch_dtypes = ["bool", *int_dtypes, "uint8", *float_dtypes, "bfloat16"]
tma_dtypes = sorted(set(dtypes_with_bfloat16) - {"int64", "uint64", "float64"})

_SEED = 17  # of random arrays: every call gives the same, unless it brings its own state
_FLOAT8_CODES = 20, 40  # of random 8-bit floats: none is infinite, or no number
_BFLOAT16_BITS = 0xFFFF0000  # that an fp32 keeps which is a bfloat16


def _torch() -> Any:
    return importlib.import_module("torch")


# Where kernels run


def is_interpreter() -> bool:
    """True if kernels run as Python."""
    return knobs.interpret


def get_current_target() -> Target | None:
    """What kernels are compiled for; None where they are not."""
    return None if is_interpreter() else active.get_current_target()


def is_compile_warmup() -> bool:
    """False: tests run their kernels."""
    return False


def is_cuda() -> bool:
    """True if kernels run on an NVIDIA GPU."""
    return isinstance(get_current_target(), GPUTarget)


def _capability() -> int:
    """The compute capability times ten; 0 where there is no GPU."""
    target = get_current_target()
    return target.capability if isinstance(target, GPUTarget) else 0


def is_ampere_or_newer() -> bool:
    """True if it is a GPU of compute capability 8.0 or later."""
    return _capability() >= 80


def is_hopper() -> bool:
    """True if it is a GPU of compute capability 9."""
    return _capability() // 10 == 9


def is_hopper_or_newer() -> bool:
    """True if it is a GPU of compute capability 9.0 or later."""
    return _capability() >= 90


def is_blackwell() -> bool:
    """True if it is a GPU of compute capability 10 or 11."""
    return _capability() // 10 in (10, 11)


def is_blackwell_ultra() -> bool:
    """True if it is a GPU of compute capability 10.3."""
    return _capability() == 103


def is_rubin() -> bool:
    """True if it is a GPU of compute capability 10.7."""
    return _capability() == 107


def is_sm12x() -> bool:
    """True if it is a GPU of compute capability 12."""
    return _capability() // 10 == 12


def _never() -> bool:
    """No: GPUs of other vendors are not supported."""
    return False


is_xpu = is_hip = is_hip_cdna = is_hip_cdna2 = is_hip_cdna3 = is_hip_cdna4 = _never
is_hip_cdna3_or_newer = is_hip_rdna = is_hip_rdna3 = is_hip_rdna4 = is_hip_rdna4m = _never
is_hip_gfx1250 = is_hip_gfx11 = is_hip_gfx12 = is_hip_mi200 = is_hip_mi300 = is_hip_mi350 = _never


def get_arch() -> str:
    """The compute capability times ten; empty where there is no GPU."""
    return f"{_capability() or ''}"


def get_hip_lds_size() -> int:
    """The shared memory of AMD's GPUs, which are not supported: none."""
    return 0


def supports_tma(byval_only: bool = False) -> bool:
    """True if tensor descriptors are copied by the hardware, or interpreted."""
    return is_interpreter() or is_hopper_or_newer()


def supports_ws() -> bool:
    """True if warps may be specialized, or it does not matter."""
    return is_interpreter() or is_hopper_or_newer()


def supports_clc() -> bool:
    """True if a GPU has cluster launch control."""
    return _capability() >= 100


def tma_skip_msg(byval_only: bool = False) -> str:
    """Why a test of tensor descriptors does not run."""
    return "needs TMA: compute capability 9.0 or later"


def skip_if_unsupported_cluster_size(num_ctas: int) -> None:
    """Skips a test that asks for clusters on a GPU of before 9.0."""
    if is_cuda() and num_ctas > 1 and not is_hopper_or_newer():
        importlib.import_module("pytest").skip(f"num_ctas={num_ctas} needs compute capability 9.0")


# Arrays


def random_int(low: int, high: int, *, warmup_value: int | None = None, **kwargs: object) -> int:
    """A random integer of [low, high), by torch."""
    return int(_torch().randint(low, high, size=(), **kwargs).item())


def random_float(*, warmup_value: float = 0.5, **kwargs: object) -> float:
    """A random number of [0, 1), by torch."""
    return float(_torch().rand((), **kwargs).item())


def numpy_random(
    shape: Any,
    dtype_str: str,
    rs: np.random.RandomState | None = None,
    low: int | None = None,
    high: int | None = None,
) -> np.ndarray:
    """A random array of a dtype by name: integers of all their range, or of [low, high), without 0;
    floats of the normal distribution; of 8-bit floats their codes. bfloat16 is fp32 that it has."""
    state = np.random.RandomState(_SEED) if rs is None else rs
    sizes = (shape,) if isinstance(shape, int) else shape
    if dtype_str in integral_dtypes:
        range_ = np.iinfo(dtype_str)
        least = range_.min if low is None else max(low, range_.min)
        most = range_.max if high is None else min(high, range_.max)
        integers = np.asarray(state.randint(least, most, sizes, dtype=np.dtype(dtype_str)))
        return np.where(integers == 0, integers.dtype.type(1), integers)
    if "float8" in dtype_str:
        return np.asarray(state.randint(*_FLOAT8_CODES, sizes, dtype=np.int8))
    numbers = np.asarray(state.normal(0, 1, sizes))
    if dtype_str in float_dtypes:
        return numbers.astype(dtype_str)
    if dtype_str == "bfloat16":
        return (numbers.astype(np.float32).view(np.uint32) & np.uint32(_BFLOAT16_BITS)).view(
            np.float32
        )
    if dtype_str in ("bool", "int1", "bool_"):
        return numbers > 0
    raise RuntimeError(f"there are no random arrays of {dtype_str}")


def to_triton(x: np.ndarray, device: object, dst_type: str | None = None) -> Any:
    """A tensor of torch with the elements of an array, as `dst_type`, if it is given: 8-bit floats
    are codes, and what torch lacks is a tensor that is to be read as another type."""
    torch, name = _torch(), x.dtype.name
    if name in uint_dtypes:
        signed = torch.tensor(x.view(name[1:]).copy(order="K"), device=device)
        return reinterpret(signed, getattr(tl, name))
    tensor = torch.tensor(x, device=device)
    if dst_type is not None and "float8" in dst_type:
        return reinterpret(tensor, getattr(tl, dst_type))
    return tensor.bfloat16() if (name, dst_type) == ("float32", "bfloat16") else tensor


def to_numpy(x: Any) -> np.ndarray:
    """The elements of a tensor, or of one that is read as another type; bfloat16 as fp32."""
    torch = _torch()
    if isinstance(x, TensorWrapper):
        return np.asarray(x.base.cpu().numpy()).astype(torch_dtype_name(x.dtype))
    if not isinstance(x, torch.Tensor):
        raise ValueError(f"to_numpy takes a tensor, got {type(x).__name__}")
    return np.asarray((x.float() if x.dtype is torch.bfloat16 else x).cpu().numpy())


def unwrap_tensor(t: Any) -> Any:
    """The tensor itself, of one that is read as another type."""
    return t.base if isinstance(t, TensorWrapper) else t


def str_to_triton_dtype(x: str) -> dtype:
    """A dtype by any of its names."""
    return tl.str_to_ty(type_canonicalisation_dict[x])


def torch_dtype_name(dtype_: object) -> str:
    """The name of a dtype of `tl` or of torch, without the module."""
    if isinstance(dtype_, dtype):
        return dtype_.name
    found = re.fullmatch(r"torch\.(\w+)", str(dtype_))
    if found is None:
        raise TypeError(f"neither a dtype of tl nor one of torch: {dtype_!r}")
    return found[1]


def default_alloc_fn(size: int, align: int, stream: object) -> object:
    """Memory on a GPU, for `set_allocator`."""
    return _torch().empty(size, dtype=_torch().int8, device="cuda")


# Processes


@dataclass
class ProcessResult:
    """What a function raised in a process of its own, and what it wrote to stderr."""

    exc: BaseException | None
    driver_stderr_output: str


def _call(pipe: Connection, env: dict[str, str], stands_for_triton: bool, errors: str) -> None:
    """Calls a function in this process, which was started for it, and sends what that raised."""
    set_environment(env)
    if stands_for_triton:  # before the function's module is imported, which may import triton
        install_as_triton()
    function, args, kwargs = pipe.recv()
    with open(errors, "wb") as file:
        os.dup2(file.fileno(), 2)  # the driver's words, too
    problem = None
    try:
        function(*args, **(kwargs or {}))
        if is_cuda():
            _torch().cuda.synchronize()
    except Exception as raised:
        problem = raised
    sys.stderr.flush()
    pipe.send(problem)


def run_in_process(
    client_fn: Callable[..., object],
    args: tuple[object, ...] = (),
    kwargs: dict[str, object] | None = None,
    env: dict[str, str] | None = None,
) -> ProcessResult:
    """Calls a function of a module in a process of its own, with more variables in its environment.
    Raises RuntimeError where that ends without a word."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        errors = Path(folder) / "stderr"
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_call,
            args=(theirs, env or {}, knobs.stands_for_triton, str(errors)),
        )
        process.start()
        theirs.close()
        problem, is_done = None, False
        with contextlib.suppress(EOFError, ConnectionError):
            ours.send((client_fn, args, kwargs))
            problem = ours.recv()
            is_done = True
        process.join()
        written = errors.read_text(errors="replace") if errors.exists() else ""
        if not is_done:
            raise RuntimeError(
                f"{client_fn.__name__} ended its process with {process.exitcode}: {written}"
            )
        return ProcessResult(problem, written)


# Knobs


def _fresh_knobs_impl(
    skipped_attr: set[str] | None = None,
) -> tuple[Callable[[], object], Callable[[], None]]:
    """(a function that gives all knobs their defaults, whatever the environment says, until the
    other one is called, and returns the module of knobs). Names of knobs and of groups that are to
    stay are `skipped_attr`."""
    stack, skipped = contextlib.ExitStack(), skipped_attr or set()
    kept = {
        n for g, group in knobs.groups.items() if g in skipped for n in group.aliases().values()
    }

    def fresh() -> object:
        module = importlib.import_module(type(knobs).__module__)
        patch = importlib.import_module("pytest").MonkeyPatch()
        stack.callback(patch.undo)
        patch.setattr(module, "propagate_env", True)
        for group in knobs.groups.values():
            stack.enter_context(group.scope())
        stack.enter_context(knobs.scope())
        for name, knob in KNOBS.items():
            if name not in skipped | kept:
                for variable in knob.variables(knobs):
                    patch.delenv(variable, raising=False)
                knobs.overrides.pop(name, None)
        for group_name in FOREIGN.keys() - skipped:
            for name, foreign in FOREIGN[group_name].items():
                delattr(knobs.groups[group_name], name)
                patch.delenv(foreign.variable, raising=False)
        return module

    return fresh, stack.close


def __getattr__(name: str) -> object:
    if name == "requires_tma":
        mark = importlib.import_module("pytest").mark
        return mark.skipif(not supports_tma(), reason=tma_skip_msg())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
