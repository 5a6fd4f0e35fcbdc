"""What a stalled instruction waits for, in code that is written by hand."""

import pytest

from proton.viewer.tables.awaited import awaited

LONG, SHORT = "long_scoreboard", "short_scoreboard"
LOOP = [
    "MOV R7, RZ",  # 0
    "LDG.E.128 R88, desc[UR4][R88.64]",  # 1 .L_x_0
    "FADD R7, R91, R7",  # 2
    "LDS R20, [R2+0x10]",  # 3
    "SHFL.BFLY PT, R6, R7, 0x1, 0x1f",  # 4
    "FMNMX R8, R6, -R20.reuse, !PT",  # 5
    "MUFU.EX2 R9, R8",  # 6
    "F2FP.F16.F32.PACK_AB R10, R12, R9",  # 7
    "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR15], R10",  # 8
    "@!P0 BRA `(.L_x_9)",  # 9
    "ISETP.NE.AND P1, PT, R3, 0x5, PT",  # 10
    "@P1 BRA `(.L_x_0)",  # 11
    "STG.E.64 desc[UR4][R2.64], R90",  # 12
    "EXIT",  # 13
]


@pytest.mark.parametrize(
    ("at", "reason", "want"),
    [
        (2, LONG, 1),  # the last of four registers
        (1, LONG, 1),  # its address is what it loaded an iteration before
        (4, SHORT, None),  # of an addition, which is not late
        (5, SHORT, 4),  # the last of two
        (7, SHORT, 6),
        (9, LONG, 8),  # by a predicate
        (11, LONG, None),
        (12, LONG, 1),  # the second of what it stores
        (13, LONG, None),
        (2, "wait", None),
        (2, "selected", None),
    ],
)
def test_the_last_late_write_of_what_is_read(at: int, reason: str, want: int | None) -> None:
    assert awaited(LOOP, {".L_x_0": 1, ".L_x_9": 8}, at, reason) == want


def test_a_loop_is_gone_through_from_its_end() -> None:
    code = ["LDG.E R2, [R4.64]", "FADD R6, R2, R6", "LDG.E R2, [R8.64]", "@P0 BRA `(.L_x_1)"]
    assert awaited(code, {".L_x_1": 1}, 1, LONG) == 2
    assert awaited(code, {}, 1, LONG) == 0


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (["ATOMG.E.ADD.STRONG.GPU PT, R2, desc[UR6][R4.64], R6", "IADD3 R1, R2, 0x1, RZ"], LONG),
        (["LDSM.16.M88.4 R16, [R3]", "HMMA.16816.F32 R4, R8, R18, R4"], SHORT),
        (["LDS.128 R8, [R2]", "STG.E.128 desc[UR16][R4.64], R8"], SHORT),
        (["LDL.64 R10, [R1+0x8]", "DADD R4, R10, R4"], LONG),
        (["S2UR UR4, SR_CTAID.X", "UIADD3 UR5, UR4, 0x1, URZ"], SHORT),
        (["@P2 LDG.E.U8 R5, desc[UR4][R6.64+0x100]", "PRMT R5, R5, 0x5410, RZ"], LONG),
    ],
)
def test_operations_of_each_kind(code: list[str], reason: str) -> None:
    other = LONG if reason == SHORT else SHORT
    assert awaited(code, {}, 1, reason) == 0
    assert awaited(code, {}, 1, other) is None


@pytest.mark.parametrize("text", ["", "???", "NOP", "BAR.SYNC.DEFER_BLOCKING 0x0", "R1", "@P0"])
def test_what_is_no_instruction_waits_for_nothing(text: str) -> None:
    assert awaited(["LDG.E R2, [R4.64]", text], {}, 1, LONG) is None
