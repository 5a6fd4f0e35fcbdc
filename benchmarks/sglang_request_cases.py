"""Cases of SGLang: what chooses the next token, what accepts drafts of tokens, and where the tokens
of requests are kept."""

import torch
from library_case import BOTH, FULL, Size
from sglang_case import call

# isort: split
from sglang.kernels.ops.grammar import bitmask_ops
from sglang.kernels.ops.memory import allocator, common
from sglang.kernels.ops.sampling import (
    denoiser_statistics,
    murmur_hash,
    renorm_triton,
    softcap_row_argmax,
    temperature_softmax,
)
from sglang.kernels.ops.speculative import (
    cache_locs,
    eagle,
    reject_sampling,
    row_argmax,
    spec_tree,
    topk1,
)

REQUESTS, VOCABULARY = Size(5, 64, 16), Size(1500, 32000, 128256)


def finite(logits):
    return logits.masked_fill(logits == -torch.inf, 0)


@call(REQUESTS, VOCABULARY, dtypes=(torch.float32, torch.bfloat16))
def allowed(dtype, count, vocabulary):
    """By a grammar, whose tokens are bits."""
    logits, may = torch.randn(count, vocabulary).to(dtype), torch.rand(count, vocabulary) < 0.5
    bits = torch.nn.functional.pad(may, (0, -vocabulary % 32)).view(count, -1, 32).long()
    words = (bits << torch.arange(32)).sum(-1).to(torch.int32)

    def op():
        out = logits.clone()
        bitmask_ops.apply_token_bitmask_inplace_triton(out, words)
        return finite(out)

    return op, lambda: logits.masked_fill(~may, 0)


@call(REQUESTS, VOCABULARY, dtypes=FULL, timed=BOTH)
def renormed(dtype, *shape):
    """The largest, so many of them or those that make a share."""
    shares = (torch.randn(shape) * 3).softmax(-1)
    count, share = torch.randint(1, 100, shape[:1]), torch.rand(shape[:1]) * 0.5 + 0.4

    def op():
        few = renorm_triton.top_k_renorm_probs_triton(shares, count)
        return few, renorm_triton.top_p_renorm_probs_triton(shares, share)

    def reference():
        values, order = shares.double().sort(descending=True)
        few = torch.arange(shape[1]) < count[:, None]
        own = values.cumsum(-1) - values < share.double()[:, None]
        for seen in (few, own):
            kept = values * seen
            kept = kept / kept.sum(-1, keepdim=True)
            yield torch.empty_like(kept).scatter_(1, order, kept)

    return op, lambda: tuple(reference())


@call(REQUESTS, VOCABULARY, dtypes=(torch.float32, torch.bfloat16), timed=BOTH)
def probabilities(dtype, *shape):
    logits, each = torch.randn(shape).to(dtype), torch.rand(shape[0], 1) + 0.1
    return (
        lambda: temperature_softmax.temperature_softmax(logits, each),
        lambda: (logits.double() / each).softmax(-1),
    )


@call(Size(2, 2, 1), Size(7, 64, 256), VOCABULARY, dtypes=FULL)
def statistics(dtype, count, tokens, vocabulary):
    """Of text that a diffusion model makes: probabilities, entropies, what is likeliest."""
    logits, each = torch.randn(count, tokens, vocabulary), torch.rand(count) + 0.5

    def reference():
        scaled = logits.double() / each[:, None, None]
        shares = scaled.softmax(-1)
        return shares, -(shares * scaled.log_softmax(-1)).sum(-1), logits.argmax(-1)

    return lambda: denoiser_statistics.denoiser_statistics(logits, each), reference


@call(REQUESTS, VOCABULARY, dtypes=FULL, timed=BOTH)
def likeliest(dtype, *shape, cap=30.0):
    """By several ways of the library, one of which divides and one advances positions."""
    logits, by = torch.randn(shape) * 3, torch.rand(shape) + 0.5
    at = torch.randint(0, 1000, shape[:1])

    def op():
        largest = softcap_row_argmax.softcap_row_argmax(logits, cap, shape[1], 0)
        places, drafts = at.clone(), torch.zeros(shape[0], 3, dtype=torch.int64)
        topk1.draft_topk1_postprocess(logits, places, drafts, 1)
        every = row_argmax.row_argmax(logits), row_argmax.div_argmax(logits, by)
        return largest, places, drafts, *every

    def reference():
        values, best = logits.max(-1)
        drafts = torch.zeros(shape[0], 3, dtype=torch.int64)
        drafts[:, 1] = best
        largest = torch.stack((cap * torch.tanh(values / cap), best.float()), 1)
        return largest, at + 1, drafts, best, (logits / by).argmax(-1)

    return op, reference


