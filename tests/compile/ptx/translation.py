"""PTX to Python: each basic block becomes a function of the threads that execute it.

A register is an array with an element per thread; an instruction computes for all threads and
changes the registers of those that execute it. What is more than arithmetic is a method of the
machine, by the instruction's name.
"""

import functools
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

import numpy as np

from tests.compile.ptx.numbers import BITS, FLOATS, SCOPE, as_bits, unsigned, value_of
from tests.compile.ptx.text import Instruction, Kernel, address_of, inside

_NO_EFFECT = (
    "membar", "nanosleep", "prefetch", "prefetchu", "griddepcontrol", "setmaxnreg",
    "createpolicy", "applypriority", "discard",
)  # fmt: skip
_OPAQUE = (
    "shfl",
    "vote",
    "elect",
    "redux",
    "ldmatrix",
    "stmatrix",
    "mma",
    "wgmma",
    "bar",
    "barrier",
)
_OPAQUE += ("pmevent", "cp", "mbarrier", "fence", "atom", "red", "tensormap")
_CARRIES = ("mad.lo.cc.u32", "madc.hi.u32", "madc.lo.cc.u32", "add.cc.u32", "addc.u32")
Registers = dict[str, np.ndarray]


def put(register: np.ndarray, values: np.ndarray, where: np.ndarray) -> None:
    """Changes the register of some threads."""
    np.copyto(register, as_bits(values), where=where, casting="unsafe")


