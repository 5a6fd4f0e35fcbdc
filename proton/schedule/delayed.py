"""Dots that run an iteration later than what they take is computed (roles.py decides which).

    for i in n:                      first 0
      first i                        for i from 1 to n:
      delayed i             =>         first i, up to its last dot
                                       delayed i - 1: dots
                                       first i: the rest; waits for delayed i - 1 where it asks
                                     delayed n - 1

Where the loop may be empty all of it is behind a branch.
"""

from collections.abc import Callable, Collection

from proton.dialect import isa
from proton.dialect.asynchronous import Where, WorkIteration
from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Operation, Value, arith, ir, scf
from proton.dialect.regions import ForLoop, If, yield_values
from proton.dialect.traits import Pure, has
from proton.dialect.ttg import is_tensor
from proton.dialect.walk import all_ops, before, defining_op
from proton.schedule.dots import DOT, WAIT
from proton.schedule.pipelined_loop import is_less

# Which iterations work is of, ahead of the loop, in it, and behind it.
_FIRST, _NEXT, _LAST = (
    WorkIteration(ahead, where, is_moved=True)
    for ahead, where in ((0, Where.BEFORE), (1, Where.INSIDE), (0, Where.BEHIND))
)


def delay(loop: Operation, apart: Collection[Operation], numbers: Collection[int]) -> list[Value]:
    """Delays the ops `apart` of a loop, and what only they, and the carried values of these
    numbers, take of memory and of indices; the values that stand for the loop's results. The loop
    goes."""
    return _Delayed(loop, apart, numbers).run()


class _Delayed:
    def __init__(
        self, loop: Operation, apart: Collection[Operation], numbers: Collection[int]
    ) -> None:
        self.view = ForLoop(loop)
        ops = [view.operation for view in self.view.body.operations][:-1]
        later = _with_operands(ops, set(apart), numbers)
        self.first = [op for op in ops if op not in later]
        self.later = [op for op in ops if op in later]
        self.args, self.yielded = self.view.iter_args, self.view.yielded
        made = {result for op in self.later for result in op.results}
        self.is_late = [value in made for value in self.yielded]
        late = {arg for arg, is_late in zip(self.args, self.is_late, strict=True) if is_late}
        known = {self.view.induction_var, *self.args}
        known |= {result for op in self.first for result in op.results}
        taken = dict.fromkeys(value for op in self.later for value in op.operands)
        self.crossing = [value for value in taken if value in known - late]

    def run(self) -> list[Value]:
        """See `delay`."""
        loop, view = self.view.op, self.view
        lower, upper, step = view.bounds
        with before(loop):
            branch = If.create(is_less(loop, lower, upper), [r.type for r in loop.results])
            with ir.InsertionPoint(branch.add_block(0)):
                mapping = {view.induction_var: lower}
                mapping |= dict(zip(self.args, view.init_args, strict=True))
                _emit(self.first, mapping, _FIRST.write)
                state = self._state(mapping, view.init_args)
                second = arith.AddIOp(lower, step).result
                made = ForLoop.create((second, upper, step), state, loop.attributes)
                with ir.InsertionPoint(made.body):
                    self._body(made)
                mapping = self._of_later(list(made.op.results))
                _emit(self.later, mapping, _LAST.write)
                results = list(made.op.results)
                yield_values(
                    [
                        mapping[value] if is_late else results[number]
                        for number, (value, is_late) in enumerate(
                            zip(self.yielded, self.is_late, strict=True)
                        )
                    ]
                )
            with ir.InsertionPoint(branch.add_block(1)):
                yield_values(view.init_args)
        for old, new in zip(loop.results, branch.op.results, strict=True):
            old.replace_all_uses_with(new)
        loop.erase()
        return list(branch.op.results)

    def _state(self, mapping: dict[Value, Value], late: list[Value]) -> list[Value]:
        """What the loop carries behind an iteration of `first`: of late values those of the
        iteration before."""
        sides = zip(self.yielded, self.is_late, late, strict=True)
        carried = [known if is_late else mapping.get(v, v) for v, is_late, known in sides]
        return [*carried, *(mapping[value] for value in self.crossing)]

    def _of_later(self, carried: list[Value]) -> dict[Value, Value]:
        """What the delayed ops take of what is carried."""
        count = len(self.args)
        mapping = dict(zip(self.crossing, carried[count:], strict=True))
        sides = zip(self.args, self.is_late, carried, strict=False)
        return mapping | {arg: value for arg, is_late, value in sides if is_late}

    def _body(self, made: ForLoop) -> None:
        later = self._of_later(made.iter_args)
        first = {self.view.induction_var: made.induction_var}
        sides = zip(self.args, self.is_late, made.iter_args, strict=False)
        first |= {arg: value for arg, is_late, value in sides if not is_late}
        # `first` asks for late values where the delayed ops have given them.
        split = max(n for n, op in enumerate(self.later) if isa(op, DOT)) + 1
        last = max(n for n, op in enumerate(self.first) if isa(op, DOT)) + 1
        late = {arg for arg, is_late in zip(self.args, self.is_late, strict=True) if is_late}
        asks = (n for n, op in enumerate(self.first) if n >= last and late & _taken(op))
        rest = next(asks, len(self.first))
        _emit(self.first[:last], first, _NEXT.write)
        _emit(self.later[:split], later)
        _emit(self.first[last:rest], first, _NEXT.write)
        _emit(self.later[split:], later)
        for arg, value, is_late in zip(self.args, self.yielded, self.is_late, strict=True):
            if is_late:
                first[arg] = later[value]
        _emit(self.first[rest:], first, _NEXT.write)
        values = [later.get(v, v) for v in self.yielded]
        yield_values(self._state(first, values))
        _count_pendings(made)


