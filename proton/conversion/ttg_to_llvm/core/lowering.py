"""The frame of the lowering: types, the order of the work, and the table of rules.

A tensor becomes one vector a thread: its registers in the order of the layout. Arithmetic,
structured control flow and functions stay the ops they are and only change types, in place;
every other op has a rule that gives the values in its place.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

from proton.analysis.atomics import atomic_elements
from proton.analysis.axis_info import (
    AxisInfos,
    access_elements,
    access_steps,
    adjacent_registers,
    equal_addresses,
    equal_quotients,
    equal_registers,
    is_index,
)
from proton.analysis.scratch import axis_of
from proton.base.chips.chip import Chip
from proton.base.errors import PassError
from proton.base.targets import GPUTarget
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.carried import carry_what_is_used
from proton.conversion.ttg_to_llvm.core.carried_sums import carry_sums
from proton.conversion.ttg_to_llvm.core.primitives import Primitives, RecordPrimitives
from proton.conversion.ttg_to_llvm.core.scalars import Scalars
from proton.conversion.ttg_to_llvm.core.threads import Threads
from proton.conversion.ttg_to_llvm.records.units import KeptIterations, Unit
from proton.dialect import OpRules, by_name, isa, names_of, tt, ttg
from proton.dialect.attributes import KERNEL, SHARED_OFFSET
from proton.dialect.builtin import optional_operand
from proton.dialect.emit import remade
from proton.dialect.mlir import Block, Module, Operation, Type, Value, arith, ir, llvm, scf, vector
from proton.dialect.traits import Accesses, Combines, has
from proton.dialect.ttng_memory import is_tensor_map
from proton.dialect.walk import before, defining_op

SHARED_SYMBOL = "global_smem"
_KEPT = ("arith.", "math.", "scf.", "func.", "ub.")  # dialects that upstream passes lower


@functools.cache  # a kernel has few types
def llvm_type(type_: Type) -> Type:
    """What a value of a type is in a thread."""
    if ttg.is_tensor(type_):
        registers = ttg.layout_of(type_).in_size("register")
        return v.vector(registers, llvm_type(type_.element_type))
    if isinstance(type_, tt.PointerType):
        return v.pointer(v.GLOBAL)
    if ttg.is_mem_desc(type_):
        return v.pointer(v.SHARED)
    if is_tensor_map(type_):
        return v.pointer()
    if isinstance(type_, ttg.AsyncTokenType):
        return v.integer(32)  # of which nothing is asked
    if is_float8(type_):
        return v.integer(8)
    return type_


def is_float8(type_: Type) -> bool:
    """True if a scalar type is an 8-bit float: its bits travel as i8."""
    return isinstance(type_, ir.FloatType) and type_.width == 8


@dataclass
class Site:
    """An op that is being lowered: its operands as LLVM values, its types as they were."""

    op: Operation
    operand_types: list[Type]
    access: int = 1  # elements that one access may take
    width: int = 1  # registers in a row that an access has one element for
    adjacent: int = 1  # registers of its pointers that are one address and constants more
    # The first register that is known to equal each of the result's; of a remainder: with which it
    # shares the quotient.
    equal: tuple[int, ...] = ()
    is_counted: bool = False  # of a reduction: its second operand is the index along its axis

    @property
    def operands(self) -> list[Value]:
        return list(self.op.operands)

    @property
    def result_type(self) -> Type:
        return self.op.results[0].type

    def optional(self, place: int) -> Value | None:
        """The operand of a place; None where it is an optional one that is not there."""
        return optional_operand(self.op, place)

    def text(self, name: str) -> str:
        """A string attribute."""
        return str(ir.StringAttr(self.op.attributes[name]).value)

    def number(self, name: str) -> int:
        """An integer attribute."""
        return int(ir.IntegerAttr(self.op.attributes[name]).value)


Rule = Callable[["Lowering", Site], list[Value]]
RULES = OpRules[Rule]()  # of ops that each GPU has
lowers = RULES.of  # an op's rule emits code before it, and gives its results' values


@dataclass(frozen=True)
class Hardware:
    """A kind of GPU: what its threads do, and the rules of ops that only it has."""

    primitives: Primitives
    own: OpRules[Rule]
    recording: RecordPrimitives | None = None  # where kernels record

    def rule(self, op: Operation) -> Rule | None:
        """The rule of an op."""
        name = op.name
        return RULES.get(name) or self.own.get(name)


@dataclass
class Lowering:
    """The lowering of one function."""

    module: Module
    function: Operation
    infos: AxisInfos
    threads: Threads  # that run what is being lowered
    target: GPUTarget
    hardware: Hardware
    called_record: bool = False  # functions that are called record: they get where, behind all else
    shared_base: Value | None = None  # of a function that is called: where its shared memory begins
    scalars: Scalars = field(default_factory=Scalars)
    state: tuple[Value, ...] = ()  # of records: the profile buffer, the variables of the kernel
    unit: Unit = field(init=False, repr=False)  # what records know, behind the op that begins them
    iterations: dict[Value, KeptIterations] = field(
        default_factory=dict
    )  # of loops that keep readings alone

    @property
    def chip(self) -> Chip:
        """What the target can do."""
        return self.target.facts

    @property
    def primitives(self) -> Primitives:
        """What its threads do."""
        return self.hardware.primitives

    @property
    def recording(self) -> RecordPrimitives:
        """The same, with what records take; a PassError where kernels do not record."""
        if self.hardware.recording is None:
            raise PassError(f"kernels for {self.target} record nothing: run strip-records")
        return self.hardware.recording

    # Shared memory

    def shared(self, offset: int) -> Value:
        """The address of a byte of the function's shared memory."""
        base = self.program_shared() if self.shared_base is None else self.shared_base
        return v.bytes_behind(base, offset)

    def program_shared(self) -> Value:
        """The address where the program's shared memory begins."""
        symbol = ir.FlatSymbolRefAttr.get(SHARED_SYMBOL)
        return v.create(llvm.AddressOfOp, v.pointer(v.SHARED), global_name=symbol)

    def scratch(self, site: Site) -> int:
        """Where an op's scratch memory begins; a PassError where none was allocated."""
        if SHARED_OFFSET not in site.op.attributes:
            raise PassError(f"{site.op.name} has no shared memory: run allocate-shared-memory")
        return site.number(SHARED_OFFSET)

    # The work

    def run(self) -> None:
        sites = _sites(self.function, self.infos, self.threads, self.chip)
        self._signature()
        loops = [site.op for site, _ in sites if isa(site.op, scf.ForOp)]
        for site, threads in sites:
            self.threads = threads
            self.lower(site)
        for loop in reversed(loops):  # inner ones come behind those around them
            carry_sums(carry_what_is_used(loop, self.scalars), self.scalars)

    def lower(self, site: Site) -> None:
        """Replaces an op by what its rule emits, or gives it the types of LLVM."""
        op = site.op
        with before(op):
            rule = self.hardware.rule(op)
            found = rule(self, site) if rule is not None and self._applies(site) else None
            if found is not None:
                for result, value in zip(op.results, found, strict=True):
                    result.replace_all_uses_with(value)
                op.erase()
            elif op.name.startswith(_KEPT):
                retype(op)
                _share_equal(op, site.equal)
            else:
                raise PassError(f"{op.name} has no rule in ttg-to-llvm (at {op.location})")

    def _applies(self, site: Site) -> bool:
        """Arithmetic has rules for some types only."""
        return not site.op.name.startswith("arith.") or needs_rule(site)

    def _signature(self) -> None:
        """The function's type; one that is called takes the address of its shared memory last."""
        block = self.function.regions[0].blocks[0]
        for argument in block.arguments:
            argument.set_type(llvm_type(argument.type))
        if KERNEL not in self.function.attributes:
            self.shared_base = block.add_argument(v.pointer(v.SHARED), self.function.location)
            if self.called_record:
                spaces = v.GLOBAL, 0  # the profile buffer, and the variables of the kernel
                self.state = tuple(
                    block.add_argument(v.pointer(space), self.function.location) for space in spaces
                )
        type_ = ir.TypeAttr(self.function.attributes["function_type"]).value
        inputs = [argument.type for argument in block.arguments]
        results = [llvm_type(result) for result in type_.results]
        self.function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(inputs, results)
        )
        if "arg_attrs" in self.function.attributes:
            known = list(ir.ArrayAttr(self.function.attributes["arg_attrs"]))
            known += [ir.DictAttr.get({})] * (len(inputs) - len(known))
            self.function.attributes["arg_attrs"] = ir.ArrayAttr.get(known)


