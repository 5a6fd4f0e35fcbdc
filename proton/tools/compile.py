"""`proton-compile`: a kernel as C source, compiled ahead of time; needs no GPU and no Python later.

Like `triton.tools.compile`. What it writes is NAME.h and NAME.c, and for the CPU NAME.kernel.o;
`NAME` is the kernel's, what it was compiled for as a hash, and its hints. `proton-link` makes one
function of several.
"""

import importlib.util
import itertools
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

import proton
from proton.backends.compiler import CompiledKernel
from proton.backends.cpu.llvm import object_with_one_symbol
from proton.base.errors import ProtonError
from proton.base.targets import CPUTarget, GPUTarget, Target, check_num_warps
from proton.compiler import ASTSource, compile_source
from proton.dialect.attributes import DIVISIBILITY
from proton.runtime.backend import backend_named
from proton.runtime.driver import active
from proton.runtime.launch.interface import KernelInterface
from proton.runtime.launch.jit import JITFunction
from proton.runtime.nvidia.cuda import STATIC_SHARED
from proton.tools import ahead_sources
from proton.tools.ahead_variant import AheadVariant, RuntimeParameter, parse_signature

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

_Signature = Annotated[
    str,
    typer.Option(
        "--signature",
        "-s",
        help='For each parameter a type or a constant: "*fp32:16, i32:16, 1024". :16 says that '
        "a value is a multiple of 16, :1 that it is 1.",
    ),
]
_Grid = Annotated[
    str,
    typer.Option(
        "--grid",
        "-g",
        help='Sizes in C, by parameters and constants: "(n + BLOCK - 1) / BLOCK, 1, 1".',
    ),
]
_LikeTriton = Annotated[
    bool,
    typer.Option(
        "--like-triton",
        help="As triton.tools.compile has it: --as-triton, by default the target that launches "
        "take and one warp, and --out-path names a file in the folder.",
    ),
]


@app.command()
def compile_ahead_of_time(
    path: Annotated[Path, typer.Argument(help="The Python file with the kernel.", exists=True)],
    kernel_name: Annotated[str, typer.Option("--kernel-name", "-n", help="The kernel.")],
    signature: _Signature,
    grid: _Grid,
    target: Annotated[
        str, typer.Option("--target", "-t", help="cpu, or as cuda:90:32; by default cpu.")
    ] = "",
    num_warps: Annotated[
        int,
        typer.Option(
            "--num-warps", "-w", help="GPU: of a program; by default 4.", show_default=False
        ),
    ] = 0,
    num_stages: Annotated[int, typer.Option("--num-stages", "-ns", help="GPU: of loops.")] = 3,
    out_name: Annotated[
        str, typer.Option("--out-name", "-on", help="In the place of the kernel's name.")
    ] = "",
    out_path: Annotated[
        Path, typer.Option("--out-path", "-o", help="The folder of what is written.")
    ] = Path(),
    may_overlap: Annotated[
        bool,
        typer.Option(
            help="CPU: arrays that the kernel writes may overlap others, which is slower."
        ),
    ] = False,
    as_triton: Annotated[
        bool, typer.Option("--as-triton", help="`import triton` in PATH gives Proton.")
    ] = False,
    like_triton: _LikeTriton = False,
) -> None:
    """Compiles a kernel into C source that has its machine code."""
    try:
        if as_triton or like_triton:
            proton.install_as_triton()
        num_warps = num_warps or (1 if like_triton else 4)
        check_num_warps(num_warps)
        chosen = active.get_current_target() if like_triton and not target else _target(target)
        out_path = out_path.parent if like_triton else out_path
        options: dict[str, object] = {"num_warps": num_warps, "num_stages": num_stages}
        if isinstance(chosen, CPUTarget):
            options = {"disjoint": not may_overlap}
        fn = _kernel(path, kernel_name)
        variant, files = _built(fn, out_name, signature, _sizes(grid), chosen, options)
        out_path.mkdir(parents=True, exist_ok=True)
        for suffix, content in files.items():
            file = out_path / f"{variant.name}.{suffix}"
            file.write_bytes(content)
            print(file)
    except (ProtonError, OSError) as problem:
        print(f"proton-compile: {problem}", file=sys.stderr)
        raise typer.Exit(1) from None


def _target(name: str) -> Target:
    if name in ("", "cpu"):
        return CPUTarget()
    target = GPUTarget.parse(name)
    if target.backend != "cuda":
        raise ProtonError(f"C sources launch kernels for cpu and cuda, not for {target}")
    return target


def _sizes(grid: str) -> list[str]:
    """The three sizes of a grid, in C."""
    sizes = [size.strip() for size in grid.split(",")]
    if len(sizes) > 3 or not all(sizes):
        raise ProtonError(f"a grid has 1 to 3 sizes, got {grid!r}")
    return sizes + ["1"] * (3 - len(sizes))


