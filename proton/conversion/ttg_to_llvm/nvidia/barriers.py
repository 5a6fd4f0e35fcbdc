"""Barriers in shared memory (mbarriers), and the order of warp groups. One thread of the program's
first warp starts barriers and says what they wait for.

Warp groups that alternate meet at barriers of hardware, one for each: the group waits at its own,
at which the one before it arrives when it hands over (PTX ISA, "bar.arrive"). With the
groups 0 and 1:

    group 0    wait(0) ... arrive(1)          wait(0) ... arrive(1)          wait(0) ...
    group 1    arrive(0)   wait(1) ... arrive(0)      wait(1) ... arrive(0)

The last group arrives at the first one's barrier when the order begins, and not when it ends.
"""

from proton.base.errors import PassError
from proton.base.targets import WARP_SIZE
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site
from proton.conversion.ttg_to_llvm.core.threads import BARRIERS, Threads
from proton.conversion.ttg_to_llvm.nvidia import primitives as nvidia
from proton.conversion.ttg_to_llvm.nvidia.rules import lowers
from proton.dialect import ttng
from proton.dialect.mlir import Value, ir, llvm
from proton.layout.linear import log2
from proton.layout.tensor_cores import GROUP_WARPS

_BARRIER_BYTES = 8


def issues(ctx: Lowering, warps: int) -> Value:
    """Whether this thread issues: one of each of the first so many warps, the same each time. It is
    elected where it is needed, so that the assembler knows that it is one."""
    is_of_these, elected = ctx.threads.is_warp_below(warps), nvidia.elected()
    return elected if is_of_these is None else v.binary(llvm.AndOp, is_of_these, elected)


def is_issuer(ctx: Lowering) -> Value:
    """Whether this is the one thread of the program that deals with barriers."""
    return issues(ctx, 1)


def _each(site: Site) -> list[Value]:
    """The addresses of all barriers of an operand."""
    start = nvidia.shared_address(site.operands[0])
    count = ttng.barrier_count(site.operand_types[0])
    return [v.add(start, v.i32(n * _BARRIER_BYTES)) if n else start for n in range(count)]


@lowers(ttng.InitBarrierOp)
def _init(ctx: Lowering, site: Site) -> list[Value]:
    for address in _each(site):
        text = f"@$0 mbarrier.init.shared::cta.b64 [$1], {site.number('count')};"
        nvidia.assembly(text, "b,r,~{memory}", None, is_issuer(ctx), address)
    return []


@lowers(ttng.InvalBarrierOp)
def _inval(ctx: Lowering, site: Site) -> list[Value]:
    """Ends their life."""
    for address in _each(site):
        text = "@$0 mbarrier.inval.shared::cta.b64 [$1];"
        nvidia.assembly(text, "b,r,~{memory}", None, is_issuer(ctx), address)
    return []


@lowers(ttng.BarrierExpectOp)
def _expect(ctx: Lowering, site: Site) -> list[Value]:
    """Arrives; the phase ends when so many bytes have arrived, too."""
    barrier, condition, *_ = site.operands
    text = f"@$0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [$1], {site.number('bytes')};"
    arrives = v.binary(llvm.AndOp, condition, is_issuer(ctx))
    address = nvidia.shared_address(barrier)
    nvidia.assembly(text, "b,r,~{memory}", None, arrives, address)
    return []


@lowers(ttng.WaitBarrierOp)
def _wait(ctx: Lowering, site: Site) -> list[Value]:
    _poll(site)
    return []


def _poll(site: Site) -> None:
    barrier, phase, *_ = site.operands
    # In one line: LLVM takes each further one for the next line of the source.
    text = (
        "{ .reg .pred done; again: "
        "mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; "
        "@!done bra.uni again; }"
    )
    nvidia.assembly(text, "r,r,~{memory}", None, nvidia.shared_address(barrier), phase)


@lowers(ttng.WaitBarrierIfOp)
def _wait_if(ctx: Lowering, site: Site) -> list[Value]:
    _, _, condition = site.operands
    v.when(condition, lambda: _poll(site))
    return []


@lowers(ttng.ArriveOnceOp)
def _arrive_once(ctx: Lowering, site: Site) -> list[Value]:
    _for_all(ctx, site, f"@$0 mbarrier.arrive.shared::cta.b64 _, [$1], {site.number('count')};")
    return []


def _for_all(ctx: Lowering, site: Site, text: str) -> None:
    """Behind a barrier of the group: what its warps did before is done."""
    barrier, condition = site.operands
    if ctx.threads.warps > 1:
        ctx.threads.barrier()
    else:
        nvidia.warp_barrier()
    issues = v.binary(llvm.AndOp, condition, is_issuer(ctx))
    address = nvidia.shared_address(barrier)
    nvidia.assembly(text, "b,r,~{memory}", None, issues, address)


