"""A line of the source and the code that it became, at each level, for a GPU that is not there."""

import re
from dataclasses import replace

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from proton.runtime.session.described import kernel_model, source_files
from proton.viewer import Run
from tests.pure.synthetic import Record, Written, pack_launch, run, ticks

# What stands in a level where a line loads, or stores.
LOADS = {"ttir": r'"tt\.load"', "ttgir": r'"tt\.load"', "ptx": r"ld\.global", "sass": r"\bLDG\b"}
STORES = {"ttir": r'"tt\.store"', "ttgir": r'"tt\.store"', "ptx": r"st\.global", "sass": r"\bSTG\b"}


@proton.jit
def doubled(x):
    return x + x


@proton.jit
def copied(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    with proton.scope("load"):
        x = tl.load(x_ptr + offsets)
    y = doubled(x)
    with proton.scope("store"):
        tl.store(out_ptr + offsets, y)


def test_levels_say_the_lines_that_they_are_of() -> None:
    kernel = copied.warmup(
        tl.float32, tl.float32, BLOCK=1024, target=GPUTarget("cuda", 90), profile={}
    )
    model = replace(kernel_model(kernel, {}), target="cpu")  # whose clock the records are by
    assert set(model.code) == {"ttir", "ttgir", "ptx", "cubin"}
    assert "loc(" in model.code["ttir"]
    assert "loc(" not in kernel.asm["ttir"] + kernel.asm["ttgir"]
    records = [Record(ticks(10 * n), ticks(10 * n + 8), n) for n in range(len(model.scopes))]
    written = Written([records] * model.units)
    raw = run([model], [pack_launch(model, (1, 1, 1), 8, [written])])
    raw.sources = source_files(raw.kernels)
    (file,) = raw.sources
    text = raw.sources[file].splitlines()
    data = Run(raw).source().data()
    (listing,) = data["listings"]
    shown = {line[0]: line[1] for line in listing["lines"] if line}
    assert all(text[number - 1] == line for number, line in shown.items())
    levels = {name: (lines, of) for name, lines, of in data["levels"]["copied"]}
    for call, expected in (("tl.load(", LOADS), ("tl.store(", STORES), ("x + x", {})):
        (number,) = [n for n, line in shown.items() if call in line]
        place = data["places"].index([file, number])
        for level, pattern in expected.items():
            lines, of = levels[level]
            there = {n for n, line in enumerate(lines) if re.search(pattern, line)}
            assert there
            # Records are stored, too: at the lines of their scopes.
            own = {n for n, at in enumerate(of) if place in at}
            assert own & there
            assert own < set(range(len(lines)))
    inlined = [at for at in levels["ttir"][1] if len(at) == 2]  # the callee's line and the call's
    assert inlined
