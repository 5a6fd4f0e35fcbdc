"""Where a kernel that Inductor wrote comes from: the ops of the program and their lines.

    model.py:57 native_layer_norm

Inductor's Python calls kernels one after the other, with a comment above each call that names its
ops. With `INDUCTOR_PROVENANCE=1`, which `python -m proton --as-triton` sets, it knows the lines of
the program, too, also of graphs from its cache.
"""

import contextlib
import functools
import gc
import importlib
import json
import linecache
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from proton.backends.nvidia.machine_code import with_plain_symbol
from proton.base.knobs import environment, set_environment
from proton.compiling import cache
from proton.language import profiling
from proton.runtime.session import open_sessions
from proton.runtime.session import session as sessions
from proton.runtime.session.import_watch import ImportWatch
from proton.trace.model import OPERATOR

_PROVENANCE = "INDUCTOR_PROVENANCE"
# Where `self` is a kernel, or a tuned one: Dynamo, which knows no attributes of these, takes each
# for one that is not None. What these call, the compiler too, is nothing for it either.
_OF_KERNELS = (
    "proton.runtime.launch.jit",
    "proton.runtime.launch.placed",
    "proton.runtime.launch.specializations",
    "proton.runtime.tuning.autotuner",
)
_OF_GPUS = "proton.runtime.nvidia"  # the code that it generates has this folder, too
_STATIC = ("cuda", "triton")  # what torch's options of its static launcher are called by
_TRIES = "torch/_inductor/runtime/benchmarking.py"
_FRAMES = 16  # between a call in Inductor's code and a launch, at most
_COMMENTS = 8  # lines above a call that may be its comments
_OPS = re.compile(r"Source Nodes: \[(.*?)\], Original ATen: \[(.*?)\]")
_HANDLE = re.compile(r"\[Provenance debug handles\] (\S+:\d+)")
_PLACE = re.compile(r'File "(.*)", line (\d+), in ')


def keep_origins() -> None:
    """Has Inductor note the lines of the program, unless the environment says otherwise."""
    set_environment({_PROVENANCE: "1"}, overwrite=False)


def watch(name: str) -> ImportWatch:
    """What finds Dynamo's rules, and has them leave launches as they are, or Inductor's options."""
    return ImportWatch(name, _leave_launches if name.endswith("trace_rules") else _launch_by_proton)


def _leave_launches(rules: ModuleType) -> None:
    for name in (*_OF_KERNELS, _OF_GPUS):
        rules.add(name)
    frames: Any = importlib.import_module("torch._C._dynamo.eval_frame")
    if not hasattr(frames, "set_code_exec_strategy"):
        return  # before torch 2.7 Dynamo asks about each function that they call
    skip = frames._FrameAction.SKIP
    for name in _OF_KERNELS:
        for code in _codes(importlib.import_module(name)):
            frames.set_code_exec_strategy(code, frames._FrameExecStrategy(skip, skip))


def _codes(module: ModuleType) -> set[CodeType]:
    """Of the functions of a module, and of its classes."""
    found = [each for each in vars(module).values() if _is_of(each, module)]
    found += [each for owner in found if isinstance(owner, type) for each in vars(owner).values()]
    return {each.__code__ for each in found if isinstance(each, FunctionType)}


def _is_of(value: object, module: ModuleType) -> bool:
    return getattr(value, "__module__", None) == module.__name__


def _launch_by_proton(config: Any) -> None:
    """Has torch's static launcher, whose launches are in no profile, wait for being asked for: by
    the program, which torch tells its processes that compile, or by the environment."""
    for kind in _STATIC:
        name = f"use_static_{kind}_launcher"
        option, variable = config._config.get(name), f"TORCHINDUCTOR_{name.upper()}"
        if option is not None and not environment(**{variable: ""})[variable]:
            option.default = False


def show_workers(folder: str) -> None:
    """Has torch's processes that compile find modules in a folder before they do elsewhere. To be
    called before the module that starts them takes what it needs; torch before 2.14 gives them
    `sys.path` as it is."""
    utils = importlib.import_module("torch._inductor.utils")
    environment = getattr(utils, "python_subprocess_env", None)
    if environment is None:
        return

    @functools.wraps(environment)
    def with_folder() -> dict[str, str]:
        found = environment()
        return found | {"PYTHONPATH": os.pathsep.join([folder, found["PYTHONPATH"]])}

    utils.python_subprocess_env = with_folder  # type: ignore[attr-defined]


