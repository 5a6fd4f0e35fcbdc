"""Cases of packages that came last: attention over pages and latents (ExLlamaV3, ModelOpt), 8 bits
by rotations (fused-turboquant), losses of products with gradients (verl), products of pairs of
residues (OpenFold), and what compares models.
"""

import contextlib
import types

import torch
import torch.nn.functional as F
from libraries import bare, middle, stand_in
from library_case import LARGE, WIDE, Size
from library_references import attention, lengths
from more_training_cases import BF16, FULL, HALF, call
from small_case import gradients

EXLLAMA = "exllamav3.modules"
bare(
    *("exllamav3", EXLLAMA, f"{EXLLAMA}.attention_fn", "exllamav3.util"),
    *("fused_turboquant", "fused_turboquant.kernels", "flash_attention_triton"),
    *("openfold3.core.config", "openfold3.core.model", "openfold3.core.model.layers"),
    "openfold3.core.utils",
)
stand_in(f"{EXLLAMA}.attention_fn.common", AttnArgs=None, get_non_causal_span_arglist=None)
memory = types.SimpleNamespace(
    get=lambda device, shape, dtype, _: torch.empty(shape, dtype=dtype, device=device)
)
stand_in("exllamav3.util.tensor", g_tensor_cache=memory)
inits = dict.fromkeys(("tri_mul_init", "fused_tri_mul_init"))
stand_in("openfold3.core.config.default_linear_init_config", **inits)
stand_in("openfold3.core.kernels.cueq_utils", is_cuequivariance_available=lambda: False)
stand_in("openfold3.core.model.primitives", LayerNorm=None, Linear=None)
stand_in("openfold3.core.utils.tensor_utils", permute_final_dims=None)

# isort: split
from exllamav3.modules.attention_fn import mla_triton, triton_paged  # noqa: E402
from exllamav3.util import measures  # noqa: E402
from flash_attention_triton import flash_attention_2  # noqa: E402
from fused_turboquant.kernels import triton_decode, triton_encode, triton_rht  # noqa: E402
from modelopt.torch.kernels.common.attention import decode_attention  # noqa: E402
from openfold3.core.model.layers import triangular_multiplicative_update as pairs  # noqa: E402
from verl.utils.kernel import kernels as entropies  # noqa: E402
from verl.utils.kernel import linear_cross_entropy  # noqa: E402

BOTH = (LARGE, WIDE)
middle(mla_triton, triton_paged, measures, triton_encode, triton_decode, triton_rht, pairs)
middle(decode_attention, entropies)
if not torch.cuda.is_available():
    torch.cuda.nvtx.range = lambda _: contextlib.nullcontext()
    mla_triton.shared_bytes = triton_paged.shared_bytes = lambda *_, **__: 0
PAGE = 256
BATCH, KEYS = Size(3, 16, 1), Size(500, 4096, 32768)


