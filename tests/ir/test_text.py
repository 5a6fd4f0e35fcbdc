"""Modules as text: aliases for layouts, and MLIR reads them back."""

from pathlib import Path

import pytest

from proton.base.locations import places, without_locations
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.dialect.text import module_text, with_aliases

PASSES = Path(__file__).parent / "lit" / "passes"
FILES = ("membar-async", "membar", "tritongpu-coalesce", "ttg-to-llvm", "mark-written")


@pytest.mark.parametrize("name", FILES)
def test_mlir_reads_the_aliases_back(name: str) -> None:
    text = (PASSES / f"{name}.mlir").read_text()
    with mlir_context():
        module = ir.Module.parse(text)
        plain = module.operation.get_asm()
        for with_locations in (False, True):
            shown = module_text(module, with_locations=with_locations)
            assert ir.Module.parse(shown).operation.get_asm() == plain
        located = module_text(module, with_locations=True)
        assert "loc(" in located
        assert without_locations(located) == module_text(module)
        shown, found = places("ttir", located)
        assert shown == module_text(module)
        assert len(found) == shown.count("\n") + 1
    body = with_aliases(plain).split("module", 1)[1]
    assert "#ttg.linear<" not in body
    assert "#ttg.shared<" not in body
    assert (with_aliases(plain) == plain) == ("ttg." not in text.replace("ttg.num-warps", ""))
