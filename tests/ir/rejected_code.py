"""Kernels that break a rule of the language itself: constructs, names, control flow."""

import proton.language as tl
from proton.language.function import DeviceFunction
from proton.language.profiling import scope
from tests.ir.rejected import rejected, unsupported

COUNT = 4
SHAPE = (4, 3)


def plain(x):
    return x


@DeviceFunction
def helper(x, y):
    return x + y


# Constructs outside the language


@unsupported("break in an unrolled loop under a condition of the run", "break", "use tl.range")
def breaks(n):
    for i in tl.static_range(4):
        if n == i:
            break


@unsupported("continue inside a scope is not supported", "continue", "end the scope before")
def continues(n):
    for _i in range(n):
        with scope("inner"):
            continue


@unsupported("the expression Lambda is not supported", "lambda x: x", "@proton.jit")
def has_lambda(n):
    f = lambda x: x


@unsupported("the statement try is not supported", "try:", "tl.device_assert")
def has_try(n):
    try:
        x = n
    finally:
        pass


@unsupported("a definition inside a kernel is not supported", "class Inner:", "at module level")
def has_class(n):
    class Inner:
        pass


@unsupported("a definition inside a kernel is not supported", "def inner", "at module level")
def has_def(n):
    def inner():
        pass


@unsupported("assignment to x[i] is not supported", "x[0] = 1", "tl.where")
def assigns_element(n):
    x = tl.zeros((4,), tl.int32)
    x[0] = 1


@unsupported("assignment to an attribute is not supported", "x.shape = 1", "a new name")
def assigns_attribute(n):
    x = tl.zeros((4,), tl.int32)
    x.shape = 1


@unsupported("starred assignment targets are not", "a, *b = 1, 2, 3", "name each element")
def starred_target(n):
    a, *b = 1, 2, 3


@unsupported("the statement delete is not supported", "del x", "leave it out")
def deletes(n):
    x = n
    del x


@unsupported("the expression Dict is not supported", "{}", "a tuple")
def has_dict(n):
    x = {}


@unsupported("else of a loop is not supported", "for i in range(n):", "after the loop")
def loop_else(n):
    for i in range(n):
        pass
    else:
        pass


@unsupported("a for loop over anything but range or a tuple", "for x in n:", "range")
def loops_over_tensor(n):
    for x in n:
        pass


@unsupported("Cannot have `return` statements inside", "return", "return after it")
def returns_in_loop(n):
    for i in range(n):
        if i > 2:
            return


@unsupported("with on anything but proton.scope", "with n:", "proton.scope")
def other_context(n):
    with n:
        pass


@unsupported("** in a call is not supported", "helper(**n)", "by its name")
def double_star(n):
    helper(**n)


@rejected("must be a printable constexpr str, got i32", "print(n)", "tl.static_print")
def prints(n):
    print(n)


@unsupported("operator MatMult is not supported", "a @ a", "tl.dot(a, b)")
def matrix_operator(n):
    a = tl.zeros((16, 16), tl.float32)
    a @ a


# Names


@rejected("missing is not defined", "missing", "as a parameter")
def undefined_name(n):
    missing + n  # noqa: F821


@rejected("COUNT = 4 is not a constexpr", "COUNT", "COUNT = tl.constexpr(4)")
def plain_global(n):
    n + COUNT


@rejected("SHAPE = (4, 3) is not a constexpr", "SHAPE", "tl.constexpr")
def plain_tuple_global(n):
    tl.zeros(SHAPE, tl.int32)


@rejected("plain is a plain Python function", "plain", "@proton.jit")
def calls_plain(n):
    plain(n)


@rejected("y may be undefined here: only one branch of an if assigns it", "y", "assign it before")
def defined_in_one_branch(n):
    if n > 0:
        y = n
    y + 1


@rejected("y may be undefined here: it is assigned inside a loop", "y", "assign it before")
def defined_in_loop(n):
    for i in range(n):
        y = i
    y + 1