def show_static_launcher(kernel: Any) -> None:
    """Has torch's static launcher find the machine code of a kernel, where the program has asked
    for it: those launches are in no profile. It has no tensor maps to give."""
    if _static_launcher_is_wanted() and not kernel.metadata.get("tensor_maps"):
        files = cache.paths(kernel.hash, kernel.asm.file_names)
        if "cubin" in files:
            name = kernel.src.fn.__name__
            code, symbol = with_plain_symbol(kernel.asm.kept("cubin"), kernel.metadata["symbol"])
            file = Path(files["cubin"]).with_name(f"{name}.cubin")
            if symbol == name and not file.exists():
                part = file.with_name(f"{name}.{os.getpid()}")
                with contextlib.suppress(OSError):  # torch says that there is none
                    part.write_bytes(code)
                    part.replace(file)


def _static_launcher_is_wanted() -> bool:
    config = sys.modules.get("torch._inductor.config")
    return any(getattr(config, f"use_static_{kind}_launcher", False) for kind in _STATIC)


def launch_as_operator(kernel: str, launch: Callable[..., None], *arguments: object) -> None:
    """Shows the running session a launch as one of the operator that the kernel is of. What
    Inductor tries, to choose between configurations, it does not see."""
    caller = _caller()
    if caller is not None and caller.f_code.co_filename.endswith(_TRIES):
        with open_sessions.paused():
            launch(*arguments)
        return
    session, start = sessions.current(), time.perf_counter_ns()
    before = 0 if session is None else session.begun
    try:
        launch(*arguments)
    finally:
        name = ""
        if caller is not None and session is not None and session.begun > before:  # is recorded
            name = _origin(caller.f_code.co_filename, caller.f_lineno, kernel)
        if name and profiling.host is not None:
            profiling.host.add(name, start, OPERATOR)


def _caller() -> FrameType | None:
    """Who asked for the launch that is under way: Inductor's code for a graph, or what measures
    configurations for it; None for another."""
    frame: FrameType | None = sys._getframe(3)  # behind the launch and torch's call of it
    for _ in range(_FRAMES):
        if frame is None:
            return None
        is_graph = "AsyncCompile" in frame.f_globals
        if is_graph or frame.f_code.co_filename.endswith(_TRIES):
            return frame
        frame = frame.f_back
    return None


@functools.cache
def _origin(file: str, line: int, kernel: str) -> str:
    """The origin of a call on a line of one of Inductor's files."""
    if f"{kernel}.run(" not in linecache.getline(file, line):
        return ""
    ops, handle = "", ""
    for number in range(line - 1, max(line - _COMMENTS, 0), -1):
        text = linecache.getline(file, number).strip()
        if found := _HANDLE.search(text):
            handle = handle or found[1]
        elif found := _OPS.search(text):
            names = [name.removeprefix("aten.") for name in found[2].split(", ") if name]
            ops = ", ".join(names) or found[1]
            break
    return " ".join([*_lines(file, handle), ops]).strip()


def _lines(file: str, handle: str) -> list[str]:
    """`model.py:57-61` of each file of the program that a kernel's ops are on."""
    places: dict[str, set[int]] = {}
    for trace in _traces(file).get(handle, ()):
        for path, number in _PLACE.findall(trace)[-1:]:
            places.setdefault(path, set()).add(int(number))
    return [
        f"{Path(path).name}:{min(lines)}" + f"-{max(lines)}" * (len(lines) > 1)
        for path, lines in places.items()
    ]


@functools.cache
def _traces(file: str) -> dict[str, list[str]]:
    """Of each kernel's call in one of Inductor's files the places in the program, as it noted them
    with the graph. It has no list of graphs: this looks through all objects, once for a file."""
    key = Path(file).stem
    for graph in gc.get_objects():
        if type(graph).__name__ == "CompiledFxGraph" and graph.cache_key == key:
            noted = getattr(graph, "inductor_provenance_stack_traces_str", None)
            return json.loads(noted) if noted else {}
    return {}