def _built(
    fn: JITFunction,
    name: str,
    signature: str,
    grid: list[str],
    target: Target,
    options: dict[str, object],
) -> tuple[AheadVariant, dict[str, bytes]]:
    """A variant, and what is written of it, by suffix."""
    if any(p.kind is p.VAR_POSITIONAL for p in fn.signature.parameters.values()):
        raise ProtonError(f"{fn.__name__} takes any number of arguments: give each a name")
    parameters, constants = parse_signature(signature, fn.arg_names)
    facts = ", ".join(f"{key}={value!r}" for key, value in (constants | options).items())
    variant = AheadVariant(name or fn.__name__, str(target), parameters, facts)
    kernel = _compiled(fn, parameters, constants, target, options)
    return variant, _files(variant, kernel, grid, _ones(parameters) | constants)


def _kernel(path: Path, name: str) -> JITFunction:
    """The kernel of a name in a file, without what is around it (as autotune is)."""
    # A file of kernels may be called math.py, of which there is one already.
    known_as = f"file {path.stem}" if path.stem in sys.modules else path.stem
    spec = importlib.util.spec_from_file_location(known_as, path)
    if spec is None or spec.loader is None:
        raise ProtonError(f"{path} is no Python file")
    sys.path.insert(0, str(path.parent.absolute()))
    module = importlib.util.module_from_spec(spec)
    sys.modules[known_as] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as problem:
        raise ProtonError(f"{path} does not run:\n{_own_trace(problem, spec.origin)}") from None
    found = getattr(module, name, None)
    while isinstance(found, KernelInterface) and not isinstance(found, JITFunction):
        found = getattr(found, "fn", None)
    if not isinstance(found, JITFunction):
        kernels = [key for key, value in vars(module).items() if isinstance(value, KernelInterface)]
        raise ProtonError(f"{path} has no kernel {name}; there are {', '.join(kernels) or 'none'}")
    return found


def _own_trace(problem: BaseException, file: str | None) -> str:
    """What Python shows of an error, from the first line of a file on."""
    frames = traceback.extract_tb(problem.__traceback__)
    own = itertools.dropwhile(lambda frame: frame.filename != file, frames)
    lines = [*traceback.format_list(own), *traceback.format_exception_only(problem)]
    return "".join(lines).rstrip()


def _compiled(
    fn: JITFunction,
    parameters: tuple[RuntimeParameter, ...],
    constants: dict[str, object],
    target: Target,
    options: dict[str, object],
) -> CompiledKernel:
    source = ASTSource(
        fn,
        {parameter.name: parameter.type for parameter in parameters if parameter.hint != 1},
        constants | _ones(parameters),
        {p.name: [[DIVISIBILITY, 16]] for p in parameters if p.hint == 16},
    )
    return compile_source(backend_named(target.backend).compiler, source, target, options)


def _ones(parameters: tuple[RuntimeParameter, ...]) -> dict[str, int]:
    """The parameters that are always 1."""
    return {parameter.name: 1 for parameter in parameters if parameter.hint == 1}


def _files(
    variant: AheadVariant, kernel: CompiledKernel, grid: list[str], constants: dict[str, object]
) -> dict[str, bytes]:
    """What is written, by suffix. The grid may be written by the constants."""
    symbol = kernel.metadata["symbol"]
    files = {"h": ahead_sources.header(variant).encode()}
    if variant.target == "cpu":
        if extras := kernel.metadata["extras"]:
            raise ProtonError(
                f"{variant.kernel} takes {', '.join(extras)}, which only launches give"
            )
        if kernel.metadata["waits"]:
            raise ProtonError(
                f"programs of {variant.kernel} wait for others, and the function in C runs them "
                "one after the other"
            )
        files["c"] = ahead_sources.cpu_source(variant, grid, constants).encode()
        files["kernel.o"] = object_with_one_symbol(
            kernel.asm["llir"], symbol, f"{variant.name}_range"
        )
        return files
    if kernel.metadata["tensor_maps"]:
        raise ProtonError(
            f"{variant.kernel} makes tensor descriptors that TMA copies by, of which only launches "
            "make the maps: use pointers, or tl.make_block_ptr"
        )
    if kernel.metadata["global_scratch_size"]:
        raise ProtonError(
            f"{variant.kernel} makes tensor descriptors that TMA copies by, and their maps need "
            "memory that only launches give: use pointers, or tl.make_block_ptr"
        )
    files["c"] = ahead_sources.gpu_source(
        variant,
        grid,
        constants,
        kernel.asm.kept("cubin"),
        symbol=symbol,
        shared=kernel.metadata["shared"],
        warps=kernel.metadata["num_warps"],
        static_shared=STATIC_SHARED,
    ).encode()
    return files


def main() -> None:
    """The entry point."""
    app(prog_name="proton-compile")


if __name__ == "__main__":  # as Triton's command, which is run by the place of its file
    app(["--like-triton", *sys.argv[1:]], prog_name="triton.tools.compile")
