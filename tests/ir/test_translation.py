"""Modules of the `llvm` dialect as LLVM IR."""

import ctypes

import pytest

from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir, translate_to_llvm_ir

LINES = """
  %x{0} = llvm.load %p : !llvm.ptr -> vector<8xi32>
  %y{0} = llvm.add %x{0}, %x{0} : vector<8xi32>
  llvm.store %y{0}, %p : vector<8xi32>, !llvm.ptr
"""
TEXT = f"llvm.func @add(%p: !llvm.ptr) {{{''.join(map(LINES.format, range(100)))} llvm.return }}"
_FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


class _Usage(ctypes.Structure):
    """What the C library says of the memory that it gave out."""

    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS.split()]


def test_text_is_llvms_and_nothing_is_kept_of_it() -> None:
    usage = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if usage is None:
        pytest.skip("the C library does not say what it gave out")
    usage.restype = _Usage
    with mlir_context():
        module = ir.Module.parse(TEXT)
        text = translate_to_llvm_ir(module)
        before = usage().uordblks
        assert {translate_to_llvm_ir(module) for _ in range(50)} == {text}
        assert usage().uordblks - before < 10 * len(text), "the bindings keep each"
    assert "define void @add(ptr %0) {" in text
    assert text.count("add <8 x i32>") == 100
