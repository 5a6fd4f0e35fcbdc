"""Makes scopes of what the option `auto` names, before the work gets its final order.

Where work is loops over buffers, a load or a product is no op of its own in the end: it is fused
with what computes on it. So each gets a scope of its own while it is an op, as if the user had
written one around it, and `place-records` shows where its work ran, with whatever else. Loops that
wait for other programs get one, too, and so does what they wait for. Other loops stay loops: they
are marked, so that they are told from those that passes make, and `record-work` finds them.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.handovers import end_of_queue, handovers
from proton.dialect import traits
from proton.dialect.attributes import AUTO_SCOPES, SCOPE_LINES, SCOPES, SOURCE_LOOP
from proton.dialect.builtin import i32_attr, string_attr, strings_attr
from proton.dialect.mlir import Module, Operation, ir
from proton.dialect.proton import SCOPE_PREFIX
from proton.dialect.records import Origin
from proton.dialect.scopes import place_of, scope_paths
from proton.dialect.traits import has
from proton.dialect.walk import all_ops, functions, source_span
from proton.passes import Pass, register
from proton.trace.scope_path import ScopePath

SEPARATOR = "+"  # between the words in the pass's text


@register
@dataclass(frozen=True)
class LabelWork(Pass):
    """Puts loads, products, and what hands memory over into scopes, in their locations, and marks
    loops; `work` has the words of the option `auto`, which `+` separates."""

    name: ClassVar[str] = "label-work"

    work: str = ""

    def run(self, module: Module) -> None:
        words = self.work.split(SEPARATOR)
        for function in functions(module):
            made: dict[ScopePath, tuple[Origin, Operation]] = {}
            for op in all_ops(function):
                if has(op, traits.Loop):
                    op.attributes[SOURCE_LOOP] = ir.UnitAttr.get()
                for trait, word, noun in KINDS:
                    if word in words and has(op, trait) and _is_tile(op):
                        path = _labelled([op], f"{noun} {place_of([op])}")
                        made[path] = Origin(work=word), op
            for op, queue in handovers(function).items() if "barriers" in words else ():
                name, origin = end_of_queue(op, queue)
                made[_labelled([op, *all_ops(op)], name)] = origin, op
            if made:
                _note(function, made)


KINDS = ((traits.Loads, "loads", "load"), (traits.Multiplies, "dots", "dot"))


def _is_tile(op: Operation) -> bool:
    return isinstance(op.results[0].type, ir.RankedTensorType)


def _labelled(ops: list[Operation], name: str) -> ScopePath:
    """Puts ops into a scope inside of those that the first one is in; its path."""
    outer = min(scope_paths(ops[0].location), default="")
    path = ScopePath.of((outer, name))
    for op in ops:
        op.location = ir.Location.name(f"{SCOPE_PREFIX}{path}", op.location)
    return path


def _note(function: Operation, made: dict[ScopePath, tuple[Origin, Operation]]) -> None:
    """Adds the scopes to those of the function."""
    paths = [path.value for path in function.attributes.get(SCOPES, ())]
    lines = list(function.attributes.get(SCOPE_LINES, ()))
    for path, (_, op) in made.items():
        span = source_span(op.location)
        paths.append(path)
        lines.append(ir.ArrayAttr.get([string_attr(span.file), i32_attr(span.line)]))
    function.attributes[SCOPES] = strings_attr(paths)
    function.attributes[SCOPE_LINES] = ir.ArrayAttr.get(lines)
    origins = {str(path): origin.attribute for path, (origin, _) in made.items()}
    function.attributes[AUTO_SCOPES] = ir.DictAttr.get(origins)