def _emit(
    ops: list[Operation],
    mapping: dict[Value, Value],
    note: Callable[[Operation], None] | None = None,
) -> None:
    """Emits ops again, with other values in the place of those in `mapping`, and adds theirs;
    `note` writes on them which iteration they are of."""
    for op in ops:
        copy = op.clone().operation
        for inner in (copy, *all_ops(copy)):
            for number, operand in enumerate(inner.operands):
                if operand in mapping:
                    inner.operands[number] = mapping[operand]
        mapping |= dict(zip(op.results, copy.results, strict=True))
        if note is not None and (_is_of_tensors(op) or not has(op, Pure)):
            note(copy)


def _taken(op: Operation) -> set[Value]:
    """What an op takes, and those in its regions."""
    return {operand for inner in (op, *all_ops(op)) for operand in inner.operands}


def _is_of_tensors(op: Operation) -> bool:
    return any(is_tensor(result.type) for result in op.results)


def _with_operands(
    ops: list[Operation], apart: set[Operation], numbers: Collection[int]
) -> set[Operation]:
    """Ops, and those of scalars and of views of memory that only they take, and the end of the
    block as operands of these numbers."""
    found = set(apart)
    for op in reversed(ops):
        if op not in found and has(op, Pure) and not op.regions and not _is_of_tensors(op):
            uses = [use for result in op.results for use in result.uses]
            if uses and all(
                use.owner.operation in found
                or (isa(use.owner.operation, scf.YieldOp) and use.operand_number in numbers)
                for use in uses
            ):
                found.add(op)
    return found


def _count_pendings(loop: ForLoop) -> None:
    """Has each wait for a dot leave those under way that were issued behind it."""
    issued: list[Operation] = []
    for view in loop.body.operations:
        op = view.operation
        if isa(op, DOT):
            issued.append(op)
        elif isa(op, WAIT):
            dot = defining_op(op.operands[0])
            assert dot is not None
            op.attributes["pendings"] = i32_attr(len(issued) - 1 - issued.index(dot))