def _paged(dtype, count, keys, shared, width):
    """(lengths, table of pages, keys in pages, as they are)."""
    sizes, pages = lengths(count, keys), -(-keys // PAGE)
    table = torch.randperm(count * pages).view(count, pages).int()
    whole = torch.randn(count, pages * PAGE, shared, width, dtype=dtype)
    cache = torch.empty(count * pages, PAGE, shared, width, dtype=dtype)
    cache[table.long()] = whole.unflatten(1, (pages, PAGE))
    return sizes, table, cache, whole


def _of_prompts(dtype, count, keys, rows):
    """(queries of the last rows of each, keys and values in pages, their table, how many keys each
    has, and what attention to them gives)."""
    sizes, table, k, whole_k = _paged(dtype, count, keys, 8, 128)
    rows = min(rows, *sizes)
    v, q = torch.randn_like(k), torch.randn(count, rows, 32, 128, dtype=dtype)
    whole_v = v[table.long()].flatten(1, 2)

    def expected():
        parts = zip(q, whole_k, whole_v, sizes, strict=True)
        return torch.stack([attention(a, b[:n], c[:n]) for a, b, c, n in parts])

    return q, k, v, table, torch.tensor(sizes, dtype=torch.int32), expected


@call(BATCH, KEYS, dtypes=HALF, timed=BOTH)
def pages_of_exllama(dtype, count, keys):
    q, k, v, table, many, expected = _of_prompts(dtype, count, keys, 1)

    def op():
        return triton_paged.paged_attn_triton_decode(q, None, None, k, v, table, many, causal=True)

    return op, expected


@call(Size(2, 4, 1), Size(300, 2048, 8192), dtypes=HALF, timed=BOTH)
def prompts_of_exllama(dtype, count, keys):
    q, k, v, table, many, expected = _of_prompts(dtype, count, keys, keys)

    def op():
        return triton_paged.paged_attn_triton(q, None, None, k, v, table, many, causal=True)

    return op, expected


@call(BATCH, KEYS, dtypes=HALF, timed=BOTH)
def latents_of_exllama(dtype, count, keys):
    sizes, table, latents, whole = _paged(dtype, count, keys, 1, 512)
    ends = torch.randn(*latents.shape[:-1], 64, dtype=dtype)
    whole_ends = ends[table.long()].flatten(1, 2)
    q, q_end = torch.randn(16, count, 512, dtype=dtype), torch.randn(16, count, 64, dtype=dtype)
    many = torch.tensor(sizes, dtype=torch.int32)

    def expected():
        out = []
        for number, size in enumerate(sizes):
            kv = whole[number, :size, 0].double()
            k = torch.cat((kv, whole_ends[number, :size, 0].double()), -1)
            both = torch.cat((q[:, number], q_end[:, number]), -1).double()
            out.append((both @ k.T / 576**0.5).softmax(-1) @ kv)
        return torch.stack(out, 1)

    def op():
        return mla_triton.mla_attn_triton_decode(q, q_end, latents, ends, table, many, count, 1)

    return op, expected


@call(BATCH, KEYS, dtypes=BF16, timed=BOTH)
def pages_of_modelopt(dtype, count, keys):
    q, k, v, table, many, expected = _of_prompts(dtype, count, keys, 1)

    def op():
        rows = q.squeeze(1)
        return decode_attention.attention_decode(rows, k, v, table, many, page_size=PAGE)

    return op, lambda: expected().squeeze(1)


@call(Size((1, 100), (4, 2048), (1, 8192)), dtypes=HALF, timed=BOTH)
def attention_of_a_package(dtype, batch, tokens):
    given = [torch.randn(batch, 16, tokens, 128, dtype=dtype) for _ in range(3)]

    def expected(q, k, v):
        mask = torch.ones(tokens, tokens, dtype=torch.bool).tril()
        return (q @ k.mT / 128**0.5).masked_fill(~mask, -torch.inf).softmax(-1) @ v

    return gradients(flash_attention_2.flash_attention_v2, expected, *given)


# On a GPU warps write what others read with no barrier between, so results differ.
@call(Size(7, 65536, 262144), dtypes=FULL, timed=())
def rotated_codes(dtype, rows):
    x, signs = torch.randn(rows, 128), torch.randint(0, 2, (128,)) * 2.0 - 1
    levels = torch.linspace(-2.5, 2.5, 16) / 128**0.5
    edges = torch.cat((torch.tensor([-9.0]), (levels[1:] + levels[:-1]) / 2, torch.tensor([9.0])))

    def op():
        codes, norms = triton_encode.triton_fused_encode(x, signs, edges, 4)
        back = triton_decode.triton_fused_decode(codes, norms, levels, signs, 4, 128)
        return triton_rht.triton_rht(x, signs), back

    def expected():
        turn = torch.ones(1, 1)
        for _ in range(7):
            turn = torch.cat((torch.cat((turn, turn), 1), torch.cat((turn, -turn), 1)), 0)
        turn = turn.double() / 128**0.5
        rotated, norms = (x * signs).double() @ turn, x.double().norm(dim=-1, keepdim=True)
        nearest = torch.bucketize(rotated / norms, edges[1:-1].double())
        return rotated, levels.double()[nearest] @ turn * signs * norms

    return op, expected


@call(Size((5, 300), (2048, 32000), (512, 128000)), dtypes=HALF, timed=BOTH)
def models_compared(dtype, rows, words):
    x, y = (torch.randn(rows, words, dtype=dtype) for _ in range(2))
    ids = torch.randint(words, (rows,))

    def op():
        return measures.compute_target_log_probs(x, ids, words), measures.compute_kl_div(
            x, y, words
        )

    def expected():
        ours, theirs = x.double().log_softmax(-1), y.double().log_softmax(-1)
        chosen = ours.gather(-1, ids[:, None]).squeeze(-1)
        return chosen, (theirs.exp() * (theirs - ours)).sum(-1)

    return op, expected


@call(Size((40, 128, 300), (2048, 2048, 32000), (512, 4096, 128000)), dtypes=BF16, timed=BOTH)
def losses_of_products(dtype, rows, inner, words):
    x, weight = torch.randn(rows, inner, dtype=dtype), torch.randn(words, inner, dtype=dtype) / 32
    labels = torch.randint(words, (rows,))

    def op(x, weight):
        return torch.stack(linear_cross_entropy.LinearCrossEntropy.apply(x, weight, labels))

    def expected(x, weight):
        logs = (x @ weight.T).log_softmax(-1)
        chosen = logs.gather(-1, labels[:, None]).squeeze(-1)
        return torch.stack((chosen, -(logs.exp() * logs).sum(-1)))

    return gradients(op, expected, x, weight)


@call(Size((9, 64), (65536, 128), (262144, 128)), dtypes=FULL, timed=BOTH)
def pairs_of_residues(dtype, rows, width):
    x, gate = (torch.randn(rows, width, dtype=dtype) for _ in range(2))
    weight, bias = torch.randn(width, width, dtype=dtype) / 8, torch.randn(width, dtype=dtype)

    def op():
        normal = pairs.triton_layernorm(x, bias, bias)
        linear = pairs.triton_linear(normal, weight, bias)
        fused = pairs.triton_linear_fused(
            normal, weight, bias, other=gate, add_tensor=x, apply_sigmoid=True
        )
        return normal, linear, fused, pairs.triton_sigmoid_mul(x, gate)

    def expected():
        normal = F.layer_norm(x.double(), (width,), bias.double(), bias.double())
        linear = normal.to(dtype).double() @ weight.double().T + bias
        return normal, linear, linear.sigmoid() * gate + x, x * gate.double().sigmoid()

    return op, expected