@call(REQUESTS, VOCABULARY, dtypes=(torch.int64,))
def hashes(dtype, count, columns):
    """What draws the same tokens wherever a request is in a batch."""
    seed, at = torch.randint(0, 1 << 31, (count,)), torch.randint(0, 5000, (count,))
    column, block = torch.arange(columns), 1024

    def op():
        out = torch.empty(count, columns, dtype=torch.uint32)
        grid = count, -(-columns // block)
        given = seed, at, column, out, count, columns
        murmur_hash.murmur_hash32_kernel[grid](*given, BLOCK_SIZE=block)
        return out.long()

    def turned(x, by):
        return (x << by | x >> (32 - by)) & 0xFFFFFFFF

    def mixed(x, key):
        key = turned(key * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF
        return turned(x ^ key, 13) * 5 + 0xE6546B64 & 0xFFFFFFFF

    def reference():
        x = torch.zeros(count, columns, dtype=torch.int64)
        for key in (seed[:, None], seed[:, None] >> 32, at[:, None], column[None]):
            x = mixed(x, key & 0xFFFFFFFF)
        x = x ^ 16
        for by, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            x = (x ^ x >> by) * factor & 0xFFFFFFFF
        return x ^ x >> 16

    return op, reference


# Drafts


@call(REQUESTS, VOCABULARY, dtypes=FULL)
def accepted(dtype, count, vocabulary, drafted=4):
    """Where what is right has all of the probability: drafts up to the first that is wrong, and
    what is right there."""
    drafts = torch.randint(0, vocabulary, (count, drafted))
    right = torch.randint(0, vocabulary, (count, drafted))
    right[:, :-1] = drafts[:, 1:].where(torch.rand(count, drafted - 1) < 0.7, right[:, :-1])
    target = torch.nn.functional.one_hot(right, vocabulary).float()
    draft = torch.nn.functional.one_hot(drafts[:, 1:], vocabulary).float()
    number = torch.arange(count * drafted).view(count, drafted)

    def op():
        out = torch.zeros(count * drafted, dtype=torch.int32)
        where = torch.full((count, drafted), -1, dtype=torch.int32)
        many = torch.zeros(count, dtype=torch.int32)
        coins = torch.full((count, drafted), 0.5), torch.full((count,), 0.5)
        given = drafts, number.int(), None, None, *coins, target, draft, 1.0, 1.0, True
        reject_sampling.chain_speculative_sampling_triton(out, where, many, *given)
        return out, where, many

    def reference():
        wrong = (drafts[:, 1:] != right[:, :-1]).int()
        many = (wrong.cumsum(1) == 0).sum(1)
        seen = torch.arange(drafted) <= many[:, None]
        return (right * seen).flatten(), number.masked_fill(~seen, -1), many

    return op, reference


@call(REQUESTS, dtypes=(torch.int64,))
def accepted_tree(dtype, count, drafted=8, depth=4):
    """Of a tree whose tokens have two children each."""
    drafts = torch.arange(count * drafted).view(count, drafted)
    best = torch.randint(0, 1 << 20, (count, drafted))
    children = [[2 * n + 1, 2 * n + 2] for n in range(drafted)]
    first = [c[0] if c[0] < drafted else -1 for c in children]
    beside = [n + 1 if n % 2 and n + 1 < drafted else -1 for n in range(drafted)]
    for row in range(count):
        node = 0
        for step in range(row % depth):
            if children[node][step % 2] < drafted:
                best[row, node] = drafts[row, children[node][step % 2]]
                node = children[node][step % 2]

    def op():
        out, where = torch.zeros(count * drafted).int(), torch.full((count, depth), -1).int()
        many = torch.zeros(count).int()
        tree = [torch.tensor(n).expand(count, -1).contiguous() for n in (first, beside)]
        spec_tree.verify_tree_greedy_triton(out, where, many, drafts, drafts, *tree, best)
        return out, where, many

    def reference():
        out, where = torch.zeros(count * drafted), torch.full((count, depth), -1)
        many = torch.zeros(count)
        for row in range(count):
            node = taken = 0
            where[row, 0] = drafts[row, 0]
            while taken < depth - 1:
                out[row * drafted + node] = best[row, node]
                found = [
                    n for n in children[node] if n < drafted and drafts[row, n] == best[row, node]
                ]
                if not found:
                    break
                node, taken = found[0], taken + 1
                where[row, taken] = drafts[row, node]
            out[row * drafted + node], many[row] = best[row, node], taken
        return out, where, many

    return op, reference


@call(Size(5, 256, 16), dtypes=(torch.int64,))
def chains(dtype, count, depth=3):
    """Each request's drafts as a tree: who sees whom, positions, and who follows."""
    sizes, bonus = torch.randint(1, 5000, (count,)), torch.randint(0, 1000, (count,))
    drafts, width = torch.randint(0, 1000, (count, depth)), depth + 1

    def op():
        return eagle.build_chain_tree(bonus, drafts, sizes)[:6]

    def reference():
        mask = torch.ones(width, width).tril().bool().expand(count, -1, -1)
        at = torch.arange(width)
        follows = (at + 1).masked_fill(at == depth, -1).expand(count, -1)
        number = torch.arange(count * width).view(count, width)
        tokens = torch.cat((bonus[:, None], drafts), 1).flatten()
        places = (sizes[:, None] + at).flatten()
        return mask.flatten(), places, number, follows, torch.full_like(number, -1), tokens

    return op, reference


# Where tokens are kept


@call(Size(5, 256, 16), Size(300, 2048, 8192), dtypes=(torch.int64,))
def allocated(dtype, count, longest, page=16):
    """Slots of new tokens: what is free of a request's last page, and then whole pages."""
    before = torch.randint(0, longest, (count,))
    after = before + torch.randint(1, longest, (count,))
    last = torch.randint(0, 1 << 20, (count,)) * page + (before - 1) % page
    need = -(-after // page) - -(-before // page)
    free = torch.randperm(int(need.sum()) + count) + (1 << 20)
    table = torch.randint(0, 1 << 20, (2 * count, longest)).int()
    request = torch.randperm(2 * count)[:count]

    def op():
        most = 1 << (count - 1).bit_length()
        out = torch.empty(int((after - before).sum()), dtype=dtype)
        one = torch.empty(count, dtype=dtype)
        allocator.alloc_extend_kernel[(count,)](before, after, last, free, out, most, page)
        allocator.alloc_decode_kernel[(count,)](before + 1, last, free, one, most, page)
        return out, one, common.get_last_loc_triton(table, request, before)

    def slots(begin, end, own, pages):
        at = torch.arange(begin, end)
        known = -(-begin // page) * page
        new = pages[((at - known) // page).clamp(0)] * page + at % page
        return torch.where(at < known, own + 1 + at - begin, new)

    def reference():
        rows = zip(
            before.tolist(), after.tolist(), last, free.split([*need, count])[:-1], strict=True
        )
        first, one, used = [], [], 0
        for begin, end, own, pages in rows:
            first.append(slots(begin, end, own, torch.cat((pages, free[:1]))))
            one.append(slots(begin, begin + 1, own, free[used:]))
            used += begin % page == 0
        ends = table[request, (before - 1).clamp(0)].where(before > 0, -1)
        return torch.cat(first), torch.cat(one), ends

    return op, reference


@call(Size(5, 256, 16), Size(300, 2048, 8192), dtypes=(torch.int64,))
def draft_slots(dtype, count, longest, drafted=4):
    table = torch.randint(0, 1 << 20, (2 * count, longest + drafted)).int()
    request, sizes = torch.randperm(2 * count)[:count], torch.randint(1, longest, (count,))

    def op():
        given = request, table, sizes, sizes + drafted, count, drafted, table.device
        return cache_locs.assign_extend_cache_locs_func(*given)

    def reference():
        return table[request[:, None], sizes[:, None] + torch.arange(drafted)].flatten().long()

    return op, reference
