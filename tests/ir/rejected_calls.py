"""Kernels that call or evaluate wrongly, or leave scopes in disorder."""

import math
from typing import Any, NamedTuple

import numpy as np

import proton.language as tl
from proton.base.errors import CompileTimeAssertionFailure
from proton.language.function import DeviceFunction, constexpr_function, must_use_result
from proton.language.profiling import (
    allocate_event,
    end_event,
    enter_scope,
    exit_scope,
    mark,
    scope,
    start_event,
)
from tests.ir.rejected import rejected, unsupported


class Pair(NamedTuple):
    first: Any
    second: Any


NAN = tl.constexpr(float("nan"))


@DeviceFunction
def helper(x, y):
    return x + y


@DeviceFunction
def recursive(x):
    return recursive(x)


@DeviceFunction
def needs_constexpr(x, SIZE: tl.constexpr):
    return x + SIZE


@tl.constexpr_function
def fails(x):
    raise ValueError(f"no {x}")


# Calls and compile-time evaluation


@rejected("missing a required argument: 'y'", "helper(n)", "its parameters are (x, y)")
def too_few_arguments(n):
    helper(n)


@rejected(
    "got an unexpected keyword argument 'maks'", "tl.load(x_ptr, maks=1)", "(pointer, mask=None"
)
def misspelt_argument(x_ptr):
    tl.load(x_ptr, maks=1)


@rejected("calls nest deeper than 64 at recursive", "recursive(x)", "recursion is not supported")
def calls_recursive(n):
    recursive(n)


@rejected("fails: ValueError: no 3", "fails(3)", "it runs while compiling")
def failing_constexpr_function(n):
    fails(3)


@tl.constexpr_function
def itself(x):
    return x


@rejected("itself runs while compiling, and returned tensor(", "itself(n)", "@proton.jit function")
def constexpr_function_of_tensor(n):
    itself(n)


@must_use_result
@DeviceFunction
def increased(x):
    return x + 1


@must_use_result("it changes nothing")
@constexpr_function
def squared(x):
    return x * x


@rejected("The result of increased is not being used.", "increased(n)", "give it a name")
def drops_a_result(n):
    kept = increased(n)
    increased(kept) + increased(n)
    increased(n)


@rejected("The result of squared is not being used.", "squared(3)", "it changes nothing")
def drops_a_constant(n):
    kept = squared(2)
    squared(kept) + squared(3)
    squared(3)


@rejected("The result of tl.advance is not being used.", "tl.advance(p, (4,))", "does not move")
def drops_a_block_pointer(n, x_ptr):
    p = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (16,), (0,))
    tl.advance(p, (4,))


@rejected("1 // 0", "1 // 0", "Python evaluates this")
def divides_by_zero(n):
    1 // 0


@rejected(
    "static assertion failed: too large: 4",
    'tl.static_assert(2 + 2 == 5, f"too large: {2 + 2}")',
    "the constexpr arguments",
    kind=CompileTimeAssertionFailure,
)
def static_assertion(n):
    tl.static_assert(2 + 2 == 5, f"too large: {2 + 2}")


@rejected("tl.static_assert takes a constexpr", "tl.static_assert(n > 0)", "tl.device_assert")
def static_assertion_of_tensor(n):
    tl.static_assert(n > 0)


@rejected("an f-string in a kernel takes constexprs", 'f"{n}"', "{x.type}")
def formats_tensor(n):
    tl.static_print(f"{n}")


# Scopes


@rejected("enter_scope('a') is not exited in unclosed", 'enter_scope("a")', "close it")
def unclosed(n):
    enter_scope("a")


@rejected("exit_scope('b'): the innermost open scope is 'a'", 'exit_scope("b")', "reverse order")
def wrong_exit(n):
    enter_scope("a")
    exit_scope("b")


@rejected(
    "exit_scope('a'): the innermost open scope is none", 'exit_scope("a")', "in the same block"
)
def exit_without_enter(n):
    exit_scope("a")


