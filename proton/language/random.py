"""Random numbers from counters: the same seed and offset give the same number everywhere.

Philox-4x32-10 and its 64-bit form, of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
easy as 1, 2, 3" (SC 2011): ten rounds of two multiplications make a counter of four words and a key
of two into four random words.
"""

from proton.language import core
from proton.language.function import DeviceFunction
from proton.language.types import constexpr, float32, int32, int64, uint32, uint64

# The multipliers of the words 0 and 2, and what the key's words grow by at each round.
_MULTIPLIERS_32 = constexpr((0xD2511F53, 0xCD9E8D57))
_KEY_STEPS_32 = constexpr((0x9E3779B9, 0xBB67AE85))
_MULTIPLIERS_64 = constexpr((0xD2E7470EE14C6C93, 0xCA5A826395121157))
_KEY_STEPS_64 = constexpr((0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B))

N_ROUNDS_DEFAULT = constexpr(10)
# A step below 1 / 2^31 and 1 / 2^63: the greatest integer times it stays below 1.
_SCALE_32 = constexpr(4.6566127342e-10)
_SCALE_64 = constexpr(1.0842020432385337e-19)
_TINY = constexpr(1.0e-7)  # in the place of 0, which has no logarithm
_TWO_PI = constexpr(6.283185307179586)


@DeviceFunction
def _word(x, like: constexpr):
    """`x` as an unsigned word of the dtype `like`."""
    return core.to_tensor(x).to(like)


@DeviceFunction
def philox_impl(c0, c1, c2, c3, k0, k1, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Four random words from a counter and a key, all u32 or all u64."""
    if c0.dtype == uint64:
        multiply: constexpr = _MULTIPLIERS_64
        step: constexpr = _KEY_STEPS_64
    else:
        core.static_assert(c0.dtype == uint32, "the words of philox are u32 or u64")
        multiply: constexpr = _MULTIPLIERS_32
        step: constexpr = _KEY_STEPS_32
    a = core.full((), multiply[0], c0.dtype)
    b = core.full((), multiply[1], c0.dtype)
    for _ in core.static_range(n_rounds):
        high_a, high_b = core.umulhi(a, c0), core.umulhi(b, c2)
        low_a = core.mul(a, c0, sanitize_overflow=False)
        low_b = core.mul(b, c2, sanitize_overflow=False)
        c0, c2 = high_b ^ c1 ^ k0, high_a ^ c3 ^ k1
        c1, c3 = low_b, low_a
        k0 = core.add(k0, core.full((), step[0], c0.dtype), sanitize_overflow=False)
        k1 = core.add(k1, core.full((), step[1], c0.dtype), sanitize_overflow=False)
    return c0, c1, c2, c3


@DeviceFunction
def philox(seed, c0, c1, c2, c3, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Four random words for a counter of four words; the width is that of c0."""
    seed = core.to_tensor(seed)
    core.static_assert(
        seed.dtype.is_int(), "a seed is an integer: load it, if a pointer is given, or convert it"
    )
    seed = seed.to(uint64)
    c0 = core.to_tensor(c0)
    if c0.dtype.primitive_bitwidth == 64:
        return philox_impl(
            c0.to(uint64),
            _word(c1, uint64),
            _word(c2, uint64),
            _word(c3, uint64),
            seed,
            core.full((), 0, uint64),
            n_rounds,
        )
    else:
        return philox_impl(
            c0.to(uint32),
            _word(c1, uint32),
            _word(c2, uint32),
            _word(c3, uint32),
            seed.to(uint32),
            (seed >> 32).to(uint32),
            n_rounds,
        )


@DeviceFunction
def randint4x(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Four blocks of random u32 in the shape of `offset`, one counter an offset."""
    offset = core.to_tensor(offset)
    if offset.dtype.primitive_bitwidth == 64:
        high = (offset.to(uint64) >> 32).to(uint32)
        return philox(seed, offset.to(uint32), high, 0, 0, n_rounds)
    else:
        return philox(seed, offset.to(uint32), 0, 0, 0, n_rounds)


@DeviceFunction
def randint(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """A block of random u32 in the shape of `offset`; four times as dear a number as randint4x."""
    result, _, _, _ = randint4x(seed, offset, n_rounds)
    return result


@DeviceFunction
def uint_to_uniform_float(x):
    """Random words of 32 or 64 bits as fp32 numbers, uniform in [0, 1)."""
    if x.dtype.primitive_bitwidth == 64:
        signed = x.to(int64)
        scale: constexpr = _SCALE_64
    else:
        core.static_assert(x.dtype.primitive_bitwidth == 32, "random words have 32 or 64 bits")
        signed = x.to(int32)
        scale: constexpr = _SCALE_32
    positive = core.sub(-signed, 1, sanitize_overflow=False)
    return core.where(signed < 0, positive, signed).to(float32) * scale


@DeviceFunction
def pair_uniform_to_normal(u1, u2):
    """Two independent normal numbers from two uniform ones, by Box and Muller."""
    radius = core.sqrt(-2.0 * core.log(core.maximum(u1, _TINY)))
    angle = _TWO_PI * u2
    return radius * core.cos(angle), radius * core.sin(angle)


@DeviceFunction
def rand(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """A block of random fp32, uniform in [0, 1), in the shape of `offset`."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@DeviceFunction
def rand4x(seed, offsets, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Four blocks of random fp32, uniform in [0, 1), in the shape of `offsets`."""
    i0, i1, i2, i3 = randint4x(seed, offsets, n_rounds)
    return (
        uint_to_uniform_float(i0),
        uint_to_uniform_float(i1),
        uint_to_uniform_float(i2),
        uint_to_uniform_float(i3),
    )


@DeviceFunction
def randn(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """A block of random fp32, normal with mean 0 and variance 1, in the shape of `offset`."""
    i0, i1, _, _ = randint4x(seed, offset, n_rounds)
    normal, _ = pair_uniform_to_normal(uint_to_uniform_float(i0), uint_to_uniform_float(i1))
    return normal


@DeviceFunction
def randn4x(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Four blocks of random fp32, normal with mean 0 and variance 1."""
    u0, u1, u2, u3 = rand4x(seed, offset, n_rounds)
    n0, n1 = pair_uniform_to_normal(u0, u1)
    n2, n3 = pair_uniform_to_normal(u2, u3)
    return n0, n1, n2, n3


__all__ = [n for n, of in globals().items() if isinstance(of, DeviceFunction) and n[0] != "_"]
