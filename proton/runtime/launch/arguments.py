"""What a kernel's arguments are to the compiler, whichever device it runs on.

A `Parameter` says what the source does, an `Argument` what the code is compiled for in the place
of one value: a type, or a constant. Numbers and constants are the same everywhere; arrays are
described by the back end in whose memory they lie.
"""

import array
import decimal
import functools
import inspect
import numbers
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from proton.base.errors import ArgumentOverflow, BadArguments, LaunchError
from proton.base.words import shown
from proton.language import types as ty
from proton.language.function import DeviceFunction
from proton.language.signature import Signature, TupleForm
from proton.language.surroundings import describe, is_told_by_text

NUMPY_TYPES = {
    "bool": ty.int1,
    "int8": ty.int8,
    "int16": ty.int16,
    "int32": ty.int32,
    "int64": ty.int64,
    "uint8": ty.uint8,
    "uint16": ty.uint16,
    "uint32": ty.uint32,
    "uint64": ty.uint64,
    "float16": ty.float16,
    "float32": ty.float32,
    "float64": ty.float64,
}
# Types that numpy lacks, by the names that torch has for them, and a package (ml_dtypes) that
# teaches them to numpy.
OTHER_TYPES = {
    "bfloat16": ty.bfloat16,
    "float8_e5m2": ty.float8e5,
    "float8_e4m3fn": ty.float8e4nv,
    "float8_e5m2fnuz": ty.float8e5b16,
    "float8_e4m3fnuz": ty.float8e4b8,
    # Scales, and pairs of float4, which kernels take as the bytes that they are.
    "float8_e8m0fnu": ty.uint8,
    "float4_e2m1fn_x2": ty.uint8,
}
ELEMENT_TYPES = NUMPY_TYPES | OTHER_TYPES  # by name: what arrays of any library may hold
# The short name of a type by each of its names, as Triton has it in `runtime.jit`.
type_canonicalisation_dict = {
    name: type_.short
    for name, type_ in [
        *((name, type_) for name, type_ in ELEMENT_TYPES.items()),
        *((type_.name, type_) for type_ in ty.SCALARS),
        *((type_.short, type_) for type_ in ty.SCALARS),
        *(("half", ty.float16), ("float", ty.float32), ("double", ty.float64), ("int", ty.int32)),
    ]
}


def integer_type(name: str, value: int) -> str:
    """i32 where it fits, else i64, else u64."""
    if -(1 << 31) <= value < 1 << 31:
        return "i32"
    if -(1 << 63) <= value < 1 << 63:
        return "i64"
    if 0 <= value < 1 << 64:
        return "u64"
    raise ArgumentOverflow(f"argument {name} = {shown(value)} does not fit in 64 bits")


class Constant:
    """The key of an argument that the code is specialized on: equal where type and value are,
    inside of tuples, too (1, 1.0 and True compare equal in Python, and 0.0 and -0.0). An object
    that may change is what its attributes are now."""

    __slots__ = ("hash", "key", "value")

    def __init__(self, value: Any) -> None:
        self.value, self.key = value, _typed(value)
        self.hash = hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self.key == other.key

    def __hash__(self) -> int:
        return self.hash


def _typed(value: object) -> tuple[object, ...]:
    if type(value) in (int, str, bool):  # most are
        return type(value), value
    if isinstance(value, tuple):
        return type(value), tuple(map(_typed, value))
    if isinstance(value, float):
        return type(value), repr(value)
    if isinstance(value, DeviceFunction):
        return type(value), value, value.revision
    if is_told_by_text(value):
        hash(value)  # raises TypeError for lists and the like
        return type(value), describe(value)
    return type(value), value


@functools.cache
def _descriptor_type(
    element: ty.dtype, block_shape: tuple[int, ...], padding: str
) -> ty.tensor_descriptor_type:
    ty.check_descriptor_block(element, block_shape)
    return ty.tensor_descriptor_type(ty.block_type(element, block_shape), padding)


_ONE, _NONE = Constant(1), Constant(None)
_BOOLS, _INTEGERS, _FLOATS = (bool, np.bool_), (int, np.integer), (float, np.floating)


