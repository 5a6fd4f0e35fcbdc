"""Text that is nearly IR: it is read, or refused in words, and nothing else happens."""

import re
from pathlib import Path

import numpy as np
import pytest

from proton import passes
from proton.tools.opt import Piece, register_all_passes, split

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


def test_text_that_is_nearly_ir(rng: np.random.Generator) -> None:
    register_all_passes()
    steps = passes.parse_pipeline("canonicalize,cse")
    refused = 0
    for _ in range(TEXTS):
        file = FILES[rng.integers(len(FILES))]
        pieces = split(file.read_text())
        text = mutated(pieces[rng.integers(len(pieces))], rng)
        piece = Piece(text)
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
    piece = Piece(text.replace(old, new))
    piece.run([], debug_info=False)
    assert piece.output is None
    assert "'tt.store' is malformed: " in piece.diagnostics[0].message
