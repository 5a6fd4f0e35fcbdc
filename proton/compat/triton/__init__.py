"""`proton.install_as_triton()`: from then on `import triton` gives Proton.

A module of Triton is the module of Proton that has its names: the same object, so that
`triton.language.load` is `proton.language.load`. Only `triton` itself is a module of its own, since
it has Triton's version. What Proton lacks is a ModuleNotFoundError or an AttributeError that says
whose lack it is.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from proton.base.errors import ProtonError
from proton.base.knobs import environment, knobs, set_environment
from proton.compat.triton import causes
from proton.compat.triton.absent import reason

NAME = "triton"
FOUND = str(Path(__file__).parent / "found")  # in `sys.path`, where `import triton` gives Proton
# Torch's processes that compile look into torch's own folder first, where Triton may be, too.
_WORKERS = "torch._inductor.compile_worker.subproc_pool"
# What is done once a module of torch is there: `watch` of these waits for it.
_WATCHED = {
    "torch.cuda.nvtx": "proton.compat.triton.nvtx",
    "torch._dynamo.trace_rules": "proton.compat.triton.inductor",
    "torch._inductor.config": "proton.compat.triton.inductor",
}
# Modules of Triton whose names are elsewhere here; all others have the same name.
_HOMES = {
    "triton._C": "proton.compat.triton.libtriton",
    "triton._C.libtriton": "proton.compat.triton.libtriton",
    "triton._C.libtriton.gluon_ir": "proton.compat.triton.gluon_ir",
    "triton._C.libtriton.ir": "proton.compat.triton.libtriton",
    "triton._C.libtriton.nvidia": "proton.compat.triton.nvidia",
    "triton._utils": "proton.compat.triton.utils",
    "triton._filecheck": "proton.compat.triton.filecheck",
    "triton._internal_testing": "proton.compat.triton.internal_testing",
    "triton.backends": "proton.compat.triton.plug_ins",
    "triton.backends.compiler": "proton.compat.triton.targets",
    "triton.compiler": "proton.compat.triton.compiler",
    "triton.compiler.code_generator": "proton.backends.code_generator",
    "triton.compiler.compiler": "proton.compat.triton.compiler",
    "triton.compiler.errors": "proton.base.errors",
    # Not the package `proton.backends.nvidia`: importing `triton.backends.nvidia.compiler` sets
    # `compiler` of its parent.
    "triton.backends.nvidia": "proton.compat.triton.nvidia",
    "triton.backends.nvidia.compiler": "proton.compat.triton.nvidia",
    "triton.backends.nvidia.driver": "proton.compat.triton.nvidia",
    "triton.errors": "proton.base.errors",
    "triton.experimental": "proton.compat.triton.gluon",
    "triton.experimental.gluon": "proton.gluon",
    "triton.experimental.gluon._runtime": "proton.gluon",
    "triton.experimental.gluon.language._core": "proton.language.gluon",
    "triton.experimental.gluon.language._layouts": "proton.language.gluon.layouts",
    "triton.experimental.gluon.language._math": "proton.language.gluon",
    "triton.experimental.gluon.language._standard": "proton.language.gluon",
    "triton.experimental.gluon.nvidia.blackwell": "proton.gluon.nvidia",
    "triton.experimental.gluon.nvidia.hopper": "proton.gluon.nvidia",
    "triton.language.extra.cuda.gdc": "proton.language.extra.cuda",
    "triton.language.extra.cuda.utils": "proton.language.extra.cuda",
    "triton.knobs": "proton.base.knobs",
    "triton.language.libdevice": "proton.language.extra.libdevice",
    "triton.language.semantic": "proton.base.errors",
    "triton.profiler": "proton.compat.triton.profiler",
    "triton.profiler.context": "proton.compat.triton.profiler_scopes",
    "triton.profiler.data": "proton.compat.triton.profiler_data",
    "triton.profiler.hooks": "proton.compat.triton.profiler_hooks",
    "triton.profiler.hooks.hook": "proton.compat.triton.profiler_hooks",
    "triton.profiler.hooks.launch": "proton.compat.triton.profiler_hooks",
    "triton.profiler.profile": "proton.compat.triton.profiler",
    "triton.profiler.proton": "proton.compat.triton.profiler",
    "triton.profiler.specs": "proton.compat.triton.profiler_specs",
    "triton.profiler.scope": "proton.compat.triton.profiler_scopes",
    "triton.profiler.state": "proton.compat.triton.profiler_scopes",
    "triton.profiler.viewer": "proton.compat.triton.profiler_viewer",
    "triton.runtime._allocation": "proton.runtime.launch.allocation",
    "triton.runtime._async_compile": "proton.compat.triton.async_compile",
    "triton.runtime.autotuner": "proton.runtime.tuning.autotuner",
    "triton.runtime.jit": "proton.runtime.launch.jit",
    "triton.runtime.interpreter": "proton.compat.triton.interpreter",
    "triton.tools.disasm": "proton.compat.triton.disasm",
    "triton.runtime.driver": "proton.runtime.driver",
}
# Names of `triton` itself that are not those of `proton`.
_OWN = {"compile": "proton.compat.triton.compiler"}
# Programs find these by attributes, `triton.backends.compiler`, without an import of them: what is
# right below `triton` is imported when it is asked for, and the rest with what it is part of.
_PARTS = {
    "triton": (
        *("_C", "backends", "compiler", "errors", "experimental", "knobs", "language", "profiler"),
        *("runtime", "testing", "tools"),
    ),
    "triton.backends": ("compiler", "nvidia.compiler"),
    "triton.compiler": ("code_generator", "compiler", "errors"),
    "triton.language": ("core", "standard", "random", "math", "extra.cuda"),
    "triton.profiler": ("context", "data", "profile", "scope", "specs", "state"),
    "triton.runtime": (
        *("_allocation", "_async_compile", "autotuner", "cache", "driver", "errors", "jit"),
    ),
    "triton.tools": ("tensor_descriptor",),
}
# What is added to modules of Proton under the names of Triton's: `extras` has it.
_EXTRAS = {
    "triton.knobs": (
        *("AutotuneListener", "BuildImpl", "CompilationListener", "InitHandleHook", "JITHook"),
        *("JITHookCompileInfo", "LaunchHook", "PipelineStagesHook"),
    ),
    "triton.runtime": ("RedisRemoteCacheBackend", "RemoteCacheBackend"),
    "triton.runtime.cache": (
        *("RedisRemoteCacheBackend", "RemoteCacheBackend", "RemoteCacheManager"),
    ),
    "triton.testing": ("cuda_graph_without_gc",),
}


def install_as_triton() -> None:
    """Makes `import triton`, and of its modules those that Proton has, give Proton, in all of this
    process. Triton's variables count, such as `TRITON_INTERPRET=1`, where Proton's are not set. To
    be called before anything imports triton; a second call does nothing."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    if NAME in sys.modules:
        raise ProtonError(
            "install_as_triton: triton is imported already; call it first, or run "
            "`python -m proton --as-triton script.py`"
        )
    sys.meta_path.insert(0, _Finder())
    sys.path.insert(1, FOUND)  # for processes that take it over
    causes.install()
    knobs.stands_for_triton = True
    knobs.generation += 1


