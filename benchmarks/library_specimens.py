"""The kernels that ops of public libraries launch, as gpu_compile_time.py wants to compile them.

    python benchmarks/library_specimens.py LIBRARY ... [--only REGEX] [--samples 2] --to FILE

Needs torch and the libraries, as public_libraries.py does, and no GPU: tensors are on the CPU, and
what a launch would compile for an H200 is noted in its place. The ops are those of liger_cases.py
at the sizes of corpus.py, flag-gems' on torch's samples, and those of fla_cases.py with heads of
128. Of kernels that are tuned the middle configuration is taken.
"""

import argparse
import contextlib
import importlib
import inspect
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from libraries import PACKAGES, SMS, prefixes, pretend_cuda

import proton
from proton.base.errors import ProtonError
from proton.base.targets import GPUTarget
from proton.compiler import Request
from proton.language import types as ty
from proton.runtime.launch.jit import JITFunction
from proton.runtime.launch.reinterpret import TensorWrapper
from proton.runtime.tuning.autotuner import Autotuner

TARGET = GPUTarget("cuda", 90)
HEAD = 128  # in the place of the small heads of fla_cases.py
# A constant of liger-kernel: the rows of each SM, of which it takes a CPU to have one.
ROWS_OF_ALL = "rows_per_program"
# torch's names of dtypes that the language has others for.
LANGUAGE_NAMES = {"bool": "int1", "float8_e4m3fn": "float8e4nv", "float8_e5m2": "float8e5"}
Specimens = dict[str, dict[str, Any]]


def noted(
    found: Specimens, library: str, op: str, kernel: JITFunction, args: Any, kwargs: Any
) -> None:
    """Adds what a launch would compile, unless it is there."""
    aligned = dict[str, bool]()

    def stand_in(name: str, value: object) -> object:
        if isinstance(value, TensorWrapper):
            stand_in(name, value.base)
            return value.dtype
        if not isinstance(value, torch.Tensor):
            return value
        aligned[name] = value.data_ptr() % 16 == 0
        return _dtype(value)

    bound = {
        name: stand_in(name, value) for name, value in zip(kernel.arg_names, args, strict=False)
    }
    named = {name: stand_in(name, value) for name, value in kwargs.items()}
    request = kernel.request(*bound.values(), **named, target=TARGET)
    assert request is not None
    one = _specimen(library, kernel, request, {name for name, is_ in aligned.items() if not is_})
    if one is not None and not any(one == other for other in found.values()):
        same = sum(name.startswith(f"{op} {kernel.__name__}") for name in found)
        found[f"{op} {kernel.__name__}" + (f" #{same + 1}" if same else "")] = one


def _dtype(tensor: torch.Tensor) -> object:
    name = str(tensor.dtype).removeprefix("torch.")
    return getattr(proton.language, LANGUAGE_NAMES.get(name, name))


