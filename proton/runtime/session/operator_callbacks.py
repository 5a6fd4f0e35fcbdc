"""The functions that torch calls where an operator begins and ends, and the records they leave.

torch announces each operator, each node of a backward pass and each `record_function` range to
callbacks that are registered with it (`at::addGlobalCallback`), in whatever thread it runs. These
are machine code: they take no lock of Python's, and cost some tens of nanoseconds. A begin is the
next row of one table and an end of another; an end is of the last begin with the same address.

    begins | time, address, thread, "aten::softmax" |    ends | time, address |

torch declares all this to programs in C++, in a header that its wheel carries. `declared` reads
there whether things lie where this code takes them to be, and says what differs.
"""

import ctypes
import os
import re
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from proton.base.errors import ProfileError

CAPACITY = 500_000  # operators; those that follow are counted
NAME_BYTES = 104
BEGIN = np.dtype(
    [("time", "<i8"), ("address", "<u8"), ("thread", "<u8"), ("name", f"S{NAME_BYTES}")]
)
END = np.dtype([("time", "<i8"), ("address", "<u8")])
SCOPES = {"FUNCTION", "BACKWARD_FUNCTION", "TORCHSCRIPT_FUNCTION", "USER_SCOPE"}  # are recorded

_HEADER = "include/ATen/record_function.h"
_LIBRARY = "lib/libtorch_cpu.so"
_ADD = "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE"
_REMOVE = "_ZN2at14removeCallbackEm"
_NAME = "_ZNK2at14RecordFunction4nameEv"
# What the header must say: the data of the class that is handed over, which _Callback mirrors, and
# the functions that are called, either way.
_DATA = (
    "StartCallback start_; EndCallback end_; double sampling_prob_ = 1.0; "
    "std::array<bool, static_cast<size_t>(RecordScope::NUM_SCOPES)> scopes_ = {}; "
    "bool needs_inputs_ = false; bool needs_outputs_ = false; bool needs_ids_ = false;"
)
_DECLARATIONS = (
    "using StartCallback = std::unique_ptr<ObserverContext> (*)(const RecordFunction&);",
    "using EndCallback = void (*)(const RecordFunction&, ObserverContext*);",
    "typedef uint64_t CallbackHandle;",
    "CallbackHandle addGlobalCallback(RecordFunctionCallback cb);",
    "void removeCallback(CallbackHandle handle);",
    "const char* name() const;",
)
_MONOTONIC = time.CLOCK_MONOTONIC if hasattr(time, "CLOCK_MONOTONIC") else 1

# `{...}` are addresses and sizes of this process. The time is stored last: a row that has it is
# whole.
_ROW = """\
  %row = atomicrmw add ptr inttoptr (i64 {count} to ptr), i64 1 monotonic
  %has_room = icmp ult i64 %row, {capacity}
  br i1 %has_room, label %record, label %done
record:
  %offset = mul i64 %row, {row_bytes}
  %base = inttoptr i64 {table} to ptr
  %time_at = getelementptr i8, ptr %base, i64 %offset
  %address_at = getelementptr i8, ptr %time_at, i64 8
"""
_TIME = """\
  %nanoseconds_at = getelementptr i8, ptr %now, i64 8
  %seconds = load i64, ptr %now
  %nanoseconds = load i64, ptr %nanoseconds_at
  %whole = mul i64 %seconds, 1000000000
  %time = add i64 %whole, %nanoseconds
  store atomic i64 %time, ptr %time_at release, align 8
  br label %done
done:
  ret void
}}
"""
# The context that a begin returns is none.
_BEGINS = (
    """
define void @operator_begins(ptr sret(ptr) %context, ptr %function) {{
  %now = alloca [2 x i64]
  store ptr null, ptr %context
"""
    + _ROW
    + """\
  %thread_at = getelementptr i8, ptr %time_at, i64 16
  %name_at = getelementptr i8, ptr %time_at, i64 24
  store ptr %function, ptr %address_at
  %thread = call i64 inttoptr (i64 {pthread_self} to ptr)()
  store i64 %thread, ptr %thread_at
  %name = call ptr inttoptr (i64 {name} to ptr)(ptr %function)
  %bytes = call i64 inttoptr (i64 {strnlen} to ptr)(ptr %name, i64 {name_bytes})
  call ptr inttoptr (i64 {memcpy} to ptr)(ptr %name_at, ptr %name, i64 %bytes)
  call i32 inttoptr (i64 {clock_gettime} to ptr)(i32 {clock}, ptr %now)
"""
    + _TIME
)
_ENDS = (
    """
define void @operator_ends(ptr %function, ptr %context) {{
  %now = alloca [2 x i64]
  call i32 inttoptr (i64 {clock_gettime} to ptr)(i32 {clock}, ptr %now)
"""
    + _ROW
    + """\
  store ptr %function, ptr %address_at
"""
    + _TIME
)


