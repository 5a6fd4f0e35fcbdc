"""One compiler in a process of its own, asked by gpu_compile_time.py.

    python benchmarks/one_compiler.py proton|triton

Each line of the input is a request in JSON, `"about"` or a specimen to compile for an H200; each
line of the output is its answer. The compiler is imported by the first request, and numpy, which
the files of kernels import, before it.
"""

import functools
import importlib
import importlib.util
import inspect
import json
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy  # noqa: F401

CAPABILITY = 90


@functools.cache
def load(path: str) -> Any:
    """The module in a file, or that of a name: a library's."""
    if not path.endswith(".py"):
        return importlib.import_module(path)
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def prepare(library: str, compiler: str) -> None:
    """Imports a library of those in library_specimens.py."""
    if compiler == "proton":
        import proton

        proton.install_as_triton()
    if library == "gems":
        import gems_cases
        import triton.language as tl
        from triton.language.extra.cuda import libdevice

        # On a CPU flag-gems takes all functions from here.
        for name in set(dir(libdevice)) - set(dir(tl.math)):
            setattr(tl.math, name, getattr(libdevice, name))

        gems_cases._flag_gems()
    elif library not in ("liger", "fla"):
        from libraries import pretend_cuda

        pretend_cuda()
        importlib.import_module(f"{library}_cases")


def python_function(specimen: dict[str, Any]) -> Callable[..., Any]:
    """The function below what decorates it."""
    function = getattr(load(specimen["path"]), specimen["function"])
    while not inspect.isfunction(function):
        function = function.fn
    return function


def constants(specimen: dict[str, Any], dtype: Callable[[str], Any]) -> dict[str, Any]:
    """Of a specimen; a dtype stands in JSON as {"dtype": its short name}."""
    return {
        name: dtype(value["dtype"]) if isinstance(value, dict) else value
        for name, value in specimen["constants"].items()
    }


def compile_by_proton(specimen: dict[str, Any]) -> dict[str, Any]:
    """ms from the Python function on, and of each stage; what tells the bytes that it spills."""
    import proton
    from proton.backends.nvidia.options import GPUOptions
    from proton.backends.nvidia.target import NVIDIA
    from proton.base.targets import GPUTarget
    from proton.compiler import compile_function
    from proton.language.signature import Signature
    from proton.language.types import str_to_ty

    function = python_function(specimen)
    proton.knobs.always_compile = not specimen["cached"]
    begin = time.perf_counter()
    types = {name: str_to_ty(short) for name, short in specimen["types"].items()}
    options = {name: specimen[name] for name in ("num_warps", "num_stages")}
    kernel = compile_function(
        NVIDIA,
        proton.jit(function),
        Signature(
            types,
            constants(specimen, str_to_ty),
            divisible=frozenset(specimen["divisible"]),
            non_negative=frozenset(specimen["non_negative"]),
        ),
        GPUOptions(GPUTarget("cuda", CAPABILITY), **options),
    )
    ms = (time.perf_counter() - begin) * 1e3
    assert kernel.from_cache == specimen["cached"]
    return {"ms": ms, "stages": kernel.times, "spills": lambda: kernel.n_spills}


def compile_by_triton(specimen: dict[str, Any]) -> dict[str, Any]:
    """The same. `frontend` has the making of the cache's key in it."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.language import str_to_ty

    heard: list[Any] = []
    function = python_function(specimen)
    triton.knobs.compilation.always_compile = not specimen["cached"]
    triton.knobs.compilation.listener = lambda **event: heard.append(event)
    begin = time.perf_counter()
    kernel = triton.jit(function)
    known = constants(specimen, lambda short: str_to_ty(short, None))
    source = ASTSource(
        kernel,
        signature=specimen["types"] | dict.fromkeys(known, "constexpr"),
        constexprs=known,
        attrs={
            (kernel.arg_names.index(name),): [["tt.divisibility", 16]]
            for name in specimen["divisible"]
        },
    )
    # Fusion is Triton's default; 3.9 warns where nobody asks for it.
    options = {name: specimen[name] for name in ("num_warps", "num_stages")}
    options["enable_fp_fusion"] = True
    compiled = triton.compile(source, target=GPUTarget("cuda", CAPABILITY, 32), options=options)
    ms = (time.perf_counter() - begin) * 1e3
    assert heard[0]["cache_hit"] == specimen["cached"]
    times = heard[0]["times"]
    stages = [("frontend", times.ir_initialization), *times.lowering_stages]
    in_ms = {stage: us / 1e3 for stage, us in stages}
    return {"ms": ms, "stages": in_ms, "spills": lambda: spilled(compiled.asm["ptx"])}


def spilled(ptx: str) -> int:
    """Bytes that a thread writes and reads, as ptxas says of Triton's PTX."""
    from triton.backends.nvidia.compiler import get_ptxas

    command = [get_ptxas(CAPABILITY).path, "-v", f"-arch=sm_{CAPABILITY}a", "-o", "/dev/null", "-"]
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        command[-1] = file.name
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return sum(map(int, re.findall(r"(\d+) bytes spill (?:stores|loads)", said)))


def about_proton() -> str:
    import proton
    from proton.base import nvidia_tools as tools

    used = tools.ptxas(proton.GPUTarget("cuda", CAPABILITY))
    return f"Proton {proton.__version__}, {described(used)}"


def about_triton() -> str:
    """Names the assemblers that Triton carries, too: a variable or the target chooses."""
    import triton
    from triton.backends.nvidia.compiler import get_ptxas

    carried = sorted(Path(triton.__file__).parent.glob("backends/nvidia/bin/ptxas*"))
    list_ = ", ".join(f"{path.name} {version(path)}" for path in carried) or "none"
    used = described(get_ptxas(CAPABILITY).path)
    return f"Triton {triton.__version__}, {used}; it carries {list_}"


def described(ptxas: str | Path) -> str:
    return f"ptxas {version(ptxas)} of {ptxas}"


def version(ptxas: str | Path) -> str:
    """As the program says it."""
    text = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"V([\d.]+)", text)
    return found[1] if found else text.strip()


COMPILERS: dict[str, tuple[Callable[[], str], Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "proton": (about_proton, compile_by_proton),
    "triton": (about_triton, compile_by_triton),
}


def answered(compile_: Callable[[dict[str, Any]], Any], request: dict[str, Any]) -> Any:
    """What compiling gives; of a library's kernel, which may be refused, also an error."""
    if "library" not in request:
        return compile_(request)
    prepare(request["library"], sys.argv[1])
    try:
        return compile_(request)
    except Exception as problem:
        return {"error": f"{type(problem).__name__}: {problem}"}


def cpu_ms() -> float:
    """Of this process and of its children that have ended: the assemblers."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used) * 1e3


def main() -> None:
    about, compile_ = COMPILERS[sys.argv[1]]
    for line in sys.stdin:
        begin, cpu = time.perf_counter(), cpu_ms()
        request = json.loads(line)
        if request == "about":
            answer: Any = f"{about()}, Python {platform.python_version()}"
        else:
            answer = answered(compile_, request)
            answer["ms since request"] = (time.perf_counter() - begin) * 1e3
            answer["cpu ms"] = cpu_ms() - cpu
            if "spills" in answer:
                answer["spills"] = answer["spills"]() if "library" in request else None
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
