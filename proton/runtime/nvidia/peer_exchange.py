"""How the global timers of two GPUs of one process lie to each other, within bounds that hold.

Two kernels of one thread each, one on either GPU, exchange numbers through each other's memory: the
first reads its timer and asks, the second sees the question, reads its timer and answers, the first
sees the answer and reads its timer. So the second timer was read between the two of the first. That
is what the host does with one GPU (clock_exchange.py), without the host and its bus: half as far.

A session that uses several GPUs has each of them talk to the first one, when it is used first and
at the end (proton/trace/gpu_peers.py has the rest).
"""

import ctypes
import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.clock_exchange import ClockExchange, tightest
from proton.runtime.nvidia.hand_written import loaded
from proton.trace.gpu_clock import MAX_RESOLUTION
from proton.trace.gpu_peers import PeerPair

EXCHANGES = 300
FEWEST = 20  # of them that tell anything
PATIENCE_NS = 2_000_000  # after which a kernel ends, if the other one does not run
GIVE_UP_NS = 20_000_000  # after which nobody waits for the kernels: others have a GPU

_GRANULE = 2 << 20  # bytes: the least that one GPU may lend another
_NAME = "exchange"
_WORDS = 3  # of the log for each exchange: asked, answered, and the other timer

# A question is stored behind a branch that depends on the timer, and a timer read behind one that
# depends on what was seen.
_HEAD = """
.visible .entry exchange(.param .u64 own, .param .u64 peer, .param .u64 log, .param .u64 count,
                       .param .u64 patience)
{{
    .reg .b64 %rd<16>;
    .reg .pred %p<8>;
    ld.param.u64 %rd1, [own];
    ld.param.u64 %rd2, [peer];
    ld.param.u64 %rd3, [log];
    ld.param.u64 %rd4, [count];
    ld.param.u64 %rd5, [patience];
    mov.u64 %rd6, %globaltimer;
    mov.u64 %rd7, 0;
next:
    add.u64 %rd7, %rd7, 1;
"""
_WAIT = """
wait:
    ld.volatile.global.u64 %rd10, [%rd1];
    setp.eq.u64 %p2, %rd10, %rd7;
    @%p2 bra heard;
    mov.u64 %rd11, %globaltimer;
    sub.u64 %rd11, %rd11, %rd6;
    setp.gt.u64 %p3, %rd11, %rd5;
    @%p3 ret;
    bra wait;
heard:
    mov.u64 %rd12, %globaltimer;
"""
_END = """
    add.u64 %rd3, %rd3, {exchange};
    setp.lt.u64 %p4, %rd7, %rd4;
    @%p4 bra next;
    ret;
}}
"""
_ASK = f"""{_HEAD}
    mov.u64 %rd8, %globaltimer;
    sub.u64 %rd9, %rd8, %rd6;
    setp.gt.u64 %p1, %rd9, %rd5;
    @%p1 ret;
    st.volatile.global.u64 [%rd2], %rd7;
{_WAIT}    st.volatile.global.u64 [%rd3], %rd8;
    st.volatile.global.u64 [%rd3+8], %rd12;
{_END}"""
_ANSWER = f"""{_HEAD}{_WAIT}    sub.u64 %rd9, %rd12, %rd6;
    setp.gt.u64 %p1, %rd9, %rd5;
    @%p1 ret;
    st.volatile.global.u64 [%rd2], %rd7;
    st.volatile.global.u64 [%rd3+16], %rd12;
{_END}"""


@dataclass
class _Side:
    """A GPU's part: its kernel and stream, and its word, which the other one sets."""

    device: int
    function: int
    stream: int
    word: int


@dataclass
class _Peers:
    """Two GPUs that reach each other's memory; `log` is memory of the host. They are `lost` when
    kernels of theirs may still be about to run."""

    sides: tuple[_Side, _Side]
    log: int
    lost: bool = False


def peer_pair(first: int, other: int) -> PeerPair | None:
    """A pair of two GPUs, as sure as what they tell each other can make it; None where they do not
    reach each other's memory, or have no time for it."""
    peers = _peers(first, other)
    if peers is None or peers.lost:
        return None
    exchanges = _exchanges(peers)
    if len(exchanges) < FEWEST:
        return None
    found = tightest(_stepped(exchanges))
    return PeerPair(found.host_ns, found.timer_ns, found.error_ns)


def _stepped(exchanges: Sequence[ClockExchange]) -> list[ClockExchange]:
    """The exchanges as the first GPU would have read a timer without steps: what its timer says may
    be up to a step old, so it answered by then."""
    read = np.array([(e.asked_ns, e.answered_ns) for e in exchanges], np.int64).ravel()
    step = min(int(np.gcd.reduce(np.diff(read))), MAX_RESOLUTION)
    return [replace(e, answered_ns=e.answered_ns + step) for e in exchanges]


@functools.cache
def _peers(first: int, other: int) -> _Peers | None:
    sides = []
    try:
        for device, lent_to, body in ((first, other, _ASK), (other, first, _ANSWER)):
            with cuda.on_device(device):
                memory = cuda.Memory(device, _GRANULE, lent_to)
                memory.grow(_GRANULE)
                function = loaded(device, _NAME, body, exchange=8 * _WORDS)
                sides.append(_Side(device, function, cuda.new_stream(), memory.address))
        with cuda.on_device(first):
            log = cuda.allocate_host(8 * _WORDS * EXCHANGES)
    except cuda.CUDAError:  # there is no way between them
        return None
    return _Peers((sides[0], sides[1]), log)


def _exchanges(peers: _Peers) -> list[ClockExchange]:
    """Those that the GPUs made before one of them lost its patience."""
    cuda.host_bytes(peers.log, 8 * _WORDS * EXCHANGES)[:] = 0
    for side in peers.sides:
        with cuda.on_device(side.device):
            cuda.write_word(side.word, 0)
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    for side, other in (peers.sides, peers.sides[::-1]):
        words = side.word, other.word, peers.log
        taken: list[tuple[int, cuda.CType]] = [(address, pointer) for address in words]
        taken += [(EXCHANGES, number), (PATIENCE_NS, number)]
        with cuda.on_device(side.device):
            cuda.launch_once(side.function, 1, 1, side.stream, taken)
    peers.lost = not all(map(_ends, peers.sides))
    if peers.lost:
        return []
    logged = cuda.host_bytes(peers.log, 8 * _WORDS * EXCHANGES).view(np.int64)
    rows = logged.reshape(EXCHANGES, _WORDS)
    whole = rows[(rows != 0).all(axis=1)].tolist()
    return [ClockExchange(asked, timer, answered) for asked, answered, timer in whole]


def _ends(side: _Side) -> bool:
    """True if the kernel of a side has ended, for which this waits a while."""
    latest = time.perf_counter_ns() + GIVE_UP_NS
    with cuda.on_device(side.device):
        while not cuda.is_idle(side.stream):
            if time.perf_counter_ns() > latest:
                return False
            time.sleep(0)
    return True
