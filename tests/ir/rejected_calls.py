"""Kernels that call or evaluate wrongly, or leave scopes in disorder."""

import proton.language as tl
from proton.base.errors import CompileTimeAssertionFailure
from proton.language.function import DeviceFunction
from proton.language.profiling import enter_scope, exit_scope, mark, scope
from tests.ir.rejected import rejected, unsupported


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


@rejected("missing a required argument: 'y'", "helper(n)")
def too_few_arguments(n):
    helper(n)


@rejected("got an unexpected keyword argument 'maks'", "tl.load(x_ptr, maks=1)")
def misspelt_argument(x_ptr):
    tl.load(x_ptr, maks=1)


@rejected("parameter SIZE is a constexpr, got a i32", "needs_constexpr(n, n)")
def constexpr_parameter(n):
    needs_constexpr(n, n)


@rejected("a constexpr needs a value known while compiling, got i32", "SIZE: tl.constexpr = n")
def constexpr_variable(n):
    SIZE: tl.constexpr = n


@rejected("calls nest deeper than 64 at recursive", "recursive(x)", "recursion is not supported")
def calls_recursive(n):
    recursive(n)


@rejected("fails: no 3", "fails(3)")
def failing_constexpr_function(n):
    fails(3)


@rejected("runs while compiling and cannot take a tensor", "fails(n)")
def constexpr_function_of_tensor(n):
    fails(n)


@rejected("1 // 0", "1 // 0")
def divides_by_zero(n):
    1 // 0


@rejected(
    "static assertion failed: too large: 4",
    'tl.static_assert(2 + 2 == 5, f"too large: {2 + 2}")',
    kind=CompileTimeAssertionFailure,
)
def static_assertion(n):
    tl.static_assert(2 + 2 == 5, f"too large: {2 + 2}")


@rejected("tl.static_assert takes a constexpr", "tl.static_assert(n > 0)", "tl.device_assert")
def static_assertion_of_tensor(n):
    tl.static_assert(n > 0)


@rejected("an f-string in a kernel takes constexprs", 'f"{n}"')
def formats_tensor(n):
    tl.static_print(f"{n}")


# Scopes


@rejected("enter_scope('a') is not exited in unclosed", "def unclosed(n):", "close it")
def unclosed(n):
    enter_scope("a")


@rejected("exit_scope('b'): the innermost open scope is 'a'", 'exit_scope("b")')
def wrong_exit(n):
    enter_scope("a")
    exit_scope("b")


@rejected("exit_scope('a'): the innermost open scope is none", 'exit_scope("a")')
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


@rejected("proton.scope is used as `with proton.scope(name):`", 'scope("a")')
def scope_as_call(n):
    scope("a")


@unsupported("'as' in a scope is not supported", 'with scope("a") as s:')
def scope_as_name(n):
    with scope("a") as s:
        pass
