"""libdevice, NVIDIA's library of math functions, as functions of the tile language.

    from proton.language.extra import libdevice
    y = libdevice.tanh(x)

A line of the tables below is a kind of signature and the functions of that kind: the name in the
language, and where it is not `__nv_NAME`, its symbol. A block's dtypes choose the symbol. On the
CPU the functions of C's math library, and what can be said in integers, are there.
"""

from typing import Any

from proton.language.function import ExternFunction
from proton.language.types import dtype, float32, float64, int32, int64, uint32, uint64

LIBRARY = "libdevice"
_LETTERS = {
    "f": float32,
    "d": float64,
    "i": int32,
    "u": uint32,
    "l": int64,
    "m": uint64,
}

# Functions of fp32 and of fp64. "*" in a signature is the floating-point type; the symbol for
# fp32 has an "f" at its end.
_FLOATING = {
    "* -> *": """
        acos acosh asin asinh atan atanh cbrt ceil cos cosh cospi cyl_bessel_i0 cyl_bessel_i1
        erf erfc erfcinv erfcx erfinv exp exp10 exp2 expm1 floor j0 j1 lgamma log log10 log1p
        log2 logb nearbyint normcdf normcdfinv rcbrt rint round rsqrt sin sinh sinpi sqrt tan
        tanh tgamma trunc y0 y1
        abs=fabs
    """,
    "* * -> *": """
        atan2 copysign fdim fmod hypot nextafter pow remainder rhypot fmax fmin
    """,
    "* * * -> *": "fma norm3d rnorm3d",
    "* * * * -> *": "norm4d rnorm4d",
    "* i -> *": "ldexp scalbn powi pow=powi",
    "i * -> *": "jn yn",
    "* -> i": "ilogb",
    "* -> l": "llrint llround",
}