# of any types
WIDE_BITS = 64
INTEGER_DIVISIONS = names_of(arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp)
_WITH_RULES = names_of(
    *(arith.ConstantOp, arith.DivFOp, arith.RemFOp, arith.MinNumFOp),
    *(arith.FPToSIOp, arith.FPToUIOp),
)


def _is_wide(type_: Type) -> bool:
    """True of a tensor of 64-bit integers."""
    return ttg.is_tensor(type_) and bool(type_.element_type.width == WIDE_BITS)


def needs_rule(site: Site) -> bool:
    """True if an `arith` op is not what upstream would make of it."""
    name = site.op.name
    if name in _WITH_RULES or (name in INTEGER_DIVISIONS and _is_wide(site.result_type)):
        return True
    if isa(site.op, arith.CmpIOp):
        of = site.operand_types[0]
        return ttg.is_tensor(of) and of.element_type.width in v.NARROW_BITS
    if isa(site.op, arith.SelectOp):
        return isa(defining_op(site.op.operands[0]), vector.FromElementsOp)
    types = [*site.operand_types, *(result.type for result in site.op.results)]
    return any(is_float8(getattr(type_, "element_type", type_)) for type_ in types)


def _sites(
    function: Operation, infos: AxisInfos, program: Threads, chip: Chip
) -> list[tuple[Site, Threads]]:
    """The ops of a function in order, and who runs them; regions of reductions and scans belong to
    their op."""
    found: list[tuple[Site, Threads]] = []
    for block in function.regions[0].blocks:
        _add_sites(found, block, program, infos, chip)
    return found


