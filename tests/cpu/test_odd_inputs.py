"""What people pass by mistake to `jit`, `warmup`, a launch, a grid, a target: each is an error of
Proton's that says what to do instead."""

import array
import decimal
import fractions
import functools
import types
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import GPUTarget, LaunchError, ProtonError, UnsupportedLanguageConstruct
from tests.cpu.harness import kernels_of

X = np.zeros(64, np.float32)


@proton.jit
def fill(x_ptr, value, BLOCK: tl.constexpr = 64):
    tl.store(x_ptr + tl.arange(0, BLOCK), value)


# jit


class Holder:
    def method(self, x): ...

    @classmethod
    def of_class(cls, x): ...

    def __call__(self, x): ...


async def coroutine(x): ...


async def asynchronous_generator(x):
    yield x


def generator(x):
    yield x


def plain(x):
    tl.store(x, 1.0)


NO_FUNCTIONS = {
    "len is a function of C": len,
    "got 3, of type int": 3,
    "got 'plain', of type str": "plain",
    "Holder is a class": Holder,
    "of type Holder": Holder(),
    "method is a method": Holder().method,
    "of_class is a method": Holder.__dict__["of_class"],
    "a functools.partial": functools.partial(plain, X),
    "plain is a kernel already|fill is a kernel already": fill,
    "of type Builtin": tl.load,
    "of type ufunc": np.add,
    "coroutine is a coroutine": coroutine,
    "is an asynchronous generator": asynchronous_generator,
    "generator is a generator": generator,
    "of type _lru_cache_wrapper": functools.lru_cache(plain),
    "of type ConstexprFunction": proton.constexpr_function(plain),
    "a method\nhint: write a function outside of the class, or put @": staticmethod(plain),
}


@pytest.mark.parametrize("rule", NO_FUNCTIONS, ids=lambda rule: rule[:30])
def test_what_no_kernel_can_be_made_of(rule: str) -> None:
    with pytest.raises(UnsupportedLanguageConstruct, match=rule) as found:
        proton.jit(NO_FUNCTIONS[rule])
    assert "a kernel is a function, written with def" in str(found.value)
    assert "hint: " in str(found.value)


def test_a_lambda_is_no_kernel() -> None:
    kernel = proton.jit(lambda x: tl.store(x, 1.0))
    with pytest.raises(UnsupportedLanguageConstruct, match=r"(?s)this one is a lambda.*as a def"):
        kernel[(1,)](X)


@pytest.mark.parametrize(
    ("options", "error", "rule"),
    [
        ({"noinlin": True}, TypeError, "no option 'noinlin'; did you mean noinline?"),
        ({"target": "cuda"}, TypeError, "no option 'target'; there are noinline, "),
        ({"noinline": "yes"}, TypeError, "noinline must be a bool, got 'yes'"),
        ({"debug": 1}, TypeError, "debug must be a bool, got 1"),
        ({"do_not_specialize": "x"}, LaunchError, "is a list of parameters' names or positions"),
        ({"do_not_specialize": 0}, LaunchError, "is a list of parameters' names or positions"),
    ],
)
def test_options_of_jit_that_there_are_not(options: Any, error: Any, rule: str) -> None:
    with pytest.raises(error, match=rule.replace("?", r"\?")):
        proton.jit(**options)(plain)


# Launches and warmup


@pytest.mark.parametrize(
    ("keywords", "rule"),
    [
        ({"BLOK": 64}, "unexpected keyword argument 'BLOK'; did you mean BLOCK?"),
        ({"block": 64}, "unexpected keyword argument 'block'; did you mean BLOCK?"),
        ({"num_warp": 4}, "unexpected keyword argument 'num_warp'; did you mean num_warps?"),
        ({"zzz": 4}, "'zzz'; its parameters are x_ptr, value, BLOCK"),
        ({"target": GPUTarget("cuda", 90)}, "call fill.warmup(..., target=...)"),
        ({"device": "cuda"}, "a launch runs where its arguments are: move those"),
        (
            {"waves_per_eu": 2},
            "it is an option for AMD GPUs, which are not supported: leave it out",
        ),
        ({"stream": 3}, "a launch goes to the current stream"),
        ({"grid": (1,)}, "the grid goes in brackets: fill[grid](...)"),
        ({"warmup": True}, "call fill.warmup(...)"),
    ],
)
def test_keywords_that_a_launch_does_not_have(keywords: Any, rule: str) -> None:
    with pytest.raises(LaunchError) as found:
        fill[(1,)](X, 1.0, **keywords)
    assert rule in str(found.value)


