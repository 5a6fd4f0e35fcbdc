"""Text that is nearly IR: it is read, or refused in words, and nothing else happens."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from proton import passes
from proton.backends.parsing import parsed
from proton.base.errors import CompilationError
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.language.ir_text import IRText
from proton.tools.opt import ModuleText, register_all_passes, split

FILES = sorted((Path(__file__).parent / "lit").rglob("*.mlir"))
TEXTS = 150
NUMBERS = ("0", "1", "-1", "3", "64", "1000")
TYPES = ("i1", "i8", "i32", "i64", "f16", "f32", "f64", "index", "bf16", "none")
TENSORS = ("tensor<4xf32>", "tensor<f32>", "tensor<0xf32>", "tensor<?xf32>", "tensor<*xf32>", "i32")
PIECES = {  # what is looked for, and what comes in its place; without any another such piece
    r"\d+": NUMBERS,
    rf"\b(?:{'|'.join(TYPES)})\b": TYPES,
    r"tensor<[^>]*>": TENSORS,
    r"array<i32: [^>]*>": ("array<i64: 1>", "array<i8: 1, 2>", "array<i32: 7, 0, -1>", "3 : i32"),
    r"%[\w#]+": (),
    r"<?\{[^{}\n]*\}>?": ("", "{}"),
    r'"[\w. -]*"': ('""', "3"),
}


def mutated(text: str, rng: np.random.Generator) -> str:
    """The text with some of its lines or pieces lost, doubled or exchanged."""
    for _ in range(rng.integers(1, 4)):
        lines = text.split("\n")
        first, second = rng.integers(len(lines), size=2)
        match rng.integers(8):
            case 0:
                del lines[first]
                text = "\n".join(lines)
            case 1:
                lines[first], lines[second] = lines[second], lines[first]
                text = "\n".join(lines)
            case _:
                pattern = str(rng.choice(list(PIECES)))
                found = list(re.finditer(pattern, text))
                if not found:
                    continue
                old = found[rng.integers(len(found))]
                others = [*PIECES[pattern], found[rng.integers(len(found))].group()]
                text = text[: old.start()] + str(rng.choice(others)) + text[old.end() :]
    return text


def test_text_that_is_nearly_ir(
    rng: np.random.Generator, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each text is kept while it is read: what ends the process is in the file."""
    kept = tmp_path / "nearly.mlir"
    with capfd.disabled():
        print(f"\nnearly IR: {kept}", file=sys.stderr, flush=True)
    register_all_passes()
    steps = passes.parse_pipeline("canonicalize,cse")
    refused = 0
    for _ in range(TEXTS):
        file = FILES[rng.integers(len(FILES))]
        pieces = split(file.read_text())
        text = mutated(pieces[rng.integers(len(pieces))], rng)
        kept.write_text(text)
        piece = ModuleText(text)
        try:
            piece.run(steps, debug_info=False)
        except Exception as error:
            raise AssertionError(f"{file}:\n{text}") from error
        errors = [d for d in piece.diagnostics if d.severity == "error"]
        assert (piece.output is None) == bool(errors), text
        refused += bool(errors)
    assert TEXTS // 10 < refused < TEXTS


@pytest.mark.parametrize(("old", "new"), [
    ("operandSegmentSizes = array<i32: 1, 1, 1>", "operandSegmentSizes = array<i64: 1, 1, 1>"),
    ("operandSegmentSizes = array<i32: 1, 1, 1>", "operandSegmentSizes = array<i32: 3, 0, 0>"),
    ("tensor<4xf32>", "tensor<*xf32>"),
])  # fmt: skip
def test_what_cannot_be_read_is_malformed(old: str, new: str) -> None:
    text = """
func.func @f(%p: tensor<4x!tt.ptr<f32>>, %v: tensor<4xf32>, %m: tensor<4xi1>) {
  "tt.store"(%p, %v, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>, tensor<4xi1>) -> ()
  return
}
"""  # noqa: E501
    piece = ModuleText(text.replace(old, new))
    piece.run([], debug_info=False)
    assert piece.output is None
    assert "'tt.store' is malformed: " in piece.diagnostics[0].message


REDUCTION = """
func.func @f(%x: tensor<8x4xf32>, %init: tensor<8xf32>) -> tensor<8xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = TYPES} ins(%x : tensor<8x4xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %b : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}
"""  # noqa: E501


@pytest.mark.parametrize("types", [
    '[3, "reduction"]', '["parallel", 3]', '["parallel", {}]', "[unit, unit]", "#types",
    "[#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>]",
])  # fmt: skip
def test_iterator_types_that_mlir_takes_for_strings(types: str, tmp_path: Path) -> None:
    """It ends the process, or raises std::bad_alloc."""
    text = REDUCTION.replace("TYPES", types)
    if types == "#types":
        text = f"#types = [3, 3]\n{text}"
    piece, rule = ModuleText(text), "iterator_types of linalg.generic must be a list of strings"
    piece.run([], debug_info=False)
    (error,) = piece.diagnostics
    assert (piece.output, error.message) == (None, rule)
    assert error.line == 3 + (types == "#types")
    file = tmp_path / "reduction.mlir"
    file.write_text(text)
    with pytest.raises(CompilationError, match=rule):
        parsed(IRText.read(str(file)))


def test_iterator_types_that_are_strings_are_read_in_both_forms() -> None:
    piece = ModuleText(REDUCTION.replace("TYPES", '["parallel", "reduction"]'))
    piece.run([], debug_info=False)
    assert piece.output is not None, piece.diagnostics
    with mlir_context():
        generic = ir.Module.parse(piece.output).operation.get_asm(print_generic_op_form=True)
    assert '"linalg.generic"' in generic
    again = ModuleText("// iterator_types = [3]\n" + generic)
    again.run([], debug_info=False)
    assert again.output == piece.output