class Translation:
    """A kernel's blocks as functions of a mask: which threads execute it.

    A block is translated when it is executed first. Tests run a kernel several times: its code is
    kept with it, and how the objects are made that the code has names for. The objects are those of
    one run.
    """

    def __init__(
        self, kernel: Kernel, registers: Registers, special: Mapping[str, np.ndarray], machine: Any
    ) -> None:
        self.kernel, self.registers, self.special, self.machine = (
            kernel, registers, special, machine,
        )  # fmt: skip
        self.threads = len(next(iter(special.values())))
        self.scope: dict[str, Any] = {**SCOPE, "put": put, "m": machine, "pc": machine.pc}
        self.bound: dict[str, _Bound] = {}  # by text
        self.carry = np.zeros(self.threads, np.uint32)

    def end(self) -> None:
        """Lets go of the machine, which has this: of what is large nothing waits for garbage to be
        collected."""
        self.scope.clear()
        self.bound.clear()

    def block(self, number: int) -> Callable[[np.ndarray], None]:
        """The function of a block."""
        code = self.kernel.translated.get(number)
        if code is None:
            code = compile(self._source(number), f"<{self.kernel.name}>", "exec")
            self.kernel.translated[number] = code
        exec(code, self.scope)
        function: Any = self.scope[f"block{number}"]
        self._make(function.__code__)
        return function  # type: ignore[no-any-return]

    def bound_to(self, instruction: Instruction) -> "_Bound":
        """An instruction with the operands of this run."""
        if instruction.text not in self.bound:
            self.bound[instruction.text] = _Bound(self, instruction)
        return self.bound[instruction.text]

    def compiled(self, expression: str) -> CodeType:
        """An expression that can be evaluated in this run."""
        code = _code(expression)
        self._make(code)
        return code

    def _make(self, code: CodeType) -> None:
        """Makes the objects that some code has names for."""
        for name in code.co_names:
            if name not in self.scope and name in self.kernel.makers:
                self.scope[name] = self.kernel.makers[name](self)

    def _source(self, number: int) -> str:
        source = [f"def block{number}(mask):", f" pc[mask] = {number + 1}"]
        for instruction in self.kernel.blocks[number].instructions:
            guard = "mask"
            if instruction.guard is not None:
                sign = "~" if instruction.is_opposite else ""
                source.append(f" g = mask & {sign}{self.read(instruction.guard, 'pred')}")
                guard = "g"
            source += [f" {line}" for line in self._lines(instruction, guard)]
        return "\n".join(source)

    # Operands

    def given(self, make: "Callable[[Translation], Any]", name: str = "") -> str:
        """The name, in the functions, of an object that is made for each run."""
        name = name or f"c{len(self.kernel.makers)}"
        self.kernel.makers[name] = make
        return name

    def register(self, text: str) -> str:
        """The name of a register, as bits."""
        return self._named(text, "")

    def read(self, operand: str, type_: str) -> str:
        """As `Operands.read` of numbers.py."""
        if operand.startswith("!"):
            return f"~{self.read(operand[1:], type_)}"
        if operand in self.registers:
            return self._of_register(operand, type_)
        if operand.startswith(("%clock", "%globaltimer")):
            return "m.read_clock(mask)"
        return self._named(operand, type_)

    def _of_register(self, operand: str, type_: str) -> str:
        array = self.registers[operand]
        if type_ == "pred" or 8 * array.itemsize == BITS[type_]:
            return self._named(operand, type_)
        assert 8 * array.itemsize > BITS[type_], f"{operand} as {type_}"
        narrow = f"{self.register(operand)}.astype('u{BITS[type_] // 8}')"
        dtype = _dtype(type_)
        return narrow if dtype.kind == "u" else f"{narrow}.view({dtype.str!r})"

    def _named(self, operand: str, type_: str) -> str:
        key, names = (operand, type_), self.kernel.names
        if key not in names:
            names[key] = self.given(lambda run: run._array(operand, type_))
        return names[key]

    def _array(self, operand: str, type_: str) -> np.ndarray:
        """A register, a special one or a constant, by thread."""
        array = self.registers.get(operand)
        if array is None and operand in self.special:
            array = self.special[operand].astype(unsigned(BITS[type_]))
        if array is None:
            array = self._constant(operand, type_)
        return array.view(_dtype(type_)) if type_ and type_ != "pred" else array

    def _constant(self, text: str, type_: str) -> np.ndarray:
        """An operand that is a number or a symbol, for all threads."""
        if text[:2] in ("0f", "0F", "0d", "0D"):
            bits = int(text[2:], 16)
        elif text in self.machine.symbols:
            bits = self.machine.symbols[text]
        elif "." in text:
            values = np.array([float(text)], _dtype(type_))
            bits = int(values.view(unsigned(BITS[type_]))[0])
        else:
            digits = text.rstrip("U")
            is_octal = digits.isdigit() and digits[0] == "0"
            bits = int(digits, 8 if is_octal else 0) if digits != "WARP_SZ" else 32
        if type_ == "pred":
            return np.full(self.threads, bool(bits))
        dtype = unsigned(BITS[type_])
        return np.full(self.threads, bits & ((1 << BITS[type_]) - 1), dtype)

    # Instructions

    def _lines(self, instruction: Instruction, guard: str) -> list[str]:
        parts, operands = instruction.name, instruction.operands
        text = ".".join(parts)
        name = parts[0]
        if name == "bra":
            return [f"pc[{guard}] = {self.kernel.labels[operands[0]]}"]
        if name == "brx":
            labels = self.kernel.targets[operands[1]]
            places = self.given(lambda _: np.array([self.kernel.labels[each] for each in labels]))
            return [f"pc[{guard}] = {places}[{self.read(operands[0], 'u32')}[{guard}]]"]
        if name in ("ret", "exit"):
            return [f"pc[{guard}] = -1"]
        if name == "activemask":
            return [f"put({self.register(operands[0])}, m.active_lanes({guard}), {guard})"]
        if name == "trap":
            return [f"m.trap({guard})"]
        if name in ("ld", "st", "ldu"):
            return self._access(parts, operands, guard)
        if text in _CARRIES:
            return self._with_carry(text, operands, guard)
        if name == "pmevent" and instruction.guard is None:
            return []  # it holds the assembler back, and nothing else
        if name in _OPAQUE:
            place = self.given(lambda run: run.bound_to(instruction))
            return [f"m.{name}({place}, {guard})"]
        if name in _NO_EFFECT:
            return []
        if name == "createpolicy":  # a hint, which nothing looks at
            return [f"put({self.register(operands[0])}, m.pc, {guard})"]
        if name == "mov" and ("{" in operands[0] or "{" in operands[1]):
            return self._packed(parts, operands, guard)
        if name == "cvta":
            return [f"put({self.register(operands[0])}, {self.read(operands[1], 'u64')}, {guard})"]
        target, _, other = operands[0].partition("|")
        value = value_of(parts, list(operands[1:]), self)
        if name == "setp" and parts[-1].endswith("x2"):  # a predicate for each number
            names = self.register(target.strip()), self.register(other.strip())
            return [f"v = {value}", *(f"put({n}, v[{i}::2], {guard})" for i, n in enumerate(names))]
        lines = [f"put({self.register(target.strip())}, {value}, {guard})"]
        if other:
            lines.append(
                f"put({self.register(other.strip())}, ~{self.register(target.strip())}, {guard})"
            )
        return lines

    def _access(self, parts: tuple[str, ...], operands: tuple[str, ...], guard: str) -> list[str]:
        type_ = parts[-1]
        operands = operands[:2]  # behind these is a hint, which nothing looks at
        place, of = operands if parts[0] == "st" else operands[::-1]
        base, offset = address_of(place)
        if "param" in parts:
            found = f"m.parameter({self.address(base, offset)}, {type_!r}, {guard})"
            return [f"put({self.register(of)}, {found}, {guard})"]
        space = next(part for part in parts if part in ("global", "shared", "local"))
        values = inside(of)
        address = self.address(base, offset)
        bits = type_.replace("f", "b")
        if parts[0] == "st":
            given = ", ".join(self.read(value, bits.replace("s", "u")) for value in values)
            return [f"m.store({space!r}, {address}, {BITS[type_] // 8}, [{given}], {guard})"]
        names = ", ".join("None" if v == "_" else self.register(v) for v in values)
        dtype = "i" if type_[0] == "s" else "u"
        return [f"m.load({space!r}, {address}, {BITS[type_] // 8}, [{names}], {dtype!r}, {guard})"]

    def address(self, base: str, offset: int = 0) -> str:
        """Addresses, by thread, in 64 bits."""
        array = self.registers.get(base)
        found = self.read(base, f"u{8 * array.itemsize}" if array is not None else "u64")
        number = self.given(lambda _: np.int64(offset))
        return f"({found}.astype('i8') + {number})" if offset else f"{found}.astype('i8')"

    def _packed(self, parts: tuple[str, ...], operands: tuple[str, ...], guard: str) -> list[str]:
        """A register as a vector of narrower ones, or made of such."""
        to, of = operands
        bits = BITS[parts[-1]]
        if "{" in of:
            values = inside(of)
            part = f"u{bits // len(values)}"
            narrow = ", ".join(self.read(value, part) for value in values)
            found = f"np.stack([{narrow}], axis=1).reshape(-1).view('u{bits // 8}')"
            return [f"put({self.register(to)}, {found}, {guard})"]
        values = inside(to)
        each = bits // len(values)
        whole, count = self.read(of, f"u{bits}"), len(values)
        lines = [f"v = np.array({whole}).view('u{each // 8}').reshape(-1, {count})"]
        for number, value in enumerate(values):
            if value != "_":
                lines.append(f"put({self.register(value)}, v[:, {number}], {guard})")
        return lines

    def _with_carry(self, text: str, operands: tuple[str, ...], guard: str) -> list[str]:
        """Sums in 64 bits; what is above 32 is carried on."""
        values = [self.read(value, "u32") for value in operands[1:]]
        carry = self.given(lambda run: run.carry, "carry")
        product = f"({values[0]}.astype('u8') * {values[1]})"
        if "hi" in text:
            product = f"({product} >> np.uint64(32))"
        if text.startswith("mad"):
            low = f"({product} & np.uint64(0xFFFFFFFF))"
            total = f"{low} + {values[2]}"
        else:
            total = f"{values[0]}.astype('u8') + {values[1]}"
        if "c." in text.replace(".cc.", ".") or text.startswith(("madc", "addc")):
            total += f" + {carry}"
        lines = [f"v = {total}", f"put({self.register(operands[0])}, v.astype('u4'), {guard})"]
        if ".cc." in text:
            lines.append(f"put({carry}, (v >> np.uint64(32)).astype('u4'), {guard})")
        return lines


