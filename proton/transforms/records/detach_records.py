"""Takes records out of the way of optimisations, and keeps what they say of scopes.

What is written on a function here is what `place-records` puts records back by.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.base.errors import SourceSpan
from proton.dialect import proton
from proton.dialect.attributes import PROGRAM_ORDER, SCOPE_LINES, SCOPES
from proton.dialect.builtin import i32_attr, string_attr, strings_attr
from proton.dialect.mlir import Attribute, Module, ir
from proton.dialect.proton import RECORDS
from proton.dialect.records import conditional, is_start, scope_of
from proton.dialect.walk import functions, ops_named, source_span
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class DetachRecords(Pass):
    """Notes the scopes on each function that has records, and where each is opened; with placement
    "schedule" also removes their records.

    Records with payload stay until `place-records`, as placeholders of their values, and so do
    those of scopes that have a condition anywhere.
    """

    name: ClassVar[str] = "detach-records"

    placement: str = "schedule"

    def run(self, module: Module) -> None:
        for function in functions(module):
            if not ops_named(function, *RECORDS):
                continue
            paths: dict[str, SourceSpan] = {}
            records = ops_named(function, proton.RecordOp)
            with_condition = conditional(records)
            for op in records:
                path = scope_of(op)
                paths.setdefault(path, source_span(op.location))
                carries = len(op.operands) or (is_start(op) and path in with_condition)
                if self.placement == "schedule" and not carries:
                    op.erase()
            lines = [_line_attribute(span) for span in paths.values()]
            function.attributes[SCOPES] = strings_attr(paths)
            function.attributes[SCOPE_LINES] = ir.ArrayAttr.get(lines)
            if self.placement == "program":
                function.attributes[PROGRAM_ORDER] = ir.UnitAttr.get()


def _line_attribute(span: SourceSpan) -> Attribute:
    return ir.ArrayAttr.get([string_attr(span.file), i32_attr(span.line)])