def install_in_processes() -> None:
    """Has `import triton` give Proton in the Python processes that this one starts, too."""
    given = environment(PYTHONPATH="")["PYTHONPATH"]
    paths = [FOUND, *(path for path in given.split(os.pathsep) if path not in (FOUND, ""))]
    set_environment({"PYTHONPATH": os.pathsep.join(paths)})


def _version() -> str:
    """The version of Triton whose rules hold."""
    return f"{knobs.triton_version}.0"


class _Triton(ModuleType):
    """The module `triton`."""

    def __init__(self) -> None:
        super().__init__(NAME, "Proton, under the name of Triton.")
        self.__path__ = []  # a package, of which only `_Finder` knows the modules

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return _version()
        if name in _PARTS[NAME]:
            return importlib.import_module(f"{NAME}.{name}")
        if name in _OWN:
            return getattr(importlib.import_module(_OWN[name]), name)
        proton = importlib.import_module("proton")
        try:
            return getattr(proton, name)
        except AttributeError as problem:
            raise AttributeError(
                f"module 'triton', which Proton stands for, has no {name!r}: {problem}", name=name
            ) from None

    def __dir__(self) -> list[str]:
        return dir(importlib.import_module("proton"))


class _Finder(DistributionFinder):
    """Finds `triton` and its modules, and nobody else does. Hears when torch is about to start
    processes, to announce ranges, to trace programs and to compile them."""

    def __init__(self) -> None:
        self.watches: dict[str, Any] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == _WORKERS:
            importlib.import_module("proton.compat.triton.inductor").show_workers(FOUND)
        if fullname in _WATCHED and fullname not in self.watches:
            watch = importlib.import_module(_WATCHED[fullname]).watch(fullname)
            self.watches[fullname] = watch
            found: ModuleSpec | None = watch.find_spec(fullname, path, target)
            return found
        if fullname.partition(".")[0] != NAME:
            return None
        if fullname != NAME and _home(fullname) is None:
            raise ModuleNotFoundError(_lack(fullname), name=fullname)
        return ModuleSpec(fullname, _Loader(), is_package=True)

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterable[Distribution]:
        wanted = None if context is None else context.name
        return [_Distribution()] if wanted in (None, NAME) else []