def test_missing_arguments_are_named() -> None:
    with pytest.raises(LaunchError, match="'value'; its parameters are x_ptr, value, BLOCK"):
        fill[(1,)](X)


@pytest.mark.parametrize("target", ["cuda", "cuda:90", "cpu", 90, ("cuda", 90)])
def test_targets_that_are_none(target: Any) -> None:
    with pytest.raises(LaunchError, match=r'such as proton.GPUTarget\("cuda", 90\), got'):
        fill.warmup(tl.float32, 1.0, target=target)


def test_parameters_that_have_the_names_of_options() -> None:
    source = """
@proton.jit
def kernel(self, target, grid, args, kwargs, num_warps, stream, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(self + i, tl.load(target + i) + grid + args + kwargs + num_warps + stream)
"""
    kernel = kernels_of(source).kernel
    numbers = {"grid": 1.0, "args": 2.0, "kwargs": 3.0, "num_warps": 4.0, "stream": 5.0}
    given = {"self": tl.float32, "target": tl.float32, **numbers, "N": 4}
    assert kernel.warmup(**given).metadata.get("target", "cpu") == "cpu"
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    kernel[(1,)](y, x, **numbers, N=4)
    kernel[(1,)](self=y, target=x, **numbers, N=4)
    assert (y == 16).all()
    types_ = (tl.float32, tl.float32)
    compiled = kernel.warmup(*types_, *numbers.values(), 4, target=GPUTarget("cuda", 90))
    assert compiled.metadata["target"] == "cuda:90"


HUGE = 1 << 100_000  # an integer whose digits Python refuses to write


@pytest.mark.parametrize(
    ("grid", "rule"),
    [
        (None, "a grid is 1 to 3 integers, or a function that gives them, got None"),
        ("1", "a grid is 1 to 3 integers, or a function that gives them, got '1'"),
        ({1}, "a grid is 1 to 3 integers"),
        (slice(1, 2), "a grid is 1 to 3 integers"),
        (1.5, "a grid is 1 to 3 integers"),
        (float("nan"), "a grid is 1 to 3 integers"),
        ((i for i in (1, 2)), "a grid is 1 to 3 integers"),
        ((1.5,), "grid[0] must be an integer, got 1.5"),
        (((1,),), "grid[0] must be an integer, got (1,)"),
        ((1, None), "grid[1] must be an integer, got None"),
        ((HUGE,), "a grid has fewer than 2147483648 programs, got an integer of"),
        ((-HUGE,), "grid[0] must not be negative, got an integer of"),
        (np.array([1, 1]), "grid[0] must be an integer, got array([1, 1])"),
        (lambda meta: None, "a grid is 1 to 3 integers"),
        (lambda meta: (meta["BLOK"],), "asks for the argument 'BLOK', which the kernel does not"),
        (lambda meta: (meta["BLOK"],), "; did you mean BLOCK?"),
        (lambda: (1,), "cannot be called with the launch's arguments"),
        (int, "cannot be called with the launch's arguments"),
    ],
)
def test_grids_that_are_none(grid: Any, rule: str) -> None:
    with pytest.raises(LaunchError) as found:
        fill[grid](X, 1.0)
    assert rule in str(found.value)