class TupleKey(NamedTuple):
    """A tuple: its class, and the key, or the argument, of each of its elements."""

    kind: type
    elements: tuple[Any, ...]

    def flat(self) -> list[object]:
        """The elements, in the place of tuples among them theirs."""
        return flat(self.elements)


def flat(elements: Iterable[object]) -> list[Any]:
    """Keys or arguments, with the elements of groups in their place."""
    found: list[Any] = []
    for element in elements:
        group = element.group if isinstance(element, Argument) else element
        if isinstance(group, TupleKey):
            found += group.flat()
        else:
            found.append(element)
    return found


class Argument(NamedTuple):
    """What code is compiled for in the place of one argument: a type, by its short name, or a
    constant, or those of a tuple's elements. `divisible` says that the value is a multiple of
    16, `non_negative` that it is a signed integer from 0 on."""

    type: str | None
    constant: Constant | None = None
    divisible: bool = False
    non_negative: bool = False
    group: TupleKey | None = None

    @staticmethod
    def of(key: "str | Constant | TupleKey", divisible: bool = False) -> "Argument":
        """By what `Parameter.scalar` and `Parameter.pointer` say."""
        if isinstance(key, Constant):
            return Argument(None, key)
        if isinstance(key, TupleKey):
            elements = tuple(map(Argument.of, key.elements))
            return Argument(None, group=key._replace(elements=elements))
        return Argument(key, divisible=divisible)


def signature_of(names: list[str], arguments: Iterable[Argument]) -> Signature:
    """What a kernel is compiled for, from what each of its arguments is."""
    types, constants, tuples = {}, {}, {}
    divisible, non_negative = set(), set()
    waiting = list(zip(names, arguments, strict=True))
    while waiting:
        name, argument = waiting.pop(0)
        if argument.group is not None:
            elements = argument.group.elements
            form = tuples[name] = TupleForm(argument.group.kind, len(elements))
            waiting[:0] = zip(form.names(name), elements, strict=True)
        elif argument.constant is not None:
            constants[name] = argument.constant.value
        else:
            assert argument.type is not None
            types[name] = ty.str_to_ty(argument.type)
            if argument.divisible:
                divisible.add(name)
            if argument.non_negative:
                non_negative.add(name)
    return Signature(types, constants, frozenset(divisible), frozenset(non_negative), tuples)


class ArrayArgument:
    """What a kernel is passed in the place of an array, `base`, of which it says more."""

    base: Any

    def stand_in(self, parameter: "Parameter", element: ty.dtype) -> str | None:
        """Its key, where `base` is a dtype and nothing is launched; None if it has none then."""
        return None


