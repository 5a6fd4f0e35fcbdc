"""What Triton makes of two operands: the types in which they meet, and what it refuses.

Run by a Python that has Triton (`pip install triton`), it writes `tests/ir/promotion.json`, against
which `tests/ir/test_promotion_of_triton.py` holds the front end. Each case is an op on two
operands, which are run-time values of a type, or numbers that are known while compiling. What
Triton's front end emits for it is written down as one line:

    RESULT TYPE | FINAL OP | CASTS OF THE LEFT OPERAND | CASTS OF THE RIGHT ONE

or `refused`. Cases are grouped by that line.
"""

import itertools
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton._C.libtriton import ir  # noqa: E402
from triton.language.semantic import TritonSemantic  # noqa: E402

from tests.ir.promotion_cases import FUNCTIONS, NUMBERS, OPERATORS, TYPES, chain, type_name  # noqa: E402

_CASTS = re.compile(
    r"^(arith\.(ext|trunc|sitofp|uitofp|fpto|bitcast)|tt\.(fp_to_fp|bitcast|int_to_ptr))"
)


class Front:
    """Triton's front end, on one op at a time."""

    def __init__(self) -> None:
        self.context = ir.context()
        ir.load_dialects(self.context)

    def _begin(self) -> None:
        """A builder that is nowhere yet: one that is inserts functions there, too."""
        self.builder = ir.builder(self.context)
        self.builder.options = SimpleNamespace(
            sanitize_overflow=False,
            supported_fp8_dtypes=("fp8e5", "fp8e4nv"),
            deprecated_fp8_dot_operand_dtypes=(),
        )
        self.semantic = TritonSemantic(self.builder)

    def outcome(self, op: str, left: Any, right: Any) -> str:
        """The line of one case; an operand is the name of a type, or a number."""
        self._begin()
        types = [getattr(tl, side) for side in (left, right) if isinstance(side, str)]
        module = self.builder.create_module()
        function = self.builder.get_function_ty([t.to_ir(self.builder) for t in types], [])
        function = self.builder.get_or_insert_function(module, "f", function, "public", False)
        module.push_back(function)
        block = function.add_entry_block()
        self.builder.set_insertion_point_to_end(block)
        arguments = iter(
            tl.tensor(function.args(number), type_) for number, type_ in enumerate(types)
        )
        sides = [next(arguments) if isinstance(side, str) else side for side in (left, right)]
        try:
            result = self._apply(op, *sides)
        except Exception as problem:  # of any kind: it is refused
            del problem
            return "refused"
        if result is NotImplemented:
            return "refused"
        return _line(type_name(tl, result.dtype), str(module))

    def _apply(self, op: str, left: Any, right: Any) -> Any:
        if op in FUNCTIONS:
            return FUNCTIONS[op](tl, left, right, _semantic=self.semantic)
        forward, backward = OPERATORS[op]
        if isinstance(left, tl.tensor):
            return getattr(left, forward)(right, _semantic=self.semantic)
        return getattr(right, backward)(tl.constexpr(left), _semantic=self.semantic)


def _line(dtype: str, text: str) -> str:
    """The line of a case, of the text of a function in which it is all there is."""
    ops = {}
    for found in re.finditer(r"(%\w+) = \"?([\w.]+)\"?(.*)", text):
        ops[found[1]] = found[2], re.findall(r"%\w+", found[3]), found[3]
    last = list(ops)[-1] if ops else None
    if last is None:
        return f"{dtype} | nothing"
    name, operands, rest = ops[last]
    if (name == "math.fma" and "int" in dtype) or (name == "tt.mulhiui" and "float" in dtype):
        return "refused"  # by its passes
    predicate = re.search(r"predicate = (\d+)", rest)
    shown = f"{name} {predicate[1]}" if predicate else name
    return f"{dtype} | {shown} | " + " | ".join(_casts(ops, value) for value in operands)


def _casts(ops: dict[str, Any], value: str) -> str:
    """The casts that lead to a value, the last one first, down to an argument or a constant."""
    found = []
    while value in ops and _CASTS.match(ops[value][0]):
        name, (source, *_), rest = ops[value]
        found.append((name, re.findall(r"(\w+)(?: loc\(.*\))?$", rest.strip())[0]))
        value = source
    return chain(found, "constant" if value in ops else "argument")


def main() -> None:
    front = Front()
    table: dict[str, dict[str, list[list[Any]]]] = {}
    for op in [*OPERATORS, *FUNCTIONS]:
        pairs = [*itertools.product(TYPES, TYPES), *itertools.product(TYPES, NUMBERS)]
        pairs += itertools.product(NUMBERS, TYPES)
        for left, right in pairs:
            line = front.outcome(op, left, right)
            table.setdefault(op, {}).setdefault(line, []).append([left, right])
    lines = [
        f"{json.dumps(op)}: {{\n"
        + ",\n".join(f"  {json.dumps(line)}: {json.dumps(cases)}" for line, cases in of.items())
        + "}"
        for op, of in table.items()
    ]
    target = ROOT / "tests/ir/promotion.json"
    target.write_text(f'{{"triton": "{triton.__version__}",\n' + ",\n".join(lines) + "}\n")
    print(f"{sum(len(c) for of in table.values() for c in of.values())} cases in {target}")


if __name__ == "__main__":
    main()