class _Loader(Loader):
    """Gives the module that is there already."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if spec.name == NAME:
            return _Triton()
        home = _home(spec.name)
        assert home is not None, "the finder has refused it"
        module = importlib.import_module(home)
        # The import system is about to replace it by its own.
        self.name, self.spec = spec.name, module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        if isinstance(module, _Triton):
            return
        module.__spec__ = self.spec
        if self.name in _EXTRAS:
            extras = importlib.import_module("proton.compat.triton.extras")
            module.__dict__.update({name: getattr(extras, name) for name in _EXTRAS[self.name]})
        own = dict(module.__dict__)
        for part in _PARTS.get(self.name, ()):
            importlib.import_module(f"{self.name}.{part}")
        module.__dict__.update(own)  # `triton.profiler.scope` is a class, and a module of that name
        if self.name.startswith((f"{NAME}.language", f"{NAME}.compiler.errors")):
            names = importlib.import_module("proton.compat.triton.names")
            names.name_as_triton(module, self.name)


class _Distribution(Distribution):
    """What `importlib.metadata.version("triton")` reads."""

    def read_text(self, filename: str) -> str | None:
        return f"Name: {NAME}\nVersion: {_version()}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return Path(path)


# Modules of which all that is in them has the same names elsewhere.
_MOVED = {
    "triton.experimental.gluon.language": "proton.language.gluon",
    "triton.experimental.gluon": "proton.gluon",
}


def _by_rule(name: str) -> str:
    """Where a module's home is that `_HOMES` does not name."""
    for prefix, home in _MOVED.items():
        if name == prefix or name.startswith(f"{prefix}."):
            return home + name.removeprefix(prefix)
    return f"proton.{name.removeprefix('triton.')}"


def _home(name: str) -> str | None:
    """The module of Proton with the names of one of Triton's; None where there is none."""
    home = _HOMES.get(name) or _by_rule(name)
    try:
        return home if importlib.util.find_spec(home) is not None else None
    except ModuleNotFoundError:  # its parent is no package, or not there
        return None


def _lack(name: str) -> str:
    absent = reason(name)
    return (
        f"No module named {name!r}: Proton stands for triton here, and has no such module"
        f"{': ' * bool(absent)}{absent}"
    )
