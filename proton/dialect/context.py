"""The MLIR context: one in a process, with Proton's dialects loaded; one thread at a time."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from proton.dialect.diagnostics import reject
from proton.dialect.mlir import Context, Operation, ext, ir, prepare_lookups
from proton.dialect.proton import Proton
from proton.dialect.proton_gpu import ProtonGPU
from proton.dialect.tt import TT
from proton.dialect.ttg import TTG
from proton.dialect.ttng import TTNG
from proton.dialect.tts import TTS

DIALECTS = (TT, TTG, TTNG, TTS, Proton, ProtonGPU)

# The Python classes of our dialects belong to the context that loaded them last, so there is
# one context and one compilation at a time; MLIR's own work is short next to LLVM's, which
# runs outside this lock.
_lock = threading.RLock()
_context: Context | None = None


# What the bindings raise where an op's parts are not of the kinds that its class says.
_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError, ir.MLIRError)


def _check_attributes_first(cls: Any) -> None:
    """Makes an op's verifier reject a missing attribute, and parts of other kinds than the op's: it
    runs before IRDL's own check, and would fail on reading them."""
    verify = getattr(cls, "verify_invariants", None)
    if verify is None or hasattr(verify, "names"):
        return
    names = [field.name for field in cls._fields if isinstance(field, ext.AttributeDef)]
    names += ["operandSegmentSizes"] * (cls._ODS_OPERAND_SEGMENTS is not None)

    def verify_all(op: Operation) -> bool:
        for name in names:
            if name not in op.operation.attributes:
                return reject(op, f"needs the attribute {name}")
        try:
            return bool(verify(op))
        except _MALFORMED as error:
            return reject(op, f"is malformed: {error}")

    verify_all.names = names  # type: ignore[attr-defined]
    cls.verify_invariants = staticmethod(verify_all)


def _new_context() -> Context:
    context = ir.Context()
    # A Python verifier called from MLIR's own thread pool waits for ever for the GIL.
    context.enable_multithreading(False)
    with context, ir.Location.unknown():
        prepare_lookups(__package__)
        for dialect in DIALECTS:
            for op in dialect.operations:
                _check_attributes_first(op)
            dialect.load(reload=True)
    return context


@contextlib.contextmanager
def mlir_context() -> Iterator[Context]:
    """Enters Proton's context with an unknown location; one thread at a time."""
    global _context
    with _lock:
        if _context is None:
            _context = _new_context()
        with _context, ir.Location.unknown():
            yield _context
