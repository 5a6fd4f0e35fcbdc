"""Triton's text, op by op: what is made of each form, where it says it is, and what is refused."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

import proton
from proton.backends import parsing
from proton.compat.triton.text import encodings, tiles
from proton.compat.triton.text.cursor import Cursor, Token
from proton.compat.triton.text.translator import FORMS, translated
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.dialect.text import module_text
from proton.language.ir_text import IRText
from tests import triton_samples as samples
from tests.ir.triton_block_forms import BLOCK_ROWS, GROUPS
from tests.ir.triton_forms import BARRIER, COPIED, MADE, ROWS, SHARED, T
from tests.tables import check_rows

NOT_THERE = {"tt.atomic_load", "tt.atomic_store", "tt.atomic_poll"} | {
    "ttng.async_tma_gather",
    "ttng.async_tma_scatter",
}


def parsed(text: str, level: str = "ttir") -> Any:
    return ir.Module.parse(translated(text, f"k.{level}", level).text)


def _check_row(name: str, body: str, wanted: str) -> None:
    del name
    level = "ttgir" if "ttg" in body else "ttir"
    body = body if body.startswith(" ") else f"    {body}"
    module = parsed(samples.around(body.rstrip("\n")), level)
    plain, wanted = (re.sub(r"%[\w#]+", "%", text) for text in (str(module), wanted))
    assert wanted in plain, plain
    text = module_text(module)
    assert module_text(ir.Module.parse(text)) == text


def test_every_form_becomes_an_op_that_goes_round_as_text() -> None:
    rows = ROWS + BLOCK_ROWS
    assert {name for name, _, _ in rows} | NOT_THERE == {*FORMS, *tiles.GENERIC}
    with mlir_context():
        check_rows(_check_row, rows)


REFUSED = [
    (
        f"%0 = tt.dot_scaled %x, %x, %x lhs = bf16 rhs = bf16 : {T} * {T} -> {T}",
        "tt.dot_scaled of tensors with layouts is not supported",
        "5:10",
    ),
    ("%0 = tt.atomic_load relaxed, gpu, %p : (f32) -> f32", "tt.atomic_load is not", "10"),
    (
        "ttng.async_tma_gather %d[%i, %n] %bar, %mem, %c : i32",
        "ttng.async_tma_gather is not supported: TMA of 9.0 takes no rows by index",
        "5",
    ),
    ("%0 = tt.frobnicate %x : f32", "tt.frobnicate is not supported", "10"),
    ("%0 = tt.lood %x : f32", "tt.lood is not supported; did you mean tt.load?", "10"),
    ("ttng.tmem_store %x", "ttng.tmem_store is not supported", "5"),
    ('%0 = "tt.load"(%ps) : (i32) -> i32', "tt.load in MLIR's generic form is not supp", "10"),
    (
        "%0 = tt.splat %s : f32 -> tensor<64xf32, #nothing>",
        "expected a layout, got '#nothing'",
        "46",
    ),
    ("%0 = tt.splat %s f32", "expected ':', got 'f32'", "22"),
    ("%0 = tt.splat 3 : f32 -> f32", "expected a value, the src, got '3'", "19"),
    ("%0 = tt.make_range {start = (0 : i32} : i32", "'(' is not closed", "33"),
    ("%0 = tt.make_range {end : i32} : i32", "expected ',' or '}' behind an attribute", "29"),
    ("%0 = tt.get_program_id w : i32", "the axis of tt.get_program_id is x, y or z, got w", "10"),
    (
        "%0 = tt.trans %x : tensor<4xf32> -> tensor<4xf32>",
        "tt.trans lacks 'order'",
        "10",
    ),
    ("%0 = tt.splat %s : f32 -> !ttg.thing<3>", "values of type !ttg.thing are not supp", "31"),
    ("%0 = tt.bitcast %p : !tt.ptr<f32, 3> -> i64", "address space 3 are not supported", "39"),
    (
        "%0 = tt.bitcast %p : !tt.ptr<tensor<4x!tt.ptr<f32>>> -> i64",
        "pointers to tensor<4x!tt.ptr<f32>> are not supported",
        "34",
    ),
    (
        "%0 = arith.constant dense<1.0> : tensor<4xf32, #ttg.amd_mfma<{version = 3}>>",
        "tensors in the layout #ttg.amd_mfma are not supported",
        "52",
    ),
    (
        "%0 = arith.constant dense<1.0> : tensor<4xf32, #ttg.blocked<{order = [0]}>>",
        "#ttg.blocked is without 'sizePerThread'",
        "52",
    ),
    (
        "%0 = arith.constant dense<1.0> : tensor<4xf32, #ttg.blocked<{sizePerThread = [1], "
        "threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>>",
        "a warp has 32 threads, got",
        "52",
    ),
    (
        "%0 = arith.constant dense<1.0> : tensor<4xf32, #ttg.blocked<{sizePerThread = [1], "
        "threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}>>",
        "#ttg.blocked is for 8 warps, and the module for 4",
        "52",
    ),
    (
        "%0 = arith.constant dense<1.0> : tensor<4xf32, #ttg.blocked<{sizePerThread = [1], "
        "threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[1]]}>>",
        "#ttg.blocked spreads a tensor over several CTAs",
        "52",
    ),
    (
        "%0 = ttg.local_alloc : () -> !ttg.memdesc<4xf32, "
        f"{SHARED.replace('shared_m', 'tensor_m')}>",
        "memory in #ttg.tensor_memory is not supported",
        "34",
    ),
    (
        f"%0 = ttg.local_alloc : () -> !ttg.memdesc<4x4xf32, {SHARED}, mutable, 8x8>".replace(
            "order = [0]", "order = [1, 0]"
        ),
        "a part of memory of 8x8 elements is not",
        "34",
    ),
    (
        (MADE + f"    ttng.wait_barrier %bar, %n, %c : {BARRIER}").strip(),
        "with a predicate is not supported",
        "5",
    ),
    (
        "%0 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 384 : i32} : !tt.ptr<i8>",
        "ttg.global_scratch_alloc of 384 bytes, for more than one tensor map, is not",
        "10",
    ),
    (
        "%0 = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<f32> to !tt.tensordesc<8x16xf32>",
        "of a map that is not made in the kernel is not supported",
        "10",
    ),
    (
        (MADE + f"    ttng.arrive_barrier %bar, 1 : {BARRIER}").strip(),
        "ttng.arrive_barrier of 1 arrivals is not supported",
        "5",
    ),
    (
        GROUPS.replace("ttg.warp_yield", "ttg.warp_yield %n : i32").strip(),
        "ttg.warp_yield of values is not supported",
        "7",
    ),
    (COPIED.replace("0.000000e+00", "1.0").strip(), "of something else than zeros", "10"),
    (
        '%0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = false, symbol = "f"} : '
        f"({T}) -> {T}",
        "that is not pure, or takes many operands",
        "10",
    ),
]


def _check_refused(body: str, rule: str, column: str) -> None:
    with pytest.raises(proton.CompilationError) as found:
        translated(samples.around(f"    {body}"), "k.ttgir", "ttgir")
    assert rule in found.value.rule, found.value
    assert found.value.span is not None
    assert found.value.span.file == "k.ttgir"
    assert f"{found.value.span.column + 1}".endswith(column.rpartition(":")[2]), found.value


def test_what_is_refused_says_what_and_where() -> None:
    check_rows(_check_refused, REFUSED)


def test_functions_have_names_of_their_own() -> None:
    """What is known of a value is not of one with its name in the next function."""
    text = samples.around(COPIED.replace("0.000000e+00", "1.0").rstrip())
    zeros = (
        "  tt.func private @zeros() attributes {noinline = true} {\n    %o = arith.constant "
        "dense<0.000000e+00> : tensor<64xf32, #blocked>\n    tt.return\n  }\n"
    )
    text = text.replace("  tt.func public", zeros + "  tt.func public")
    with pytest.raises(proton.UnsupportedLanguageConstruct, match="something else than zeros"):
        translated(text, "k.ttgir", "ttgir")


def test_damaged_text_is_an_error_of_ours(rng: Any) -> None:
    """Whatever a token is replaced by: what is made of it parses, or there is an error of ours."""
    named = [getattr(samples, name) for name in dir(samples) if name.isupper() and name[0] != "_"]
    words = [[*_tokens(text)] for text in named]
    refused = 0
    with mlir_context():
        for _ in range(300):
            number = int(rng.integers(len(named)))
            text, other = named[number], words[int(rng.integers(len(named)))]
            token, by = (list_[int(rng.integers(len(list_)))] for list_ in (words[number], other))
            new = ("", f"{token.text} {token.text}", by.text)[int(rng.integers(3))]
            level = "ttgir" if "#ttg." in text else "ttir"
            damaged = IRText(f"k.{level}", level, text[: token.start] + new + text[token.end :])
            try:
                parsing.parsed(damaged)
            except proton.CompilationError:
                refused += 1
    assert refused > 200


def _tokens(text: str) -> Iterator[Token]:
    cursor = Cursor(text, "k.ttir")
    while (token := cursor.next()).kind != "end":
        yield token


HEADS = [('"ttg.threads-per-warp" = ', "32", "64"), ('"ttg.num-ctas" = ', "1", "2")]


def test_what_modules_and_functions_are_refused() -> None:
    for attribute, here, there in HEADS:
        text = samples.ROW_SUMS.replace(f"{attribute}{here}", f"{attribute}{there}")
        rule = f"modules with {attribute.replace(chr(34), '')}{there} : i32 are not supported"
        with pytest.raises(proton.UnsupportedLanguageConstruct, match=re.escape(rule)):
            translated(text, "k.ttgir", "ttgir")
    with pytest.raises(proton.UnsupportedLanguageConstruct, match="@f has no body"):
        translated("tt.func private @f(%x: i32)", "k.ttir", "ttir")
    with pytest.raises(proton.CompilationError, match="expected the end of the module, got '}'"):
        translated(samples.ADD.replace("} loc(#loc)\n#loc1", "}}\n#loc1"), "k.ttir", "ttir")


def is_triton(text: str) -> bool:
    return IRText("k.ttir", "ttir", text).is_triton


def test_which_text_is_tritons() -> None:
    named = {n: getattr(samples, n) for n in dir(samples) if n.isupper() and n[0] != "_"}
    assert all(map(is_triton, named.values()))
    assert is_triton("module { tt.func @f() { tt.return } }")
    assert is_triton('"tt.func"() <{sym_name = "f"}> ({}) : () -> ()')
    with mlir_context():
        ours = str(parsed(samples.ADD))
    assert not is_triton(ours)
    assert not is_triton("// as tt.func was\nfunc.func @f() { return }")


def test_places_are_those_of_the_text() -> None:
    """Each op of a module without places has the line and column of its name in the file."""
    text = samples.SOFTMAX
    translation = translated(text, "k.ttir", "ttir")
    with mlir_context():
        module = ir.Module.parse(translation.text)
        places = set()

        def visit(op: Any) -> Any:
            # The end of a loop's body that the text leaves out has the loop's place.
            if op.name not in ("builtin.module", "func.func", "scf.yield"):
                line, column = translation.origin(op.location.start_line, op.location.start_col)
                places.add((line, column))
                said = text.splitlines()[line - 1][column - 1 :]
                plain = op.name.replace("_return", ".return").replace("func.", "tt.")
                assert said.removeprefix('"').startswith(plain), (op.name, said)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
    assert len(places) == 28


# Bases as Triton 3.9's own conversion to linear layouts has them.
BLOCKED = (
    "#ttg.blocked<{sizePerThread = [2, 1, 4], threadsPerWarp = [8, 4, 1], warpsPerCTA = [2, 2, 1], "
    "order = [2, 0, 1]}>"
)
AMPERE = (
    "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], "
    "instrShape = [16, 8]}>"
)
HOPPER = AMPERE.replace("Major = 2", "Major = 3").replace("[16, 8]", "[16, 64, 16]")
THREADS: list[tuple[str, list[int], dict[str, list[list[int]]]]] = [
    (
        BLOCKED,
        [2, 8, 1],
        {
            "register": [[1, 0, 0]],
            "lane": [[0, 0, 0]] * 3 + [[0, 1, 0], [0, 2, 0]],
            "warp": [[0, 0, 0], [0, 4, 0]],
        },
    ),
    (
        f"#ttg.slice<{{dim = 2, parent = {BLOCKED}}}>",
        [2, 8],
        {"register": [[1, 0]], "lane": [[0, 0]] * 3 + [[0, 1], [0, 2]], "warp": [[0, 0], [0, 4]]},
    ),
    (  # cut
        "#ttg.linear<{register = [], "
        "lane = [[0, 1], [1, 0], [0, 0], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]], block = []}>",
        [1, 4],
        {
            "register": [[0, 2]],
            "lane": [[0, 1], [0, 0], [0, 0], [0, 0], [0, 0]],
            "warp": [[0, 0], [0, 0]],
        },
    ),
    (  # repeated
        "#ttg.linear<{register = [], "
        "lane = [[1, 0], [4, 0], [0, 1], [0, 2], [2, 0]], warp = [[0, 0], [0, 0]], block = []}>",
        [32, 8],
        {
            "register": [[8, 0], [16, 0], [0, 4]],
            "lane": [[1, 0], [4, 0], [0, 1], [0, 2], [2, 0]],
            "warp": [[0, 0], [0, 0]],
        },
    ),
    (
        AMPERE,
        [128, 32],
        {
            "register": [[0, 1], [8, 0], [0, 8], [0, 16], [64, 0]],
            "lane": [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]],
            "warp": [[16, 0], [32, 0]],
        },
    ),
    (
        HOPPER,
        [64, 64],
        {
            "register": [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]],
            "lane": [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]],
            "warp": [[16, 0], [32, 0]],
        },
    ),
    (
        f"#ttg.dot_op<{{opIdx = 1, parent = {AMPERE}, kWidth = 4}}>",
        [128, 32],
        {
            "register": [[1, 0], [2, 0], [16, 0], [32, 0], [64, 0], [0, 8], [0, 16]],
            "lane": [[4, 0], [8, 0], [0, 1], [0, 2], [0, 4]],
            "warp": [[0, 0], [0, 0]],
        },
    ),
    (
        f"#ttg.dot_op<{{opIdx = 0, parent = {HOPPER}, kWidth = 4}}>",
        [64, 64],
        {
            "register": [[0, 1], [0, 2], [8, 0], [0, 16], [0, 32]],
            "lane": [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]],
            "warp": [[16, 0], [32, 0]],
        },
    ),
    (
        "#ttg.dot_op<{opIdx = 0, parent = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = "
        "[4, 8], warpsPerCTA = [1, 4], order = [1, 0]}>}>",
        [16, 4],
        {
            "register": [[0, 1], [0, 2], [1, 0], [8, 0]],
            "lane": [[0, 0]] * 3 + [[2, 0], [4, 0]],
            "warp": [[0, 0], [0, 0]],
        },
    ),
]
OFFSETS: list[tuple[str, list[int], list[list[int]]]] = [
    (
        "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [0, 1]}>",
        [64, 16],
        [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [0, 4], [0, 8]],
    ),
    (
        "#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 16}>",
        [64, 64],
        [
            [1, 0],
            [2, 0],
            [4, 0],
            [8, 0],
            [16, 0],
            [0, 1],
            [8, 2],
            [16, 4],
            [0, 8],
            [0, 16],
            [0, 32],
            [32, 0],
        ],
    ),
    ("#ttg.shared_linear<{offset = [[0, 1], [1, 0]]}, alignment = 16>", [2, 2], [[0, 1], [1, 0]]),
]


def _check_threads(text: str, shape: list[int], wanted: dict[str, list[list[int]]]) -> None:
    """The order of the registers of a thread means nothing."""
    cursor = Cursor(text, "k.ttgir")
    layout = encodings.distributed(cursor, encodings.parse(cursor, {}), shape, 16, 4)
    found = {name: [list(basis) for basis in layout.bases(name)] for name in wanted}
    assert sorted(found.pop("register")) == sorted(wanted["register"]), found
    assert found == {name: bases for name, bases in wanted.items() if name != "register"}


def _check_offsets(text: str, shape: list[int], wanted: list[list[int]]) -> None:
    cursor = Cursor(text, "k.ttgir")
    layout = encodings.shared(cursor, encodings.parse(cursor, {}), shape, 16)
    assert [list(basis) for basis in layout.bases("offset")] == wanted


def test_layouts_are_the_same_threads_as_in_triton() -> None:
    check_rows(_check_threads, THREADS)
    check_rows(_check_offsets, OFFSETS)
