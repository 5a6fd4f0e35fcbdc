"""Takes out what the front end made of annotations, for code without instrumentation."""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect.mlir import Module
from proton.dialect.proton import RECORDS
from proton.dialect.walk import ops_named
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class StripRecords(Pass):
    """Removes every record, mark and event: the code is as if nothing had been annotated."""

    name: ClassVar[str] = "strip-records"
    only_for: ClassVar[frozenset[str]] = frozenset(RECORDS)

    def run(self, module: Module) -> None:
        for op in ops_named(module, *RECORDS):
            op.erase()