def _specimen(
    library: str, kernel: JITFunction, request: Request, unaligned: set[str]
) -> dict[str, Any] | None:
    """None where a compiler could not be told by JSON what to compile."""
    signature = request.signature
    constants = {name: _constant(value) for name, value in signature.constants.items()}
    if (rows := constants.get(ROWS_OF_ALL)) is not None:
        constants[ROWS_OF_ALL] = -(-rows // SMS)
    if signature.tuples or ... in constants.values():
        return None
    module = kernel.fn.__module__
    return {
        "library": library,
        # What a library writes as it runs is no module of it.
        "path": module if module.startswith(prefixes(library)) else inspect.getfile(kernel.fn),
        "function": kernel.fn.__name__,
        "types": {name: type_.mangle() for name, type_ in signature.types.items()},
        "constants": constants,
        "divisible": sorted(signature.divisible - unaligned),
        "non_negative": sorted(signature.non_negative),
        "num_warps": request.options.num_warps,
        "num_stages": request.options.num_stages,
    }


def _constant(value: Any) -> Any:
    """As JSON has it; Ellipsis for what it cannot have."""
    if isinstance(value, ty.dtype):
        return {"dtype": value.mangle()}
    return value if isinstance(value, bool | int | float | str | None) else ...


@contextlib.contextmanager
def noting(library: str, op: str, found: Specimens) -> Iterator[None]:
    """Notes launches in their place."""
    launch, tuned = JITFunction.__getitem__, Autotuner.launch

    def get(kernel: JITFunction, grid: object) -> Callable[..., None]:
        return lambda *args, **kwargs: noted(found, library, op, kernel, args, kwargs)

    def launch_tuned(self: Autotuner, grid: object, /, *args: object, **kwargs: object) -> Any:
        self.configs = [self.configs[len(self.configs) // 2]]
        return tuned(self, grid, *args, **kwargs)

    JITFunction.__getitem__ = get  # type: ignore[assignment,method-assign]
    Autotuner.launch = launch_tuned  # type: ignore[method-assign]
    try:
        yield
    finally:
        JITFunction.__getitem__ = launch  # type: ignore[method-assign]
        Autotuner.launch = tuned  # type: ignore[method-assign]


def liger(only: str, samples: int) -> Specimens:
    pretend_cuda()
    import liger_kernel.utils

    liger_kernel.utils.infer_device = lambda: "cuda"
    torch.randn = lambda *shape, **_: torch.empty(*shape)  # type: ignore[assignment]
    from library_case import run
    from liger_cases import CASES

    found: Specimens = {}
    for case in CASES.values():
        for dtype in case.dtypes:
            for sizes in case.timed:
                name = f"{case.name} {str(dtype).removeprefix('torch.')} {sizes}"
                if re.search(only, name):
                    print(name, flush=True)
                    op, _, leaves = case.made(dtype, sizes)
                    with noting("liger", name, found):
                        run(op, leaves)
    return found


def gems(only: str, samples: int) -> Specimens:
    import gems_cases

    found: Specimens = {}
    for name, check in gems_cases.checks(samples).items():
        if re.search(only, name):
            # What is noted in the place of a launch leaves results that are not torch's.
            with noting("gems", name, found), contextlib.suppress(Exception, ProtonError):
                check()
            print(name, len(found), flush=True)
    return found


def fla(only: str, samples: int) -> Specimens:
    pretend_cuda()
    target, driver = GPUTarget("cuda", 90), proton.runtime.driver.active
    driver.get_current_target = lambda: target  # type: ignore[method-assign]
    import fla.utils.hardware
    import library_case

    # What it chooses configurations by.
    fla.utils.hardware.get_all_max_shared_mem = lambda: [target.facts.shared_bytes]

    small = library_case.normal
    library_case.normal = lambda *shape: small(*(HEAD if n in (32, 64) else n for n in shape))
    from fla_cases import CASES

    found: Specimens = {}
    for case in CASES.values():
        for dtype in case.dtypes:
            name = f"{case.name} {str(dtype).removeprefix('torch.')}"
            if re.search(only, name):
                op, _, leaves = case.made(dtype, library_case.SMALL)
                with noting("fla", name, found), contextlib.suppress(Exception, ProtonError):
                    library_case.run(op, leaves)
                print(name, len(found), flush=True)
    return found


def others(library: str, only: str) -> Specimens:
    """Those of libraries whose cases are calls."""
    pretend_cuda()
    found: Specimens = {}
    for case in importlib.import_module(f"{library}_cases").CASES.values():
        for dtype, sizes in itertools.product(case.dtypes, case.timed):
            name = f"{case.name} {str(dtype).removeprefix('torch.')} {sizes}"
            if re.search(only, name):
                call = case.call(dtype, sizes)
                try:
                    with noting(library, name, found):
                        call()
                except (Exception, ProtonError) as problem:  # of results that nobody has written
                    print(f"{name}: {type(problem).__name__}: {problem}"[:200])
                print(name, len(found), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("libraries", nargs="+", choices=PACKAGES)
    parser.add_argument("--only", default="", help="ops whose names match")
    parser.add_argument("--samples", type=int, default=2, help="of torch's inputs, for each op")
    parser.add_argument("--to", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(2)
    proton.install_as_triton()
    found: Specimens = {}
    of = {"liger": liger, "gems": gems, "fla": fla}
    for library in given.libraries:
        if library in of:
            found |= of[library](given.only, given.samples)
        else:
            found |= others(library, given.only)
    given.to.write_text(json.dumps(found, indent=1))
    print(f"{len(found)} kernels in {given.to}", file=sys.stderr)


if __name__ == "__main__":
    main()