class Parameter:
    """One parameter of a kernel, and what values mean to it.

    `type` is a fixed type, if the source gives one; `specialize` lets code depend on an integer,
    and makes a constant of 1 where the type is not fixed; `align` lets it depend on whether a value
    is a multiple of 16. A key is the short name of a type, or a `Constant`. `num`, `default` and
    the rest are what Triton's have.
    """

    def __init__(
        self,
        name: str,
        *,
        constexpr: bool,
        type: ty.dtype | None,
        const_pointer: bool,
        specialize: bool,
        align: bool = True,
        num: int = 0,
        default: object = inspect.Parameter.empty,
    ) -> None:
        self.name, self.constexpr, self.type = name, constexpr, type
        self.prefix = "*k" if const_pointer else "*"
        self.do_not_specialize, self.do_not_specialize_on_alignment = not specialize, not align
        is_integer = type is not None and type.is_int() and not type.is_bool()
        self.specialize, self.align = specialize and (type is None or is_integer), align
        self.num, self.default = num, default
        self._elements: dict[TupleForm, list[Parameter]] = {}

    @staticmethod
    def plain(name: str, num: int = 0, specialize: bool = False) -> "Parameter":
        """One of which the source says nothing."""
        return Parameter(
            name, constexpr=False, type=None, const_pointer=False, specialize=specialize, num=num
        )

    @property
    def is_constexpr(self) -> bool:
        """True if the code is specialized on its value."""
        return self.constexpr

    @property
    def is_const(self) -> bool:
        """True if it is a pointer that nothing is written through."""
        return self.prefix == "*k"

    @property
    def has_default(self) -> bool:
        """True if a launch may leave it out."""
        return self.default is not inspect.Parameter.empty

    @property
    def annotation(self) -> str:
        """The annotation as text: a type's short name, "constexpr", "const", or ""."""
        if self.constexpr:
            return "constexpr"
        return "const" if self.is_const else self.annotation_type

    @property
    def annotation_type(self) -> str:
        """The short name of the fixed type; "" where there is none."""
        return "" if self.type is None else self.type.short

    def is_tuple(self, value: object) -> bool:
        """True if an argument stands for its elements."""
        return isinstance(value, tuple) and not self.constexpr

    def elements(self, value: tuple[object, ...]) -> "list[Parameter]":
        """A parameter for each element of a tuple; the annotation says nothing of these."""
        return self.elements_of(TupleForm(type(value), len(value)))

    def elements_of(self, form: TupleForm) -> "list[Parameter]":
        """The same, of any tuple of that form."""
        found = self._elements.get(form)
        if found is None:
            found = self._elements[form] = [
                Parameter(
                    name,
                    constexpr=False,
                    type=None,
                    const_pointer=False,
                    specialize=self.specialize,
                    align=self.align,
                )
                for name in form.names(self.name)
            ]
        return found

    def leaves(self, value: Any) -> "Iterator[tuple[Parameter, Any]]":
        """(parameter, value) of an argument, or of all elements of a tuple."""
        if not self.is_tuple(value):
            yield self, value
            return
        for parameter, element in zip(self.elements(value), value, strict=True):
            yield from parameter.leaves(element)

    def scalar(self, value: Any) -> tuple[Any, Any] | None:
        """(key, number) of a number or a constant; None for what may be an array."""
        if self.constexpr or value is None or isinstance(value, ty.constexpr | DeviceFunction):
            return self.constant(value), None
        if isinstance(value, _BOOLS):
            return self._number("i1", bool(value))
        if isinstance(value, _INTEGERS):
            number = int(value)
            if number == 1 and self.specialize and self.type is None:
                return _ONE, None
            return self._number(None, number)
        if isinstance(value, _FLOATS):
            return self._number("fp32", float(value))
        return None

    def _number(self, type_: str | None, number: Any) -> tuple[str, Any]:
        annotation = self.type
        if annotation is None:
            return type_ or integer_type(self.name, number), number
        if annotation.is_ptr():
            raise LaunchError(f"argument {self.name} must be {annotation}, got {number!r}")
        if annotation.is_bool() and isinstance(number, int):
            return annotation.short, bool(number & 1)  # as a register of one bit takes it
        if annotation.is_int():
            low, high = annotation.get_int_min_value(), annotation.get_int_max_value()
            if not isinstance(number, int) or not low <= number <= high:
                raise LaunchError(
                    f"argument {self.name} = {shown(number)} does not fit in {annotation}"
                )
        return annotation.short, number

    def is_array(self, value: object) -> bool:
        """True if a value says where the kernel runs: no constant, number or dtype does."""
        return self.scalar(value) is None and self.stand_in(value) is None

    def pointer(self, element: ty.dtype) -> str:
        """The key of an array of such elements."""
        annotation = self.type
        if annotation is None:
            return self.prefix + element.short
        if not isinstance(annotation, ty.pointer_type) or annotation.element_ty != element:
            raise LaunchError(
                f"argument {self.name} must be {annotation}, got an array of {element}"
            )
        return annotation.short

    def descriptor(self, element: ty.dtype, block_shape: tuple[int, ...], padding: str) -> str:
        """The key of a tensor descriptor."""
        try:
            type_ = _descriptor_type(element, block_shape, padding)
        except ValueError as problem:
            raise LaunchError(f"argument {self.name}: {problem}") from None
        return self.described(type_)

    def described(self, type_: ty.tensor_descriptor_type) -> str:
        """The key of a tensor descriptor of a type."""
        if self.type not in (None, type_):
            raise LaunchError(f"argument {self.name} must be {self.type}, got {type_}")
        return type_.short

    def stand_in(self, value: object) -> str | None:
        """The key of the array, or of the pointer, that a dtype stands for where nothing is
        launched; None for other values, which stand for themselves. The base of a tensor
        descriptor may be such a dtype."""
        if isinstance(value, ArrayArgument) and isinstance(value.base, ty.dtype):
            return value.stand_in(self, value.base)
        if self.constexpr or not isinstance(value, ty.dtype):
            if self.constexpr or not is_torch_dtype(value):
                return None
            value = torch_element(self.name, value)
        return value.short if value.is_ptr() else self.prefix + value.short

    def constant(self, value: object) -> Constant:
        """The key of a value that the code is specialized on."""
        value = ty.unwrap(value)
        if value is None:
            return _NONE
        if isinstance(value, np.generic):
            value = value.item()
        try:
            return Constant(value)
        except TypeError:
            raise BadArguments(
                f"constexpr {self.name} must be hashable, as a tuple is, got {type(value).__name__}"
            ) from None


