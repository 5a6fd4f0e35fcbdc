"""Triton's `ttg` and `ttng` ops: how each is written, and what it is here."""

from proton.triton_text.made import Rule
from proton.triton_text.tiles import same

FORMS: dict[str, tuple[str, Rule]] = {
    "ttg.convert_layout": ("$src {} : <src> -> <result>", same("ttg.convert_layout", "src")),
}
