"""Public libraries whose kernels are tried: their packages, and how their kernels are imported.

What is measured are kernels. A package that imports its own CUDA extension, or a framework, before
its kernels can be reached is imported without its `__init__`; what is asked about a GPU where there
is none, the CPU answers as an H200 would.
"""

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import sys
import time
import types
from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

# Packages of a few kernels each, which are asked for together.
SMALL = (
    *("accelerated_scan", "adasplash", "causal_conv1d", "conch", "cut_cross_entropy"),
    *("flash_attn", "flash_colsum", "flash_kmeans", "flash_sinkhorn"),
    *("flashnn", "gemlite", "gptqmodel", "lanczos_triton", "late_interaction_kernels"),
    *("lion_pytorch", "localcorr", "mamba_ssm", "megablocks", "memeff", "mlstm_kernels"),
    *("moe_ops", "native_sparse_attention_pytorch", "sageattention", "spconv_triton", "stk"),
    *("torch_fps", "torchnorm", "tridec", "triton_augment", "triton_csprng"),
    "triton_muon_adamw",
)
MORE = (
    *("axolotl", "comfy_kitchen", "exllamav3", "flash_attention_triton", "fused_turboquant"),
    *("inf_cl", "lightning_attn", "megatron", "modelopt", "openfold3", "trifast", "verl"),
)
# What kernels are asked for by, and the packages that they are in.
PACKAGES = {
    "liger": "liger_kernel",
    "fla": "fla",
    "gems": "flag_gems",
    "lmdeploy": "lmdeploy",
    "lightllm": "lightllm",
    "unsloth": "unsloth",
    "torchao": "torchao",
    "bitsandbytes": "bitsandbytes",
    "xformers": "xformers",
    "flashinfer": "flashinfer",
    "fbgemm": "fbgemm_gpu",
    "triton_kernels": "triton_kernels",
    "vllm": "vllm",
    "sglang": "sglang",
    "small": " ".join(SMALL),
    "more": " ".join(MORE),
}
SMS = 132


def prefixes(library: str) -> tuple[str, ...]:
    """What the names of modules of a library begin with."""
    return tuple(f"{package}." for package in PACKAGES[library].split())


def bare(*packages: str) -> None:
    """Lets modules of packages be imported without the packages' own `__init__`. A package comes
    after the one that it is in."""
    for name in packages:
        spec = importlib.util.find_spec(name)
        assert spec is not None, name
        assert spec.submodule_search_locations is not None, name
        _enter(name, __path__=list(spec.submodule_search_locations))


class _Mocks(types.ModuleType):
    """A module that has whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, MagicMock(name=f"{self.__name__}.{name}"))
        return vars(self)[name]


class _Rest(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what of a package is none of some modules."""

    def __init__(self, package: str, modules: set[str]) -> None:
        self.inside, self.modules = f"{package}.", modules

    def find_spec(self, name: str, path: object, target: object = None) -> Any:
        if name.startswith(self.inside) and name not in self.modules:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return _Mocks(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing to run."""


def alone(package: str, real: dict[str, str]) -> None:
    """Lets modules of a package, which are named by the packages that they are in, be imported as
    they are, without any `__init__`; in the place of all its others stand mocks."""
    modules = {
        ".".join(filter(None, (package, inner, name)))
        for inner, names in real.items()
        for name in names.split()
    }
    parts = [name.split(".") for name in modules]
    bare(*sorted({".".join(of[:n]) for of in parts for n in range(1, len(of))}))
    sys.meta_path.insert(0, _Rest(package, modules))


@contextlib.contextmanager
def absent(name: str) -> Iterator[None]:
    """Keeps a library from finding another one that it can do without."""
    before = {name: sys.modules[name]} if name in sys.modules else {}
    sys.modules[name] = None  # type: ignore[assignment]
    yield
    del sys.modules[name]
    sys.modules.update(before)


def stand_in(name: str, **contents: Any) -> None:
    """Puts a module in the place of one that a library imports and its kernels do not need."""
    _enter(name, __path__=[], **contents)


def _enter(name: str, **contents: Any) -> None:
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    vars(module).update(contents)
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, module)


def middle(*modules: types.ModuleType) -> None:
    """Leaves kernels one configuration of those that they would measure."""
    from triton.runtime.autotuner import Autotuner

    for module in modules:
        for kernel in vars(module).values():
            if isinstance(kernel, Autotuner):
                kernel.configs = [kernel.configs[len(kernel.configs) // 2]]


class _Device(contextlib.nullcontext[None]):
    """In the place of torch.cuda.device."""

    idx = 0


class _Event:
    """In the place of torch.cuda.Event, for libraries that time their own tuning."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.at = 0.0

    def record(self, stream: object = None) -> None:
        self.at = time.perf_counter() * 1e3

    def synchronize(self) -> None:
        """Nothing is behind on a CPU."""

    def elapsed_time(self, end: "_Event") -> float:
        return end.at - self.at


def pretend_cuda() -> None:
    """Answers what libraries ask about the device that tensors of the CPU are on."""
    import torch

    properties = types.SimpleNamespace(
        multi_processor_count=SMS,
        major=9,
        minor=0,
        name="cpu",
        L2_cache_size=50 << 20,
        shared_memory_per_block_optin=227 << 10,
    )
    answers = {
        "get_device_properties": lambda *_: properties,
        "get_device_capability": lambda *_: (9, 0),
        "get_device_name": lambda *_: properties.name,
        "current_device": lambda: 0,
        "current_stream": lambda *_: None,
        "default_stream": lambda *_: None,
        "synchronize": lambda *_: None,
        "device": _Device,
        "Event": _Event,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    torch.cpu.device = _Device  # type: ignore[attr-defined]
    torch.cpu.get_device_properties = answers["get_device_properties"]  # which torch 2.14 has
    torch._C._cuda_getCurrentRawStream = lambda *_: 0  # type: ignore[assignment]
    is_cuda: Any = torch.Tensor.is_cuda
    inside = tuple(itertools.chain(*map(prefixes, PACKAGES)))

    def answer(tensor: torch.Tensor) -> bool:
        asks: str = sys._getframe(1).f_globals.get("__name__", "")
        return asks.startswith(inside) or bool(is_cuda.__get__(tensor))

    torch.Tensor.is_cuda = property(answer)  # type: ignore[assignment]
    torch.Tensor.cuda = lambda tensor, *_: tensor  # type: ignore[assignment,method-assign]


def cpu_as_cuda(*modules: Any) -> None:
    """Where there is no GPU, modules make on the CPU what they ask CUDA for, and do not take
    another way for tensors of a CPU."""
    import torch

    if torch.cuda.is_available():
        return

    def anywhere(make: Any) -> Any:
        return lambda *args, device, **kwargs: make(
            *args, device=None if device == "cuda" else device, **kwargs
        )

    contents = vars(torch) | {name: anywhere(getattr(torch, name)) for name in ("empty", "full")}
    contents["device"] = lambda _: None
    contents["version"] = types.SimpleNamespace(cuda="12.8", hip=None)
    for module in modules:
        module.torch = types.SimpleNamespace(**contents)