def declared(header: str) -> list[str]:
    """The names of torch's kinds of ranges, in their order, as its header declares them; raises
    ProfileError where it declares anything that is used here otherwise."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", header, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text)
    found = re.search(r"class TORCH_API RecordFunctionCallback \{.*? private: (.*?) \};", text)
    scopes = re.search(r"RecordScope : uint8_t \{ (.*?) \};", text)
    missing = [line for line in _DECLARATIONS if line not in text]
    if found is None or found[1].strip() != _DATA:
        missing.append("the data of class RecordFunctionCallback")
    names = re.findall(r"(\w+)(?: = 0)?,", scopes[1]) if scopes else []
    if names[-1:] != ["NUM_SCOPES"] or not set(names) > SCOPES:
        missing.append("enum class RecordScope")
    if missing:
        raise ProfileError(f"{_HEADER} declares otherwise: {'; '.join(missing)}")
    return names[:-1]


class _Table:
    """Rows that torch's threads write; as long as the process lives, for one may write late."""

    def __init__(self, dtype: np.dtype, capacity: int) -> None:
        self.count, self.rows = np.zeros(1, np.uint64), np.zeros(capacity, dtype)

    @property
    def is_overfull(self) -> bool:
        """True if rows were not written for want of room."""
        return int(self.count[0]) > len(self.rows)

    def written(self) -> np.ndarray:
        """The rows that are there, copied."""
        rows = self.rows[: min(int(self.count[0]), len(self.rows))].copy()
        return rows[rows["time"] != 0]

    def clear(self) -> None:
        self.rows[: min(int(self.count[0]), len(self.rows))] = np.zeros((), self.rows.dtype)
        self.count[0] = 0

    def places(self) -> dict[str, int]:
        """The arguments of the machine code."""
        return {
            "count": self.count.ctypes.data,
            "table": self.rows.ctypes.data,
            "capacity": len(self.rows),
            "row_bytes": self.rows.dtype.itemsize,
        }


class Callbacks:
    """The functions that are registered with torch, while it is on. Raises ProfileError for a torch
    that cannot be listened to."""

    def __init__(self, torch: ModuleType, capacity: int = CAPACITY) -> None:
        place, version = Path(str(torch.__file__)).parent, getattr(torch, "__version__", "")
        try:
            scopes = declared((place / _HEADER).read_text())
            library = _loaded(place / _LIBRARY)
            self._add, self._remove = getattr(library, _ADD), getattr(library, _REMOVE)
            name = _address(getattr(library, _NAME))
        except (OSError, AttributeError, UnicodeDecodeError, ProfileError) as error:
            raise ProfileError(f"torch {version} cannot be listened to: {error}") from None
        self.capacity = capacity
        self.begins, self.ends = _Table(BEGIN, capacity), _Table(END, capacity)
        self._code = [
            _linked("operator_begins", _BEGINS, self.begins.places() | {"name": name}),
            _linked("operator_ends", _ENDS, self.ends.places()),
        ]
        self._argument = _callback(self._code[0].address, self._code[1].address, scopes)
        self._add.argtypes, self._add.restype = [type(self._argument)], ctypes.c_uint64
        self._remove.argtypes, self._remove.restype = [ctypes.c_uint64], None
        self._handle = 0

    def on(self) -> None:
        """Has torch call from now on."""
        self._handle = self._add(self._argument)

    def off(self) -> None:
        """Ends that. An operator that runs still calls when it ends, so the code stays."""
        if self._handle:
            self._remove(self._handle)
        self._handle = 0


def _loaded(path: Path) -> Any:
    """A library of this process, which is not loaded here."""
    return ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_NOW)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _linked(symbol: str, text: str, places: dict[str, int]) -> Any:
    """Machine code, at an address of this process."""
    from proton.backends.cpu import llvm  # a run without torch has no use for it

    process = ctypes.CDLL(None)
    names = ("pthread_self", "strnlen", "memcpy", "clock_gettime")
    of_process = {name: _address(getattr(process, name)) for name in names}
    facts = {"clock": _MONOTONIC, "name_bytes": NAME_BYTES - 1}
    code, _ = llvm.emit_object(text.format(**of_process, **facts, **places))
    return llvm.linker().link(code, symbol)


def _callback(begin: int, end: int, scopes: list[str]) -> ctypes.Structure:
    """An object of torch's class RecordFunctionCallback; of `needs`, inputs, outputs and ids, this
    needs none."""

    class Callback(ctypes.Structure):
        _fields_ = (
            ("start", ctypes.c_void_p),
            ("end", ctypes.c_void_p),
            ("sampling_prob", ctypes.c_double),
            ("scopes", ctypes.c_bool * len(scopes)),
            ("needs", ctypes.c_bool * 3),
        )

    chosen = (ctypes.c_bool * len(scopes))(*(name in SCOPES for name in scopes))
    return Callback(begin, end, 1.0, chosen)