def test_a_mistake_inside_of_a_grids_function_stays_its_own() -> None:
    with pytest.raises(ZeroDivisionError):
        fill[lambda meta: (1 // 0,)](X, 1.0)
    with pytest.raises(TypeError, match="unsupported operand"):
        fill[lambda meta: (meta["BLOCK"] + "x",)](X, 1.0)


def tensor(**known: Any) -> Any:
    """As torch's tensors look."""
    plain_tensor: dict[str, Any] = {
        "device": types.SimpleNamespace(type="cpu"),
        "dtype": "torch.float32",
        "layout": "torch.strided",
        "is_neg": lambda self: False,
        "data_ptr": lambda self: X.ctypes.data,
        "untyped_storage": lambda self: types.SimpleNamespace(
            data_ptr=lambda: X.ctypes.data, nbytes=lambda: X.nbytes
        ),
    }
    return type("Tensor", (), {"__module__": "torch", **plain_tensor, **known})()


def refuses(self: Any) -> Any:
    raise NotImplementedError("Cannot access storage of SparseTensorImpl\nmore")


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("text", "text is for constexprs"),
        ([1, 2], "pass an array of it, as of np.asarray"),
        (b"12", "pass an array of it, as of np.asarray"),
        (memoryview(X), "pass an array of it, as of np.asarray"),
        (array.array("f", [1.0]), "pass an array of it, as of np.asarray"),
        (range(3), "pass an array of it, as of np.asarray"),
        (1j, "kernels have no complex numbers"),
        (np.complex64(1), "kernels have no complex numbers"),
        (decimal.Decimal(1), "pass float(...) or int(...) of it"),
        (fractions.Fraction(1, 2), "pass float(...) or int(...) of it"),
        (tl.float32, "stands for an array in warmup only"),
        (np.float32, "stands for an array in warmup only"),
        (len, "functions are for constexprs"),
        (object(), "must be an array, a number, a bool or None, got object"),
        ({}, "must be an array, a number, a bool or None, got dict"),
        (np.ma.masked_array(X, X > 0), "pass its .data"),
        (HUGE, "does not fit in 64 bits"),
        (
            tensor(layout="torch.sparse_coo", untyped_storage=refuses),
            "is a tensor of layout sparse_coo: pass its .to_dense()",
        ),
        (tensor(untyped_storage=refuses), "has no memory to point to: Cannot access storage"),
        (tensor(is_neg=lambda self: True), "pass its .resolve_neg()"),
        (
            tensor(data_ptr=lambda self: 0, numel=lambda self: 4, shape=(2, 2)),
            "no memory to point to: it is a Tensor of shape (2, 2) whose storage is gone",
        ),
        (tensor(device=types.SimpleNamespace(type="meta")), "which is not supported"),
        (type("dtype", (), {"__module__": "torch"})(), "got torch.dtype"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value[:20],
)
def test_arguments_that_a_kernel_cannot_take(value: Any, rule: str) -> None:
    with pytest.raises(LaunchError) as found:
        fill[(1,)](value, 1.0)
    assert rule in str(found.value)
    assert len(str(found.value)) < 300


def test_a_plain_tensor_is_taken() -> None:
    fill[(1,)](tensor(), 7.0)
    assert (X == 7).all()


# Targets and reinterpret


@pytest.mark.parametrize(
    "arguments", [("cuda", "90"), ("cuda", 90.0), ("cuda", [90]), ("cuda", None), ("hip", 90)]
)
def test_gpu_targets_that_there_are_not(arguments: Any) -> None:
    with pytest.raises(ProtonError, match=r"no target has architecture|the backend of a GPU"):
        GPUTarget(*arguments)
    with pytest.raises(ProtonError, match='is written "cuda:90"'):
        GPUTarget.parse(arguments)


@pytest.mark.parametrize(
    "dtype", ["fp32", np.int32, None, tl.void, tl.block_type(tl.float32, [4]), float]
)
def test_reinterpret_takes_dtypes_of_the_language(dtype: Any) -> None:
    with pytest.raises(LaunchError, match=r"takes a dtype of tl, such as tl\.float32, got"):
        proton.reinterpret(X, dtype)