@unsupported("return inside a scope is not supported", "return", "after the with block")
def returns_in_scope(n):
    with scope("a"):
        return


@rejected("without '/' or ' + ', got 'a/b'", 'scope("a/b")', "a constexpr str")
def slash_in_name(n):
    with scope("a/b"):
        pass


@rejected("a scope's name is a non-empty str", 'mark("")', "a constexpr str")
def empty_name(n):
    mark("")


@rejected("payload x must be a scalar number, got i32[4]", "scope(", "tl.max")
def block_payload(n):
    with scope("a", x=tl.arange(0, 4)):
        pass


@rejected("when of a must be a scalar bool or integer, got i1[4]", "scope(", "reduce it first")
def when_of_a_block(n):
    with scope("a", when=tl.arange(0, 4) < n):
        pass


@rejected("when of a must be a scalar bool or integer, got fp32", "enter_scope(", "compare it")
def when_of_a_float(n):
    enter_scope("a", when=n * 0.5)
    exit_scope("a")


@rejected("when of a must be a scalar bool or integer, got None", "mark(", "write a comparison")
def when_of_nothing(n):
    mark("a", n, when=None)


@rejected("an event's name is a non-empty str", "allocate_event(", "a constexpr str")
def event_without_name(n):
    allocate_event("")


@rejected("an event's name is a non-empty str", "start_event(", "a constexpr str")
def event_with_a_path(n):
    start_event("a/b")


@rejected("start_event takes an event, got i32", "start_event(", "allocate_event")
def start_of_a_tensor(n):
    start_event(n)


@rejected("end_event takes an event, got 3", "end_event(", "allocate_event")
def end_of_a_number(n):
    end_event(3)


@rejected("proton.start_event: missing a required argument: 'event'", "start_event()", "(event")
def start_of_nothing(n):
    start_event()


@rejected("proton.scope is used as `with proton.scope(name):`", 'scope("a")', "proton.enter_scope")
def scope_as_call(n):
    scope("a")


@unsupported("'as' in a scope is not supported", 'with scope("a") as s:', "leave it out")
def scope_as_name(n):
    with scope("a") as s:
        pass


@rejected("proton.scope: missing a required argument: 'name'", "scope()", "(name")
def scope_without_name(n):
    with scope():
        pass


@rejected("multiple values for argument 'name'", 'scope("a", name=n)', "(name")
def scope_with_two_names(n):
    with scope("a", name=n):
        pass


@rejected("enter_scope('a') is not exited in its block", 'enter_scope("a")', "in the same block")
def scope_left_open_in_a_scope(n):
    with scope("outer"):
        enter_scope("a")


@rejected("exit_scope('a'): the innermost open scope is none", 'exit_scope("a")', "reverse order")
def scope_exited_in_a_branch(n):
    enter_scope("a")
    if n > 0:
        exit_scope("a")


@rejected("enter_scope('a') is not exited in its block", 'enter_scope("a")', "in the same block")
def scope_left_open_in_a_loop(n):
    for _i in range(n):
        enter_scope("a")


@rejected("exit_scope('outer'): the innermost open scope is none", 'exit_scope("outer")', "in the")
def with_scope_exited_inside(n):
    with scope("outer"):
        exit_scope("outer")


@rejected("mark: too many positional arguments", 'mark("a", n, n)', "(name")
def mark_of_two(n):
    mark("a", n, n)


# What Python raises while compiling is an error of the kernel, at its place


@unsupported("'in' on tensors is not supported", "3 in n", "(x == a) | (x == b)")
def membership_in_tensor(n):
    3 in n


@unsupported("'in' on tensors is not supported", "n in (1, 2)", "(x == a) | (x == b)")
def membership_of_tensor(n):
    n in (1, 2)


@rejected("3 in 4: TypeError", "3 in 4", "Python evaluates it")
def membership_in_number(n):
    3 in 4


@rejected("* unpacks a tuple, got i32", "tl.program_id(*n)", "one by one")
def unpacks_tensor(n):
    tl.program_id(*n)


