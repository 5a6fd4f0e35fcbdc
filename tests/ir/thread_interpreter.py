"""Runs what `ttg-to-llvm` makes of a straight-line function, for all threads of a program at once.

Values are bits: an array of int64 with one row a thread, and a column for each element of a vector.
Matrices move as the PTX ISA has it in "ldmatrix" and "stmatrix"; instructions of AMD's GPUs are as
their instruction set architecture has it.
"""

import operator
import re
from typing import Any

import numpy as np

from proton.dialect.emit import predicate_of
from proton.dialect.mlir import Operation, ir

WARP = 32
MATRIX_ROW = 16  # bytes
POISON = -1
_ARITHMETIC = {
    "llvm.and": operator.and_,
    "llvm.xor": operator.xor,
    "llvm.or": operator.or_,
    "llvm.add": operator.add,
    "arith.addi": operator.add,
    "llvm.sub": operator.sub,
    "llvm.mul": operator.mul,
    "llvm.shl": operator.lshift,
    "llvm.lshr": operator.rshift,
}
_COMPARED = {"eq": operator.eq, "ne": operator.ne, "ult": operator.lt, "uge": operator.ge}
_MATRICES = re.compile(r"(ld|st)matrix\.sync\.aligned\.m8n8\.x([124])(\.trans)?\.shared\.b16 ")


def _scalar(type_: Any) -> Any:
    return type_.element_type if isinstance(type_, ir.VectorType) else type_