class _Bound:
    """An instruction's operands as arrays, for a method of the machine."""

    def __init__(self, translation: Translation, instruction: Instruction) -> None:
        self.parts, self.operands = instruction.name, instruction.operands
        self.text, self._of = instruction.text, translation
        self._codes: dict[tuple[str, str], CodeType] = {}  # of operands, by text and type

    def array(self, operand: str, type_: str) -> np.ndarray:
        """Numbers by thread."""
        key, of = (operand, type_), self._of
        if key not in self._codes:
            self._codes[key] = of.compiled(of.read(operand, type_))
        found: np.ndarray = eval(self._codes[key], of.scope)
        return found

    def register(self, operand: str) -> np.ndarray:
        """A register's array."""
        return self._of.registers[operand]

    def address(self, operand: str) -> np.ndarray:
        """Addresses by thread, of `[base+offset]`."""
        key, of = (operand, ""), self._of
        if key not in self._codes:
            self._codes[key] = of.compiled(of.address(*address_of(operand)))
        found: np.ndarray = eval(self._codes[key], of.scope)
        return found


@functools.lru_cache(1 << 12)
def _code(expression: str) -> CodeType:
    return compile(expression, "<operand>", "eval")


@functools.cache
def _dtype(type_: str) -> np.dtype[Any]:
    """numpy's dtype for a type of PTX; bfloat16 is bits."""
    if type_.startswith("bf16"):
        return np.dtype("u2")
    if type_ in FLOATS:
        return np.dtype("f2" if type_.startswith("f16") else f"f{BITS[type_] // 8}")
    bits = 16 if type_.endswith("x2") else BITS[type_]
    return np.dtype(f"{'i' if type_[0] == 's' else 'u'}{bits // 8}")