# What arrays have in common on all devices


def is_torch(value: object) -> bool:
    """True if a value is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_torch_dtype(value: object) -> bool:
    """True if a value is a dtype of torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.dtype)


def torch_element(name: str, dtype: object) -> ty.dtype:
    """The type that torch has another object for."""
    element = ELEMENT_TYPES.get(str(dtype).removeprefix("torch."))
    if element is None:
        raise LaunchError(f"argument {name} has dtype {dtype}, which is not supported")
    return element


def is_addressed(value: object) -> bool:
    """True if a value is an object of nobody's library that says an address and a dtype."""
    is_known = isinstance(value, ArrayArgument) or is_torch(value)
    return not is_known and callable(getattr(value, "data_ptr", None)) and hasattr(value, "dtype")


def addressed_element(name: str, value: Any) -> ty.dtype:
    """The type of the elements of such an object, whose dtype is ours, torch's or numpy's."""
    if isinstance(value.dtype, ty.dtype):
        return value.dtype
    if is_torch_dtype(value.dtype):
        return torch_element(name, value.dtype)
    kind = str(getattr(value.dtype, "name", value.dtype))  # numpy's, or what Triton calls it
    short = type_canonicalisation_dict.get(kind)
    return torch_element(name, kind) if short is None else ty.str_to_ty(short)


def check_torch(name: str, tensor: Any) -> None:
    """Raises LaunchError for what torch has besides tensors, and for tensors whose elements do not
    lie in memory as they are."""
    if not hasattr(tensor, "data_ptr"):
        kind = f"{type(tensor).__module__}.{type(tensor).__name__}"
        raise BadArguments(
            f"argument {name} must be an array, a number, a bool or None, got {kind}"
        )
    layout = str(tensor.layout).removeprefix("torch.")
    if layout != "strided":
        raise LaunchError(
            f"argument {name} is a tensor of layout {layout}: pass its .to_dense(), or its values "
            "and indices as arguments of their own"
        )
    if tensor.is_neg():
        raise LaunchError(
            f"argument {name} is a view whose elements torch negates when it reads them: pass its "
            ".resolve_neg()"
        )


def refused(name: str, value: object) -> LaunchError:
    """The error of a value that no kernel can take."""
    return BadArguments(
        f"argument {name} must be an array, a number, a bool or None, got {type(value).__name__}"
        f"{_instead(value)}"
    )


def _instead(value: object) -> str:
    """What to pass in the place of a value that a kernel cannot take."""
    if isinstance(value, str):
        return ": text is for constexprs (annotate the parameter with tl.constexpr)"
    if isinstance(value, list | range | bytes | bytearray | memoryview | array.array):
        return ": pass an array of it, as of np.asarray"
    if isinstance(value, complex | np.complexfloating):
        return ": kernels have no complex numbers, pass two real ones"
    if isinstance(value, numbers.Number | decimal.Decimal) and not isinstance(value, int | float):
        return ": pass float(...) or int(...) of it"
    if isinstance(value, ty.dtype | type | np.dtype):
        return ": a dtype of tl, as tl.float32, stands for an array in warmup only"
    if callable(value):
        return ": functions are for constexprs (annotate the parameter with tl.constexpr)"
    return ""
