"""Runs of scopes of pipelined loops on a real GPU: one visit an iteration, whatever is sampled."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.tools.tensor_descriptor import TensorDescriptor


@proton.jit
def block_of(array, first, M: tl.constexpr, D: tl.constexpr, TMA: tl.constexpr):
    if TMA:
        return array.load([first, 0])
    rows, columns = first + tl.arange(0, M), tl.arange(0, D)
    return tl.load(array + rows[:, None] * D + columns[None, :])


@proton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, length, scale,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    rows, columns = block * M + tl.arange(0, M), tl.arange(0, N)
    q = block_of(q_ptr, block * M, M, D, TMA)
    acc = tl.zeros((M, D), tl.float32)
    most, total = tl.full((M,), float("-inf"), tl.float32), tl.zeros((M,), tl.float32)
    last = (block + 1) * M if CAUSAL else length
    for start in range(0, last, N):
        with proton.scope("qk"):
            k = block_of(k_ptr, start, N, D, TMA)
            scores = tl.dot(q, tl.trans(k)) * scale
        with proton.scope("softmax"):
            if CAUSAL:
                visible = rows[:, None] >= start + columns[None, :]
                scores = tl.where(visible, scores, float("-inf"))
            new = tl.maximum(most, tl.max(scores, 1))
            weights = tl.exp2(scores - new[:, None])
            decay = tl.exp2(most - new)
            total = total * decay + tl.sum(weights, 1)
            acc, most = acc * decay[:, None], new
        with proton.scope("pv"):
            v = block_of(v_ptr, start, N, D, TMA)
            acc = tl.dot(weights.to(tl.float16), v, acc)
    out = (acc / total[:, None]).to(tl.float16)
    tl.store(out_ptr + rows[:, None] * D + tl.arange(0, D)[None, :], out)


SAMPLED = [
    *(
        {},
        {"every": 3},
        {"every": 2, "strategy": "flush", "capacity": 16},
        {"every": 5, "sample_programs": 2},
    ),
    *({"sample_programs": 3}, {"sample_warps": (0,)}, {"sample_warps": (1, 5), "capacity": 64}),
    {"sample_warps": (1,), "sample_programs": 2},
    *({"granularity": "warp_group"}, {"auto": ("loads", "dots"), "every": 2}),
]
SCOPES = ("qk", "softmax", "pv")


@pytest.mark.parametrize("options", SAMPLED, ids=str)
@pytest.mark.parametrize(
    ("d", "n", "warps", "causal", "tma"),
    [
        (64, 128, 8, False, False),  # groups of warps alternate
        (64, 64, 4, True, False),
        (128, 128, 8, True, False),  # what pointers load is described
        (128, 128, 8, False, True),  # the producer begins the copies of the next iterations
        (128, 128, 8, True, True),
    ],
)
def test_a_scope_has_a_visit_an_iteration(
    d: int, n: int, warps: int, causal: bool, tma: bool, options: dict[str, Any]
) -> None:
    import torch

    if max(options.get("sample_warps", [0])) >= warps:
        pytest.skip("no such warps")
    has_producer, length, blocks = d == 128, 16 * n, 16
    generator = torch.Generator("cuda").manual_seed(n + d)
    q, k, v = (torch.randn(length, d, device="cuda", generator=generator).half() for _ in range(3))
    outs = [torch.zeros_like(q) for _ in range(2)]
    given = [TensorDescriptor.from_tensor(x, [n, d]) if tma else x for x in (q, k, v)]

    def launch(out: Any) -> None:
        kernel = attention[blocks,](
            *given, out, length, 0.1, M=n, N=n, D=d, CAUSAL=causal, TMA=tma, num_warps=warps,
            num_stages=2 if tma else 3,
        )  # fmt: skip
        assert ("producer and consumer" in kernel.asm["schedule"]) == has_producer

    launch(outs[0])
    with proton.profile("visits", **{"capacity": 1024, **options}) as run:
        launch(outs[1])
    assert torch.equal(*outs)
    is_cut = options.get("capacity") == 64
    assert run.totals.lost == 0 or is_cut
    frame = run.frame
    frame = frame[(frame.kind == "scope") & frame.scope.isin(SCOPES)]
    step, every = options.get("sample_programs", 1), options.get("every", 1)
    assert set(frame.program) == set(range(0, blocks, step))
    for (program, _, _), of in frame.groupby(["program", "unit", "scope"]):
        trips = program + 1 if causal else blocks
        assert set(of.visit) == set(of[of.iteration >= 0].visit)
        visits = of[of.iteration >= 0].groupby("visit").iteration.min()
        expected = [i for i in range(trips) if i % every == 0]
        found = sorted(visits.to_list())
        assert found == expected[len(expected) - len(found) :]
        assert len(found) == len(expected) or is_cut
    roles = {"consumer"} if "sample_warps" in options else {"consumer", "producer"}
    assert set(frame.role) == (roles if has_producer else {""})
    frame = frame[frame.role != "producer"]
    units = {"warp_group": 4}.get(options.get("granularity", ""), 1)
    warps_seen = set(options.get("sample_warps", range(0, warps, units)))
    assert len(set(frame.unit)) == len(warps_seen)
    assert np.isfinite(frame.dur_ns).all()
