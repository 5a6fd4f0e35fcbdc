"""How shared memory serves a warp: how wide an access can be, and how many bank conflicts it has.
Both are ranks of bit matrices."""

from proton.layout.linear import LinearLayout, _echelon

BANK_BYTES = 4
BANKS = 32


def contiguous_elements(distributed: LinearLayout, shared: LinearLayout) -> int:
    """How many consecutive offsets of `shared` a thread's first registers hold, in order."""
    offsets = distributed.invert_and_compose(shared)
    count = 1
    for bit, basis in enumerate(offsets.bases("register")):
        if basis[0] != 1 << bit:
            break
        count <<= 1
    return count


def bank_conflicts(
    distributed: LinearLayout, shared: LinearLayout, element_bytes: int, vector: int
) -> int:
    """Wavefronts of one warp-wide access of `vector` elements a thread, over the least possible.

    1 means free of conflicts. Accesses of 8 and 16 bytes are served in two and four phases of a
    half and a quarter of the lanes; in each, lanes that touch one bank at different addresses
    wait for each other: there are 2^(rank of lane -> word - rank of lane -> bank) of them.
    """
    offsets = distributed.invert_and_compose(shared)
    access_bytes = vector * element_bytes
    phase_bits = {8: 1, 16: 2}.get(access_bytes, 0)
    lanes = [basis[0] * element_bytes for basis in offsets.bases("lane")]
    lanes = lanes[: len(lanes) - phase_bits]
    words = [byte // max(BANK_BYTES, access_bytes) for byte in lanes]
    banks = [word % (BANKS * BANK_BYTES // max(BANK_BYTES, access_bytes)) for word in words]
    return 1 << (len(_echelon(words)) - len(_echelon(banks)))