def _bytes(type_: Any) -> int:
    return max(1, int(_scalar(type_).width) // 8)


def _raw(value: np.ndarray, type_: Any) -> np.ndarray:
    """The bytes of vectors, one row a thread."""
    return np.ascontiguousarray(value.astype(f"<u{_bytes(type_)}")).view(np.uint8)


def _elements(raw: np.ndarray, type_: Any) -> np.ndarray:
    """The inverse."""
    return np.ascontiguousarray(raw).view(f"<u{_bytes(type_)}").astype(np.int64)


def permuted_bytes(low: np.ndarray, high: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """PTX's `prmt`: byte n of the result is the one that bits 4 n to 4 n + 2 of the selector
    name."""
    both = (low & 0xFFFFFFFF).astype(np.uint64) | (high & 0xFFFFFFFF).astype(np.uint64) << 32
    result = np.zeros_like(both)
    for n in range(4):
        chosen = (selector >> 4 * n & 7).astype(np.uint64)
        result |= (both >> 8 * chosen & 0xFF) << 8 * np.uint64(n)
    return result.astype(np.int64)


class ThreadInterpreter:
    """A program of `warps` warps; `accesses` counts what was done to shared memory, by name."""

    def __init__(self, warps: int, shared_bytes: int, lanes: int = WARP) -> None:
        self.lanes, self.threads = lanes, np.arange(lanes * warps)
        self.memory = np.zeros(shared_bytes, np.uint8)
        self.is_written = False  # since the last barrier
        self.values: dict[Any, Any] = {}
        self.accesses: dict[str, int] = {}
        self.shuffles = 0

    def run(self, function: Any, arguments: list[np.ndarray]) -> np.ndarray:
        """What the function returns, (threads, registers), of arguments of that form."""
        block = function.regions[0].blocks[0]
        self.values = dict(zip(block.arguments, arguments, strict=True))
        for view in block.operations:
            op = view.operation
            if op.name == "func.return":
                return np.asarray(self.values[op.operands[0]])
            results = self.step(op, [self.values[operand] for operand in op.operands])
            self.values |= dict(zip(op.results, results, strict=True))
        raise AssertionError("the function returns nothing")

    def step(self, op: Operation, given: list[Any]) -> list[Any]:
        if op.name in _ARITHMETIC:
            return [_ARITHMETIC[op.name](*given) & 0xFFFFFFFF]
        match op.name:
            case "nvvm.read.ptx.sreg.tid.x":
                return [self.threads]
            case "llvm.mlir.constant":
                return [self.constant(op)]
            case "llvm.mlir.addressof":
                return [np.zeros_like(self.threads)]
            case "llvm.getelementptr":
                size = _bytes(ir.TypeAttr(op.attributes["elem_type"]).value)
                return [given[0] + given[1].astype(np.int32) * size]
            case "llvm.ptrtoint" | "llvm.zext":
                return given
            case "llvm.trunc":
                return [given[0] & ((1 << 8 * _bytes(op.results[0].type)) - 1)]
            case "llvm.mlir.poison":
                return [self.poison(op.results[0].type)]
            case "llvm.shufflevector":
                mask = list(ir.DenseI32ArrayAttr(op.attributes["mask"]))
                return [np.concatenate(given, axis=1)[:, mask]]
            case "llvm.bitcast":
                return [self.bitcast(given[0], op.operands[0].type, op.results[0].type)]
            case "vector.from_elements":
                return [np.stack(given, axis=1)]
            case "vector.to_elements":
                return list(given[0].T)
            case "llvm.extractvalue":
                return [given[0][next(iter(ir.DenseI64ArrayAttr(op.attributes["position"])))]]
            case "llvm.call_intrinsic":
                return self.intrinsic(ir.StringAttr(op.attributes["intrin"]).value, *given)
            case "llvm.intr.fence" | "llvm.fence":
                return []
            case "nvvm.barrier" | "nvvm.bar.warp.sync":  # of programs of one warp
                self.is_written = False
                return []
            case "llvm.extractelement":
                return [given[0][:, int(np.ravel(given[1])[0])]]
            case "arith.cmpi":
                return [_COMPARED[predicate_of(op).name.lower()](*given)]
            case "llvm.select":
                condition = given[0].reshape(-1, *[1] * (given[1].ndim - 1))
                return [np.where(condition, given[1], given[2])]
            case "nvvm.shfl.sync":
                self.shuffles += 1
                kind = re.search(r"shfl_kind (\w+)", str(op.attributes["kind"]))
                assert kind
                return [self.shuffled(kind[1], *given[1:3])]
            case "llvm.inline_asm" if op.attributes["asm_string"].value.startswith("prmt.b32 "):
                return [permuted_bytes(*given)]
            case "llvm.inline_asm" if op.attributes["asm_string"].value.startswith(
                "redux.sync.add"
            ):
                warps = given[0].reshape(-1, self.lanes).sum(axis=1)
                return [np.repeat(warps, self.lanes)]
            case "llvm.inline_asm" if op.attributes["asm_string"].value[:8] in ("", "mov.b32 "):
                return given
            case "llvm.load" | "llvm.store" | "llvm.inline_asm":
                return self.access(op, given)
        raise AssertionError(f"no rule for {op}")

    def of_lane(self, word: np.ndarray, lane: np.ndarray) -> np.ndarray:
        return np.asarray(word[self.threads // self.lanes * self.lanes + lane % self.lanes])

    def shuffled(self, kind: str, word: np.ndarray, given: np.ndarray) -> np.ndarray:
        """PTX's `shfl`, where lanes outside of the warp are the thread's own."""
        own = self.threads % self.lanes
        if kind in ("idx", "bfly"):
            return self.of_lane(word, given if kind == "idx" else own ^ given)
        lane = own - given if kind == "up" else own + given
        return self.of_lane(word, np.where((lane >= 0) & (lane < self.lanes), lane, own))

    def intrinsic(self, name: str, *given: np.ndarray) -> list[np.ndarray]:
        """Those of AMD's GPUs."""
        match name.removeprefix("llvm.amdgcn."):
            case "workitem.id.x":
                return [self.threads]
            case "ds.bpermute":
                self.shuffles += 1
                return [self.of_lane(given[1], given[0] >> 2)]
            case "perm":  # a byte of the selector names one of the second word and the first
                names = [given[2] >> 8 * n & 0xFF for n in range(4)]
                return [
                    permuted_bytes(given[1], given[0], sum(b << 4 * n for n, b in enumerate(names)))
                ]
            case "mbcnt.lo":  # lanes below the thread's, of the first 32
                return [np.minimum(self.threads % self.lanes, 32) + given[1]]
            case "mbcnt.hi":
                return [np.maximum(self.threads % self.lanes - 32, 0) + given[1]]
            case "s.barrier" | "wave.barrier":
                self.is_written = False
                return []
        raise AssertionError(f"no rule for {name}")

    def constant(self, op: Operation) -> np.ndarray:
        value = op.attributes["value"]
        if isinstance(op.results[0].type, ir.VectorType):
            elements = np.array(ir.DenseIntElementsAttr(value), np.int64)
            return np.tile(elements, (len(self.threads), 1))
        return np.full_like(self.threads, ir.IntegerAttr(value).value)

    def poison(self, type_: Any) -> np.ndarray:
        count = int(type_.shape[0]) if isinstance(type_, ir.VectorType) else 1
        return np.full((len(self.threads), count), POISON)

    def bitcast(self, value: np.ndarray, source: Any, target: Any) -> np.ndarray:
        return _elements(_raw(value, source), target)

    # Memory

    def access(self, op: Operation, given: list[Any]) -> list[Any]:
        name = op.name
        if name == "llvm.inline_asm":
            text = ir.StringAttr(op.attributes["asm_string"]).value
            found = _MATRICES.match(text)
            assert found, f"no rule for {text}"
            name = text.split(" ")[0]
            result = self.matrices(given, found[1] == "ld", int(found[2]), bool(found[3]))
        elif name == "llvm.load":
            type_ = op.results[0].type
            where = self.where(given[0], int(type_.shape[0]) * _bytes(type_))
            assert not self.is_written, "no barrier ahead of a load"
            result = [_elements(self.memory[where], type_)]
        else:
            value, address = given
            raw = _raw(value, op.operands[0].type)
            self.memory[self.where(address, raw.shape[1])] = raw
            self.is_written, result = True, []
        self.accesses[name] = self.accesses.get(name, 0) + 1
        return result

    def where(self, address: np.ndarray, size: int) -> np.ndarray:
        """The bytes of accesses of `size` bytes, (addresses, bytes)."""
        assert (address % size == 0).all(), f"an access of {size} bytes is not aligned"
        assert (address >= 0).all()
        assert (address + size <= len(self.memory)).all(), "beyond the shared memory"
        return address[:, None] + np.arange(size)

    def matrices(
        self, given: list[Any], is_load: bool, count: int, is_transposed: bool
    ) -> list[Any]:
        words = []
        for number in range(count):
            # Lane 8 * number + r of each warp has the address of row r.
            rows = given[0].reshape(-1, WARP)[:, 8 * number : 8 * number + 8].ravel()
            where = self.where(rows, MATRIX_ROW)
            if is_load:
                assert not self.is_written, "no barrier ahead of a load"
                halves = np.ascontiguousarray(self.memory[where]).view("<u2").reshape(-1, 8, 8)
                halves = halves.transpose(0, 2, 1) if is_transposed else halves
                words.append(np.ascontiguousarray(halves).view("<u4").astype(np.int64).ravel())
            else:
                halves = given[1 + number].astype("<u4").view("<u2").reshape(-1, 8, 8)
                halves = halves.transpose(0, 2, 1) if is_transposed else halves
                self.memory[where] = np.ascontiguousarray(halves.reshape(-1, 8)).view(np.uint8)
                self.is_written = True
        return [words if count > 1 else words[0]] if is_load else []