@rejected("* unpacks a tuple, got 3", "helper(*3)", "one by one")
def unpacks_number(n):
    helper(*3)


@rejected("- 'a': TypeError", '-"a"', "Python evaluates this")
def negates_text(n):
    -"a"


@rejected("1 << -1: ValueError", "1 << -1", "Python evaluates this")
def shifts_by_negative(n):
    1 << -1


@rejected("2.0 ** 5000: OverflowError", "2.0 ** 5000", "Python evaluates this")
def overflows(n):
    2.0 ** 5000  # fmt: skip


@rejected("index: IndexError: tuple index out of range", "(1, 2)[2]", "Python evaluates it")
def indexes_past_the_end(n):
    (1, 2)[2]


@rejected("index: TypeError", "n.shape[None]", "Python evaluates it")
def indexes_by_none(n):
    n.shape[None]


@rejected("ValueError: Unknown format code 'd'", 'f"{1.5:d}"', "Python evaluates it")
def formats_wrong(n):
    f"{1.5:d}"


@rejected("len: TypeError: object of type 'int' has no len()", "len(3)", "Python evaluates it")
def length_of_number(n):
    len(3)


@rejected("a scalar has no len()", "len(n)", "only blocks and tuples")
def length_of_scalar(n):
    len(n)


@rejected("int: ValueError: invalid literal", 'int("x")', "Python evaluates it")
def integer_of_text(n):
    int("x")


@rejected("len: missing a required argument: 'value'", "len()", "its parameters are (value")
def length_of_nothing(n):
    len()


@rejected("max of numbers that are known while compiling takes no nan", "max(", "tl.maximum")
def greatest_of_nan(n):
    max(1.0, float("nan"))


@rejected("min of numbers that are known while compiling takes no -0.0", "min(", "tl.minimum")
def least_of_minus_zero(n):
    min(0.0, -0.0)


@rejected("max takes two values or more, got 1", "max(n)", "tl.max(x, axis=0)")
def maximum_of_one(n):
    max(n)


@rejected("isinstance: TypeError", "isinstance(n, 3)", "Python evaluates it")
def instance_of_number(n):
    isinstance(n, 3)


@rejected("3 cannot be called", "three(n)", "a function of the language")
def calls_number(n):
    three = 3
    three(n)


@rejected("i32 cannot be called", "n(1)", "a function of the language")
def calls_tensor(n):
    n(1)


@rejected("a tuple has no field 'foo'", "n.shape.foo", "its elements have numbers: x[0]")
def attribute_of_tuple(n):
    n.shape.foo


@rejected("is a tuple, and has no method 'sort'", "a.sort", "write a new tuple")
def sorts(n):
    a = [2, n]
    a.sort()


@rejected("a Pair has no field 'secnd'; did you mean second?", "p.secnd", "it has first, second")
def field_of_named_tuple(n):
    p = Pair(n, 2)
    p.secnd


@rejected("has no name 'lod'; did you mean load?", "tl.lod", "the names that it has")
def unknown_op(n):
    tl.lod(n)


@rejected("'x' cannot be of type i32[4]", 'tl.full((4,), "x", tl.int32)', "a tensor")
def fills_with_text(n):
    tl.full((4,), "x", tl.int32)


@rejected("nan as i32: ValueError", "tl.full((4,), NAN, tl.int32)", "a type that can hold")
def fills_with_nan(n):
    tl.full((4,), NAN, tl.int32)


@rejected("tl.maximum(1, 'a'): TypeError", 'tl.maximum(1, "a")', "Python evaluates this")
def maximum_of_text(n):
    tl.maximum(1, "a")


@rejected("tl.dot: out_dtype must be a dtype, got 3", "tl.dot(a, a, out_dtype=3)", "tl.float32")
def dot_to_number(n):
    a = tl.zeros((16, 16), tl.float32)
    tl.dot(a, a, out_dtype=3)


@rejected(
    "invalid axis 1.5, which must lie in [-2, 2)",
    "tl.expand_dims(",
    "negative axes",
)
def expands_between_axes(n):
    tl.expand_dims(tl.arange(0, 4), 1.5)


