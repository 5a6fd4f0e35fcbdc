"""LLVM dialect to PTX, by the NVPTX target inside the MLIR wheel."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable

from proton.base import nvidia_tools as tools
from proton.base.targets import GPUTarget
from proton.dialect import isa
from proton.dialect.mlir import Module, disable_llvm_pass, gpu, llvm
from proton.dialect.walk import gpu_functions
from proton.passes import Upstream

# Straight-line strength reduction: its time is quadratic in the additions of a function, and it
# changes next to nothing here.
_LEFT_OUT = "slsr"
# A string of PTX ends at the next quotation mark, whatever is ahead of it; LLVM writes \\" in one.
_FILE, _QUOTE = re.compile(r"\.file[ \t].*"), re.compile(r"\\(.)")

# What begins with letters is found ten times as fast as the beginning of a line.
_PRODUCT = re.compile(r"\tmul\.wide\.([su]32) \t(%rd\d+), (%r\d+), (\d+);\n")
_ADDRESS = re.compile(r"\tadd\.s64 \t(%rd\d+), (%rd\d+), (%rd\d+);")
# Of a line what is ahead of a register that it writes, alone or in braces.
_WRITES = re.compile(r"\s*(?:@!?%p\d+\s+)?[a-z][\w.:]*\s+(?:\{[^}]*)?")
_INSTRUCTION = re.compile(r"\s*(?:@!?(%p\d+)\s+)?([a-z][\w.:]*)\s+(.*)")
_REGISTER = re.compile(r"%[a-z]+\d+")
# Instructions that give threads the same of the same numbers, and registers that tell them apart.
_COMPUTES = re.compile(
    r"(?:mov|add|sub|mul|mad|shl|shr|and|or|xor|not|neg|abs|min|max|div|rem|setp|selp|cvta?)\."
    r"|ld\.param"
)
_OF_THREAD = re.compile(r"%(?:tid|laneid|warpid|lanemask|clock|globaltimer)")
_FEW_ADDRESSES = 2  # of a base: for 15 of it a kernel of 577 instructions has 592
_DOT = "wgmma.mma_async"
_LABEL = re.compile(r"\n(\$[\w$]+):")
_BLOCK_ENDS = re.compile(r"^\$|\bbra\b|\bbar\.")
_GLOBAL = re.compile(r"\b(ld|st)\.global[.\w]*\s[^\[\n]*\[\s*(%rd\d+)")
# Lanes that run it wait for each other; ptxas moves no access of memory across.
_FENCE = "{ .reg .b32 lanes; activemask.b32 lanes; bar.warp.sync lanes; }"
_GLOBAL_LOAD = re.compile(r"\bld\.global\b")
# What loads that are together do not stand around: other accesses, and what ends a block.
_LOADS_END = re.compile(
    r"^\$|\b(?:bra|bar|barrier|st|atom|red|wgmma|mma|membar|fence|cp|mbarrier|ldmatrix|call|ret)\b"
)
_EVENT = "\tpmevent 0;"  # ptxas moves nothing across
_BRANCH = re.compile(r"bra(?:\.uni)? \t?(\$[\w$]+);")
# A loop's exit, and behind places in the source the first block of an iteration.
_EXIT = re.compile(
    r"\t@!(%p\d+) bra \t(\$L__BB\w+);\n((?:\t\.loc[^\n]*\n|\$L__tmp\d+:\n)*)(\$L__BB\w+):"
)


def _needs_libdevice(module: Module) -> bool:
    return any(
        isa(op, llvm.LLVMFuncOp) and op.attributes["sym_name"].value.startswith("__nv_")
        for op in gpu_functions(module)
    )


def emit_ptx(module: Module, target: GPUTarget) -> str:
    """PTX text of a module that holds one `gpu.module`; the module is used up.

    Line tables map instructions to the kernel's source; the mark of a debug build, which would
    turn the assembler's optimisation off, is taken away.
    """
    disable_llvm_pass(_LEFT_OUT)
    facts = target.facts
    options = f"chip={facts.name} features=+ptx{facts.ptx} O=3"
    if _needs_libdevice(module):
        options += f" l={tools.libdevice()}"
    Upstream(
        "ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly},"
        f"nvvm-attach-target{{{options}}},gpu-module-to-binary{{format=isa}}"
    ).run(module)
    binary = module.body.operations[0].operation
    text = gpu.ObjectAttr(binary.attributes["objects"][0]).object.decode()
    text = re.sub(r"^(\.target [^\n]*?), debug", r"\1", text, count=1, flags=re.MULTILINE)
    text = _FILE.sub(lambda line: _QUOTE.sub(_without_quote, line[0]), text)
    text = _with_branches_back(text)
    begin = Counter(found[2] for found in _ADDRESS.finditer(text))
    return _with_uniform_bases(text, lambda found: begin[found[2]] <= _FEW_ADDRESSES)


def _with_branches_back(ptx: str) -> str:
    """The PTX in which a loop ends with a branch to its first block. Where a branch is in a loop,
    LLVM has the last block of an iteration ahead of the first one, and leave the loop or go on:
    ptxas unrolls no such loop."""
    return _EXIT.sub(r"\t@\1 bra \t\4;\n\tbra.uni \t\2;\n\3\4:", ptx)


def with_bases_beside_dots(ptx: str) -> str:
    """The PTX with uniform registers for the bases of what loops with `wgmma` address: accumulators
    take the registers' ports, and twelve IMAD.WIDE for the copies of an iteration were dispatched
    so late that a product took 1.08 of its time (decision 221)."""
    if _DOT not in ptx:
        return ptx
    labels = {found[1]: found.start(1) for found in _LABEL.finditer(ptx)}
    # A label of a kernel's own assembly may stand behind others of its line.
    jumps = [
        (labels[found[1]], found.start()) for found in _BRANCH.finditer(ptx) if found[1] in labels
    ]
    loops = [jump for jump in jumps if ptx.find(_DOT, *jump) >= 0]
    return _with_uniform_bases(
        ptx, lambda found: any(start < found.start() < end for start, end in loops)
    )


def _with_uniform_bases(ptx: str, is_asked: Callable[[re.Match[str]], bool]) -> str:
    """The PTX with one instruction for the addresses that begin at a parameter, and are asked for.
    ptxas adds to a uniform register then, which it loads ahead, and else to one of the thread, for
    which each thread waits behind what it computes: a kernel that stores numbers took 0.95 of its
    time so (H200, 0ccd119c, by what became benchmarks/gpu_small.py). An address takes an
    instruction more, LEA twice for IMAD.WIDE, so elsewhere bases of many stay as they are, and so
    do indices that all threads have in common, which take five instructions for one.
    """
    parameters = set(re.findall(r"ld\.param\.b64 \t(%rd\d+),", ptx))
    asked = {
        found[0] for found in _ADDRESS.finditer(ptx) if found[2] in parameters and is_asked(found)
    }
    added = {found[3] for found in _ADDRESS.finditer(ptx) if found[0] in asked}
    products = {found[2]: found for found in _PRODUCT.finditer(ptx) if found[2] in added}
    if not products:
        return ptx
    uses, writes = Counter[str](), Counter[str]()
    names = "|".join({name for found in products.values() for name in found.group(2, 3)})
    for use in re.finditer(rf"(?:{names})\b", ptx):
        uses[use[0]] += 1
        line = ptx.rfind("\n", 0, use.start()) + 1
        writes[use[0]] += _WRITES.fullmatch(ptx, line, use.start()) is not None

    of_threads = _of_threads(ptx)

    def fused(found: re.Match[str]) -> str:
        address, base, number = found.groups()
        if number not in products or found[0] not in asked:
            return found[0]
        kind, _, index, size = products[number].groups()
        if writes[number] != 1 or writes[index] != 1 or index not in of_threads:
            return found[0]
        uses[number] -= 1
        return f"\tmad.wide.{kind} \t{address}, {index}, {size}, {base};"

    ptx = _ADDRESS.sub(fused, ptx)
    return _PRODUCT.sub(lambda found: "" if uses[found[2]] == 1 else found[0], ptx)


def _of_threads(ptx: str) -> set[str]:
    """The registers that threads may have different numbers in: what they are told of themselves,
    what memory and other threads give them, and what is computed from that."""
    found, takers = set[str](), defaultdict[str, list[str]](list)
    for line in ptx.splitlines():
        if (instruction := _INSTRUCTION.match(line)) is None:
            continue
        predicate, name, operands = instruction.groups()
        end = operands.find("}" if operands.startswith("{") else ",")
        written = _REGISTER.findall(operands[:end])
        if not _COMPUTES.match(name) or _OF_THREAD.search(operands):
            found.update(written)
        for register in (*_REGISTER.findall(operands[end:]), *filter(None, [predicate])):
            takers[register] += written
    waiting = list(found)
    while waiting:
        new = set(takers[waiting.pop()]) - found
        found |= new
        waiting += new
    return found


def _without_quote(escape: re.Match[str]) -> str:
    return "'" if escape[1] == '"' else escape[0]


def with_most_registers(ptx: str, most: int) -> str:
    """The PTX of a kernel of which a thread has so many registers at most."""
    return _directed(ptx, f".maxnreg {most}")


def with_least_programs(ptx: str, least: int) -> str:
    """The PTX of a kernel of which so many programs have to fit on an SM, and no more."""
    return _directed(ptx, f".minnctapersm {least}")


def with_stores_behind_loads(ptx: str) -> str:
    """The PTX in which a store of a block that is written in place stands behind all loads ahead of
    it, where there are several. ptxas sees by the address, a register and a number, which loads it
    does not touch, and moves it between them, to need fewer registers."""
    if "ld.global" not in ptx or "st.global" not in ptx:
        return ptx
    accesses = set(_GLOBAL.findall(ptx))
    if not any(kind == "st" and ("ld", base) in accesses for kind, base in accesses):
        return ptx
    loaded = Counter[str]()
    lines = ptx.split("\n")
    for number, line in enumerate(lines):
        if _BLOCK_ENDS.search(line):
            loaded.clear()
        elif access := _GLOBAL.search(line):
            kind, base = access.groups()
            if kind == "ld":
                loaded[base] += 1
            elif loaded[base] > 1:
                lines[number] = f"\t{_FENCE}\n{line}"
                loaded.clear()
    return "\n".join(lines)


def with_loads_together(ptx: str) -> str:
    """The PTX in which nothing that is behind several loads of a block can go between them: ptxas
    waits for some ahead of the next ones, to need fewer registers, or predicates."""
    lines, loads = ptx.split("\n"), list[int]()
    for number, line in enumerate(lines):
        if _GLOBAL_LOAD.search(line):
            loads.append(number)
        elif _LOADS_END.search(line):
            if len(loads) > 1:
                lines[loads[-1]] += f"\n{_EVENT}"
            loads.clear()
    return "\n".join(lines)


def with_groups_of(ptx: str, consumers: int, producer: int) -> str:
    """The PTX of a kernel whose roles have so many registers."""

    def changed(found: re.Match[str]) -> str:
        return f"{found[1]}{producer if found[2] == 'dec' else consumers}"

    return re.sub(r"(setmaxnreg\.(inc|dec)\.sync\.aligned\.u32 )\d+", changed, ptx)


def has_dots(ptx: str) -> bool:
    """True if the PTX has instructions of tensor cores."""
    return _DOT in ptx or "mma.sync" in ptx


def copies_by_threads(ptx: str) -> bool:
    """True if threads copy to shared memory, and not TMA alone."""
    return re.search(r"cp\.async\.c[ag]\.shared", ptx) is not None


def is_limited(ptx: str) -> bool:
    """True if the PTX says how many programs have to fit on an SM, or how many registers a thread
    has at most."""
    return re.search(r"^\.(?:minnctapersm|maxnreg) ", ptx, re.M) is not None


def _directed(ptx: str, directive: str) -> str:
    """The PTX with a directive more behind the number of the kernel's threads."""
    return re.sub(r"^(\.maxntid [^\n]*\n)", rf"\1{directive}\n", ptx, count=1, flags=re.M)