# Functions of one signature each; several lines of a name are several entries of its table.
_FIXED = {
    "i -> i": "abs brev clz ffs popc",
    "l -> l": "abs=llabs brev=brevll",
    "l -> i": "clz=clzll ffs=ffsll popc=popcll",
    "i i -> i": "mulhi mul24 hadd rhadd min max",
    "u u -> u": "mulhi=umulhi mul24=umul24 hadd=uhadd rhadd=urhadd min=umin max=umax",
    "l l -> l": "mulhi=mul64hi min=llmin max=llmax",
    "m m -> m": "mulhi=umul64hi min=ullmin max=ullmax",
    "i i u -> u": "sad",
    "u u u -> u": "sad=usad",
    "i i i -> i": "byte_perm",
    "f -> f": """
        saturatef fast_sinf fast_cosf fast_tanf fast_log2f fast_logf fast_log10f fast_expf
        fast_exp10f rcp_rn=frcp_rn rcp_rz=frcp_rz rcp_rd=frcp_rd rcp_ru=frcp_ru sqrt_rn=fsqrt_rn
        sqrt_rz=fsqrt_rz sqrt_rd=fsqrt_rd sqrt_ru=fsqrt_ru rsqrt_rn=frsqrt_rn
    """,
    "d -> d": """
        rcp64h rcp_rn=drcp_rn rcp_rz=drcp_rz rcp_rd=drcp_rd rcp_ru=drcp_ru sqrt_rn=dsqrt_rn
        sqrt_rz=dsqrt_rz sqrt_rd=dsqrt_rd sqrt_ru=dsqrt_ru
    """,
    "f f -> f": """
        fast_dividef=fast_fdividef fast_powf add_rn=fadd_rn add_rz=fadd_rz add_rd=fadd_rd
        add_ru=fadd_ru sub_rn=fsub_rn sub_rz=fsub_rz sub_rd=fsub_rd sub_ru=fsub_ru mul_rn=fmul_rn
        mul_rz=fmul_rz mul_rd=fmul_rd mul_ru=fmul_ru div_rn=fdiv_rn div_rz=fdiv_rz div_rd=fdiv_rd
        div_ru=fdiv_ru
    """,
    "d d -> d": """
        add_rn=dadd_rn add_rz=dadd_rz add_rd=dadd_rd add_ru=dadd_ru sub_rn=dsub_rn sub_rz=dsub_rz
        sub_rd=dsub_rd sub_ru=dsub_ru mul_rn=dmul_rn mul_rz=dmul_rz mul_rd=dmul_rd mul_ru=dmul_ru
        div_rn=ddiv_rn div_rz=ddiv_rz div_rd=ddiv_rd div_ru=ddiv_ru
    """,
    "f f f -> f": "fma_rn=fmaf_rn fma_rz=fmaf_rz fma_rd=fmaf_rd fma_ru=fmaf_ru",
    "d d d -> d": "fma_rn fma_rz fma_rd fma_ru",
    "d -> f": "double2float_rn double2float_rz double2float_rd double2float_ru",
    "d -> i": """
        double2int_rn double2int_rz double2int_rd double2int_ru double2loint double2hiint
    """,
    "d -> u": "double2uint_rn double2uint_rz double2uint_rd double2uint_ru",
    "d -> l": """
        double2ll_rn double2ll_rz double2ll_rd double2ll_ru double_as_longlong
    """,
    "d -> m": "double2ull_rn double2ull_rz double2ull_rd double2ull_ru",
    "f -> i": "float2int_rn float2int_rz float2int_rd float2int_ru float_as_int",
    "f -> u": "float2uint_rn float2uint_rz float2uint_rd float2uint_ru float_as_uint",
    "f -> l": "float2ll_rn float2ll_rz float2ll_rd float2ll_ru",
    "f -> m": "float2ull_rn float2ull_rz float2ull_rd float2ull_ru",
    "i -> d": "int2double_rn",
    "u -> d": "uint2double_rn",
    "i -> f": "int2float_rn int2float_rz int2float_rd int2float_ru int_as_float",
    "u -> f": "uint2float_rn uint2float_rz uint2float_rd uint2float_ru uint_as_float",
    "l -> f": "ll2float_rn ll2float_rz ll2float_rd ll2float_ru",
    "m -> f": "ull2float_rn ull2float_rz ull2float_rd ull2float_ru",
    "l -> d": "ll2double_rn ll2double_rz ll2double_rd ll2double_ru longlong_as_double",
    "m -> d": "ull2double_rn ull2double_rz ull2double_rd ull2double_ru",
    "i i -> d": "hiloint2double",
}

# Functions that ask a question; they answer with an i32.
_TESTS = {
    "f -> i": "isnan=isnanf isinf=isinff signbit=signbitf finitef",
    "d -> i": "isnan=isnand isinf=isinfd signbit=signbitd isfinited",
}


def _signature(text: str) -> tuple[tuple[dtype, ...], dtype]:
    arguments, _, result = text.partition(" -> ")
    return tuple(_LETTERS[letter] for letter in arguments.split()), _LETTERS[result]


def _functions() -> dict[str, ExternFunction]:
    """The functions by name, with all entries of each one's table."""
    tables: dict[str, dict[Any, Any]] = {}

    def add(signature: str, names: str, suffix: str = "") -> None:
        dtypes, result = _signature(signature)
        for item in names.split():
            name, _, symbol = item.partition("=")
            entry = f"__nv_{symbol or name}{suffix}", result
            tables.setdefault(name, {})[dtypes] = entry

    for signature, names in _FLOATING.items():
        add(signature.replace("*", "f"), names, "f")
        add(signature.replace("*", "d"), names)
    for signature, names in _FIXED.items():
        add(signature, names)
    for signature, names in _TESTS.items():
        add(signature, names)
    tests = {item.partition("=")[0] for names in _TESTS.values() for item in names.split()}
    return {
        name: ExternFunction(name, table, library=LIBRARY, is_test=name in tests)
        for name, table in tables.items()
    }


FUNCTIONS = _functions()
globals().update(FUNCTIONS)