@rejected("tl.static_print: TypeError", "tl.static_print(1, sep=2)", "what print takes")
def prints_with_number(n):
    tl.static_print(1, sep=2)


@rejected("tl.static_assert: missing a required argument: 'cond'", "tl.static_assert()", "(cond")
def asserts_nothing(n):
    tl.static_assert()


@rejected(
    "timeout_ns must be non-negative",
    "core.static_assert(",
    "constexpr arguments",
    kind=CompileTimeAssertionFailure,
)
def waits_until_before(n):
    tl.atomic_poll(n.to(tl.int64).to(tl.pointer_type(tl.int32)), 1, timeout_ns=-1)


@DeviceFunction
def returns_in_a_branch_not_taken(x):
    taken = False
    if taken:
        return x


@rejected(
    "the operand must be a tensor or a number, got None",
    "tl.store(x_ptr, returns_in_a_branch_not_taken(0))",
    "a function gives None",
)
def stores_nothing(x_ptr):
    tl.store(x_ptr, returns_in_a_branch_not_taken(0))


# Names that were meant


@rejected("module 'proton.language' has no name 'flaot32'; did you mean float32?", "tl", "dir")
def misspelled_dtype(n):
    tl.zeros((4,), tl.flaot32)


@rejected("offsest is not defined; did you mean offsets?", "offsest", "assign it first")
def misspelled_variable(n):
    offsets = n + 1
    offsest + 1  # noqa: F821


@rejected("unexpected keyword argument 'maks'; did you mean mask?", "tl.load", "parameters")
def misspelled_argument(x_ptr):
    tl.load(x_ptr, maks=True)


@rejected("a tensor has no attribute 'shap'; did you mean shape?", "n.shap", "it has dtype")
def misspelled_attribute(n):
    n.shap


@rejected("tl.range has no argument 'num_stage'; did you mean num_stages?", "for", "hints are")
def misspelled_range_hint(n):
    for _ in tl.range(n, num_stage=2):
        pass


@rejected("numpy.sum is a plain Python function", "np.sum", "use tl.sum")
def numpy_function(n):
    np.sum(n)


@rejected("exp of math is Python that runs while compiling", "math.exp(f)", "use tl.exp")
def math_function(f):
    math.exp(f)


@rejected("is a tuple, and has no method 'append'", "a.append", "write x = x + (value,)")
def appends(n):
    a = [1]
    a.append(2)


@rejected("a kernel makes no tensor by its class", "tl.tensor(0, 16)", "use tl.full")
def makes_tensor(n):
    tl.tensor(0, 16)


@rejected("an integer of 100001 bits does not fit in 64 bits", "1.0", "split it")
def huge_number(n):
    1.0 * n + (1 << 100000)


@rejected("an attribute's name is a constexpr str, got 3", "getattr(n, 3)", "write 'name'")
def attribute_by_number(n):
    getattr(n, 3)


@rejected("is not a constexpr", "tl.__dict__", "pass it as a parameter")
def global_of_any_length(n):
    tl.__dict__


# Combine functions


@DeviceFunction
def prints(a, b):
    tl.device_print("a", a)
    return a + b


@DeviceFunction
def waits(a, b):
    tl.debug_barrier()
    return a + b


@DeviceFunction
def makes_a_block(a, b):
    return a + tl.sum(tl.arange(0, 4), 0) + b


@rejected("prints may only compute: it cannot print", "tl.device_print", "before or after")
def combine_prints(n):
    tl.reduce(tl.arange(0, 4), 0, prints)


@rejected("waits may only compute: it cannot print", "tl.debug_barrier()", "before or after")
def combine_waits(n):
    tl.associative_scan(tl.arange(0, 4), 0, waits)


@rejected("makes_a_block works on scalars", "tl.arange(0, 4)", "it gets elements")
def combine_makes_a_block(n):
    tl.reduce(tl.arange(0, 4), 0, makes_a_block)