@lowers(ttng.BarrierCompleteOp)
def _complete(ctx: Lowering, site: Site) -> list[Value]:
    """An arrival releases what was written; here a fence does."""
    complete = f"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [$1], {site.number('bytes')};"
    _for_all(ctx, site, f"@$0 fence.acq_rel.cta; @$0 {complete}")
    return []


@lowers(ttng.ArriveOfWarpsOp)
def _arrive_of_warps(ctx: Lowering, site: Site) -> list[Value]:
    barrier, condition = site.operands
    nvidia.warp_barrier()
    arrives = v.binary(llvm.AndOp, condition, nvidia.elected())
    _arrive_where(arrives, nvidia.shared_address(barrier))
    return []


def _arrive_where(condition: Value, address: Value) -> None:
    text = "@$0 mbarrier.arrive.shared::cta.b64 _, [$1];"
    nvidia.assembly(text, "b,r,~{memory}", None, condition, address)


@lowers(ttng.ArriveBehindCopiesOp)
def _arrive_behind_copies(ctx: Lowering, site: Site) -> list[Value]:
    kind = "" if site.op.attributes["increments"].value else ".noinc"
    text = f"cp.async.mbarrier.arrive{kind}.shared::cta.b64 [$0];"
    nvidia.assembly(text, "r,~{memory}", None, nvidia.shared_address(site.operands[0]))
    return []


@lowers(ttng.ArriveBarrierOp)
def _arrive(ctx: Lowering, site: Site) -> list[Value]:
    """Each thread that comes here arrives."""
    text = "mbarrier.arrive.shared::cta.b64 _, [$0];"
    nvidia.assembly(text, "r,~{memory}", None, nvidia.shared_address(site.operands[0]))
    return []


@lowers(ttng.ArriveWithCopiesOp)
def _arrive_with_copies(ctx: Lowering, site: Site) -> list[Value]:
    """Each thread waits for its own copies and fences them; then one arrives for its warp."""
    nvidia.wait_copies(site.number("pendings"))
    nvidia.fence_async_shared()
    nvidia.warp_barrier()
    _arrive_where(nvidia.elected(), nvidia.shared_address(site.operands[0]))
    return []


# The order of warp groups


def _own(threads: Threads) -> tuple[Value, Value]:
    """The numbers of the barriers of the warp's group and of the one behind it, i32."""
    count = threads.warps // GROUP_WARPS
    if threads.barrier_number or count < 2:
        raise PassError("warp groups alternate in a program of several, outside of groups of warps")
    group = v.binary(llvm.LShrOp, threads.warp, v.i32(log2(GROUP_WARPS)))
    behind = v.binary(llvm.AndOp, v.add(group, v.i32(1)), v.i32(count - 1))
    first = v.i32(BARRIERS - count)
    return v.add(group, first), v.add(behind, first)


def _is_last(threads: Threads) -> Value:
    """Whether the warp is of the last group."""
    return v.compare("uge", threads.warp, v.i32(threads.warps - GROUP_WARPS))


def _pass(threads: Threads, condition: Value | None = None) -> None:
    """Arrives at the next group's barrier, where the condition holds."""
    both = v.i32(2 * GROUP_WARPS * WARP_SIZE)
    _, behind = _own(threads)
    if condition is None:
        nvidia.assembly("bar.arrive $0, $1;", "r,r,~{memory}", None, behind, both)
        return
    text = "@$0 bar.arrive $1, $2;"
    nvidia.assembly(text, "b,r,r,~{memory}", None, condition, behind, both)


def _never(threads: Threads) -> Value:
    """An i1 that does not hold, which the assembler does not know: among the lanes below a
    thread's own there is never lane 31, whose bit is the sign."""
    if "never" not in threads.known:
        block = threads.function.regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(block), threads.function.location:
            threads.known["never"] = v.compare("slt", nvidia.lanes_below(), v.i32(0))
    return threads.known["never"]


def _take(threads: Threads) -> None:
    """Waits at the own barrier. `ptxas` would wait as early as it may, ahead of the work that the
    group has to do while it is the other's turn."""
    own, _ = _own(threads)
    nvidia.sched_barrier(_never(threads))
    nvidia.meet(own, v.i32(2 * GROUP_WARPS * WARP_SIZE))


@lowers(ttng.OrderBeginOp)
def _order_begin(ctx: Lowering, site: Site) -> list[Value]:
    _pass(ctx.threads, _is_last(ctx.threads))
    _take(ctx.threads)
    return []


@lowers(ttng.OrderPassOp)
def _order_pass(ctx: Lowering, site: Site) -> list[Value]:
    _pass(ctx.threads)
    return []


@lowers(ttng.OrderWaitOp)
def _order_wait(ctx: Lowering, site: Site) -> list[Value]:
    _take(ctx.threads)
    return []


@lowers(ttng.OrderEndOp)
def _order_end(ctx: Lowering, site: Site) -> list[Value]:
    is_last = _is_last(ctx.threads)
    _pass(ctx.threads, v.binary(llvm.XOrOp, is_last, v.constant(1, v.integer(1))))
    return []