@rejected("a tensor has no attribute 'size'", "x.size", "the methods of tl")
def unknown_attribute(n):
    x = tl.zeros((4,), tl.int32)
    x.size


@rejected("not enough values to unpack (expected 3, got 2)", "a, b, c = n, n", "one name")
def unpacks_wrong(n):
    a, b, c = n, n


# Control flow


@rejected(
    "Loop-carried variable x has initial type i32, and the loop makes it fp32",
    "for i in range(n):",
    "cast it",
)
def loop_changes_type(n):
    x = 0
    for i in range(n):
        x = i * 0.5


@rejected(
    "Loop-carried variable x has initial type fp32[4], and the loop makes it fp32[4, 1]",
    "while",
    "before the loop",
)
def while_changes_shape(n, f):
    x = tl.full((4,), f, tl.float32)
    while n > 0:
        x = x[:, None]


@rejected(
    "Mismatched type for x: i32 after one branch of the if and fp32 after",
    "if n > 0:",
    "cast one",
)
def branches_disagree(n, f):
    if n > 0:
        x = n
    else:
        x = f
    x + 1


@rejected("a condition must be a scalar, got i1[4]", "if tl.arange(0, 4) > n:", "tl.where")
def block_condition(n):
    if tl.arange(0, 4) > n:
        pass


@rejected("the step of a loop cannot be 0", "for i in range(0, n, 0):", "a negative step")
def zero_step(n):
    for i in range(0, n, 0):
        pass


@rejected("a loop bound must be an integer scalar, got fp32", "for i in range(f):", ".to(tl.int32)")
def float_bound(f):
    for i in range(f):
        pass


@rejected("tl.static_range takes constexpr integers", "for i in tl.static_range(n):", "tl.range")
def dynamic_static_range(n):
    for i in tl.static_range(n):
        pass


@rejected(
    "tl.range has no argument 'unroll'", "for i in tl.range(0, n, unroll=2):", "loop_unroll_factor"
)
def unknown_loop_hint(n):
    for i in tl.range(0, n, unroll=2):
        pass


@rejected("kernel returns_value returns a value", "", "store it through a pointer")
def returns_value(n):
    return n


@rejected("the loop changes x, which was None before it", "for _i in range(n):", "a new name")
def loop_changes_none(n):
    x = None
    for _i in range(n):
        if x is not None:
            n += x
        x = n


@rejected("the loop changes mode, which was 'a' before it", "while n > 0:", "a new name")
def loop_changes_text(n):
    mode = "a"
    while n > 0:
        mode = "b"
        n -= 1


@rejected("one path returns 2 values, another 1", "if n > 0:", "the same number")
def returns_differ(n):
    helper_of_two(n)


@DeviceFunction
def helper_of_two(n):
    if n > 0:
        return n, n
    return n


@rejected("loop_unroll_factor must be a constexpr integer", "for i in tl.range(", "leave it out")
def unrolls_by_tensor(n):
    for i in tl.range(0, 4, loop_unroll_factor=n):
        pass


@rejected("the step of a loop cannot be 0", "for i in tl.static_range(0, 4, 0):", "negative step")
def zero_static_step(n):
    for i in tl.static_range(0, 4, 0):
        pass


@unsupported("the statement import is not supported", "import math", "at module level")
def imports(n):
    import math  # noqa: F401


@unsupported("the statement raise is not supported", "raise ValueError", "tl.static_assert")
def raises(n):
    raise ValueError


@rejected("unrolls at most 65536 iterations", "for i in tl.static_range(2**100):", "use tl.range")
def unrolls_for_ever(n):
    for i in tl.static_range(2**100):
        pass


@rejected("too many values to unpack (expected 2, got 3)", "a, b = 1, 2, 3", "one name for each")
def unpacks_too_many(n):
    a, b = 1, 2, 3


@rejected("cannot unpack non-iterable value", "[a + b for a, b in (1, 2)]", "one name for each")
def unpacks_a_number(n):
    values = [a + b for a, b in (1, 2)]
