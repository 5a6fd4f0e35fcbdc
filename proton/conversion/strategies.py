"""What a record becomes under each strategy: the classes of proton/trace/strategy.py, in code.

Both lowerings hand a strategy the record at hand, whose methods emit what their target can do:
count it, store it, move a full segment away.
"""

from typing import ClassVar, Protocol

from proton.dialect.mlir import Value
from proton.dialect.proton_gpu import RECORD_OPS
from proton.trace.strategy import Strategy


class CPURecord(Protocol):
    """A record that proton_gpu_to_llvm.py lowers."""

    def count(self) -> Value:
        """The number of this record; one more is counted."""

    def store(self, number: Value) -> None:
        """Writes it into its slot of the segment."""

    def hand_over(self) -> None:
        """Gives the segment to the host where this record was its last."""


class GPURecord(Protocol):
    """A record that ttg_to_llvm/records/profile.py lowers; nothing is done where it has a condition
    that is false."""

    def count(self) -> Value:
        """The number of this record; one more is counted."""

    @property
    def takes_chunks(self) -> bool:
        """True if full segments move: a kernel may be known to fill none."""

    def slot(self, number: Value) -> Value:
        """Which slot of the segment it goes to."""

    def take_chunk(self, number: Value, slot: Value) -> None:
        """Where the slot is the first one, takes a new chunk from the slab."""

    def place(self, slot: Value) -> Value:
        """Where that slot is in a segment from the slab."""

    def next_place(self, number: Value) -> Value:
        """Where the record goes in a ring buffer, behind the one before."""

    def keep(self, place: Value) -> None:
        """Has it stored there."""


class Code:
    """A strategy's code."""

    strategy: ClassVar[Strategy]

    def on_cpu(self, record: CPURecord) -> None:
        """Emits what keeps a record on the CPU."""
        raise NotImplementedError

    def on_gpu(self, record: GPURecord) -> None:
        """Emits what keeps a record on a GPU."""
        raise NotImplementedError


class CircularCode(Code):
    """A slot is written over when its turn comes again."""

    strategy = Strategy.CIRCULAR

    def on_cpu(self, record: CPURecord) -> None:
        record.store(record.count())

    def on_gpu(self, record: GPURecord) -> None:
        record.keep(record.next_place(record.count()))


class FlushCode(Code):
    """On the CPU a full segment is handed over; on a GPU each first record takes a chunk."""

    strategy = Strategy.FLUSH

    def on_cpu(self, record: CPURecord) -> None:
        record.store(record.count())
        record.hand_over()

    def on_gpu(self, record: GPURecord) -> None:
        number = record.count()
        if not record.takes_chunks:
            record.keep(record.next_place(number))
            return
        slot = record.slot(number)
        record.take_chunk(number, slot)
        record.keep(record.place(slot))


class CountingCode(Code):
    """A record is a number."""

    strategy = Strategy.COUNTING

    def on_cpu(self, record: CPURecord) -> None:
        record.count()

    def on_gpu(self, record: GPURecord) -> None:
        record.count()


# By the op that keeps a record.
CODE: dict[str, Code] = {
    RECORD_OPS[code.strategy].OPERATION_NAME: code()
    for code in (CircularCode, FlushCode, CountingCode)
}