def _add_sites(
    found: list[tuple[Site, Threads]], block: Block, threads: Threads, infos: AxisInfos, chip: Chip
) -> None:
    """Adds those of a block. No function inside `_sites`: one that calls itself is a cycle, and
    keeps all that it knows until Python's garbage collector looks through it."""
    for view in block.operations:
        op = view.operation
        found.append((_site(op, infos, chip), threads))
        if has(op, Combines):
            continue
        groups = [threads] * len(op.regions)
        if isa(op, ttg.WarpSpecializeOp):
            groups = threads.groups(op.attributes["warps"].value)
        for region, group in zip(op.regions, groups, strict=True):
            for inner in region.blocks:
                _add_sites(found, inner, group, infos, chip)


# Ops whose equal results are computed once. LLVM merges equal arithmetic on equal operands by
# itself, but cannot know that quotients of a run are equal, and keeps many conditions as bits of a
# number, of which it takes those that are asked for.
_CONDITIONS = names_of(arith.CmpIOp, arith.CmpFOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp)
_QUOTIENTS = names_of(arith.DivSIOp, arith.DivUIOp, arith.ShRUIOp)
REMAINDERS = by_name({arith.RemSIOp: arith.DivSIOp, arith.RemUIOp: arith.DivUIOp})


def _site(op: Operation, infos: AxisInfos, chip: Chip) -> Site:
    site = Site(op, [operand.type for operand in op.operands])
    if has(op, Accesses):
        _check_layouts(op)
    if isa(op, tt.LoadOp, tt.StoreOp, ttg.AsyncCopyOp):
        site.access = access_elements(op, infos)
        site.adjacent = adjacent_registers(op.operands[0], infos)
    elif isa(op, tt.AtomicRMWOp):
        site.access = min(access_elements(op, infos), atomic_elements(op, chip))
    elif op.name in _QUOTIENTS or (op.name in _CONDITIONS and _is_condition(op.results[0])):
        site.equal = equal_registers(op.results[0], infos[op.results[0]].constancy)
    elif op.name in REMAINDERS:
        site.equal = equal_registers(op.results[0], equal_quotients(op, infos))
    elif isa(op, tt.ReduceOp) and len(op.operands) == 2:
        site.is_counted = is_index(op.operands[1], axis_of(op), infos)
    if isa(op, tt.LoadOp):
        site.equal = equal_registers(op.results[0], equal_addresses(op, infos))
        site.width, count = access_steps(op, infos)
        if site.width > 1:
            site.access = site.adjacent = count
            site.equal = tuple(n // site.width for n in site.equal[:: site.width])
    return site


def _check_layouts(op: Operation) -> None:
    """An access is of one layout: a thread has the address, the value and the mask."""
    layouts = {
        ttg.layout_of(operand.type) for operand in op.operands if ttg.is_tensor(operand.type)
    }
    if len(layouts) > 1:
        raise PassError(f"the operands of {op.name} have different layouts (at {op.location})")


def _is_condition(value: Value) -> bool:
    return ttg.is_tensor(value.type) and bool(value.type.element_type == v.integer(1))


def _share_equal(op: Operation, equal: tuple[int, ...]) -> None:
    """Computes an op once for registers where its result is the same."""
    if not equal:
        return

    def repeat(*operands: Value) -> Value:
        return remade(op, [v.like(operands[0], v.element(op.results[0]))], list(operands)).result

    with before(op):
        if (division := REMAINDERS.get(op.name)) is not None:
            wide = remainder(equal, lambda a, b: division(a, b).result, *op.operands)
        else:
            wide = once(equal, repeat, *op.operands)
    op.results[0].replace_all_uses_with(wide)
    op.erase()


def remainder(
    equal: tuple[int, ...], divide: Callable[[Value, Value], Value], left: Value, right: Value
) -> Value:
    """What a division leaves, by quotients of which some are equal."""
    product = v.binary(llvm.MulOp, once(equal, divide, left, right), right)
    return v.binary(llvm.SubOp, left, product)


def once(equal: tuple[int, ...], function: Callable[..., Value], *operands: Value) -> Value:
    """A function of vectors, computed for the first of registers where its results are equal."""
    if not equal:
        return function(*operands)
    chosen = sorted(set(equal))
    found = function(*(v.shuffle(operand, chosen) for operand in operands))
    return v.shuffle(found, [chosen.index(register) for register in equal])


def retype(op: Operation) -> None:
    """Gives an op that stays the types of LLVM."""
    for result in op.results:
        result.set_type(llvm_type(result.type))
    for region in op.regions:
        for block in region.blocks:
            for argument in block.arguments:
                argument.set_type(llvm_type(argument.type))


def lowering(
    module: Module,
    function: Operation,
    infos: AxisInfos,
    called_record: bool,
    target: GPUTarget,
    hardware: Hardware,
) -> Lowering:
    """The lowering of a function of a module."""
    threads = Threads(function, hardware.primitives, target.warp_size, ttg.num_warps(module))
    return Lowering(module, function, infos, threads, target, hardware, called_record)
