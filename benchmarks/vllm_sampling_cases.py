"""Cases of vLLM: what chooses the next token."""

import types

import torch
import torch.nn.functional as F
from libraries import SMS
from library_case import BOTH, FULL, Size
from vllm_case import call

# isort: split
from vllm.v1.sample import rejection_sampler
from vllm.v1.sample.ops import topk_topp_triton
from vllm.v1.worker.gpu.sample import gumbel, logprob, min_p, penalties

REQUESTS, VOCABULARY = Size(5, 64, 16), Size(1500, 32000, 128256)

logprob.LogprobsTensors = dict  # it stands where the library's results do


def finite(logits):
    return logits.masked_fill(logits == -torch.inf, 0)


def kept(logits, count=None, share=None):
    """The largest, so many of them, and of what is left those that make a share."""
    logits = logits.double()
    if count is not None:
        least = logits.sort(descending=True).values.gather(1, count[:, None] - 1)
        logits = logits.masked_fill(logits < least, -torch.inf)
    if share is not None:
        values, order = logits.sort(descending=True)
        shares = values.softmax(-1)
        before = shares.cumsum(-1) - shares
        values = values.masked_fill(before >= share.double()[:, None], -torch.inf)
        logits = torch.empty_like(logits).scatter_(1, order, values)
    return finite(logits)


@call(REQUESTS, VOCABULARY, dtypes=FULL, timed=BOTH)
def top_k_top_p(dtype, *shape):
    logits = torch.randn(shape) * 3
    count, share = torch.randint(1, 100, shape[:1]), torch.rand(shape[:1]) * 0.5 + 0.4

    def op():
        apply = topk_topp_triton.apply_top_k_top_p_triton
        return [finite(apply(logits.clone(), *how)) for how in ((count, None), (count, share))]

    return op, lambda: [kept(logits, count), kept(logits, count, share)]


@call(REQUESTS, VOCABULARY, dtypes=FULL, timed=BOTH)
def top_p(dtype, *shape):
    """As a GPU has it, for a row of several programs."""
    logits, share = torch.randn(shape) * 3, torch.rand(shape[:1]) * 0.5 + 0.4

    def op():
        topk_topp_triton._TRITON_SPLIT_CACHE.clear()
        out = logits.clone()
        topk_topp_triton._apply_topp_split(out, None, share, -torch.inf, SMS)
        return finite(out)

    return op, lambda: kept(logits, None, share)


@call(REQUESTS, VOCABULARY, dtypes=FULL)
def rejection(dtype, count, vocabulary, longest=4):
    """Drafts of tokens: of a greedy request those that are likeliest are accepted, and of another
    one those that have all of the probability."""
    drafts = [n % (longest + 1) for n in range(count)]
    ends, bonus = torch.tensor(drafts).cumsum(0).int(), torch.randint(0, vocabulary, (count, 1))
    tokens = torch.randint(0, vocabulary, (sum(drafts),))
    right = torch.where(torch.rand(sum(drafts)) < 0.7, tokens, (tokens + 7) % vocabulary)
    logits = torch.zeros(sum(drafts), vocabulary).scatter_(1, right[:, None], 200.0)
    probabilities = F.one_hot(tokens, vocabulary).float()
    temperature = (torch.arange(count) % 2).float()
    asked = types.SimpleNamespace(
        all_greedy=False, all_random=False, temperature=temperature, generators={}
    )

    def op():
        given = tokens.int(), drafts, longest, ends
        return tuple(
            rejection_sampler.rejection_sample(*given, draft, logits, bonus.int(), asked)
            for draft in (None, probabilities)
        )

    def reference():
        rows = torch.full((count, longest + 1), -1)
        pairs = zip(tokens.split(drafts), right.split(drafts), strict=True)
        for row, (draft, target) in enumerate(pairs):
            wrong = (draft != target).nonzero().flatten().tolist()
            found = target[: wrong[0] + 1] if wrong else torch.cat((target, bonus[row]))
            rows[row, : len(found)] = found
        return rows, rows

    return op, reference


@call(REQUESTS, dtypes=(torch.int32,))
def expanded(dtype, count):
    """A number of each request for each of its tokens."""
    tokens, numbers = torch.arange(count) % 4, torch.randint(0, 3, (count,), dtype=dtype)
    ends = tokens.cumsum(0).int()

    def op():
        return rejection_sampler.expand_batch_to_tokens(numbers, ends, int(ends[-1]), 0, 9)

    return op, lambda: numbers.where(numbers != 0, 9).repeat_interleave(tokens)


@call(Size(2000, 4096, 64), Size(7, 1024, 32000), dtypes=FULL, timed=BOTH)
def gumbel_sampling(dtype, rows, columns):
    """Of two requests: one takes the likeliest, and the other draws tokens as often as they
    are probable."""
    logits, request = torch.randn(columns).expand(rows, -1).contiguous(), torch.arange(rows) % 2
    temperature = torch.tensor([0.0, 0.8])

    def op():
        drawn = gumbel.gumbel_sample(
            *(logits, request.int(), temperature, torch.tensor([3, 5]), torch.arange(rows)),
            apply_temperature=True,
            is_drafting=False,
        )
        often = drawn[request == 1].bincount(minlength=columns) / (rows // 2)
        off = (often - (logits[0] / 0.8).softmax(-1)).abs()
        return drawn[request == 0], off > 6 / rows**0.5

    def reference():
        greedy = logits[request == 0].argmax(-1)
        return greedy, torch.zeros(columns)

    return op, reference


@call(REQUESTS, VOCABULARY, dtypes=FULL)
def temperatures(dtype, *shape):
    logits, each = torch.randn(shape), torch.rand(shape[:1]) + 0.1
    each[::3] = 0
    request = torch.randperm(shape[0])

    def op():
        out = logits.clone()
        gumbel.apply_temperature(out, request.int(), each)
        return out

    def reference():
        by = each[request].double()
        return logits / by.where(by != 0, 1.0)[:, None]

    return op, reference


@call(REQUESTS, VOCABULARY, Size(300, 2048, 8192), dtypes=FULL, timed=BOTH)
def penalised(dtype, count, vocabulary, longest):
    """For what is in the prompt, what was generated, and what is drafted ahead of a token."""
    tokens = torch.randint(0, vocabulary, (count, longest), dtype=torch.int32)
    known = torch.randint(longest // 2, longest + 1, (count,), dtype=torch.int32)
    prompt = known // 2
    repeated, frequent, present = torch.rand(count) + 0.5, torch.rand(count), torch.rand(count)
    repeated[0], frequent[0], present[0] = 1, 0, 0
    drafted = 2  # a row of logits each
    request = torch.repeat_interleave(torch.arange(count), drafted)
    place = torch.arange(count * drafted) % drafted
    ahead = torch.randint(0, vocabulary, (count * drafted,), dtype=torch.int32)
    logits = torch.randn(count * drafted, vocabulary)

    def op():
        mask = torch.full((count, -(-vocabulary // 32)), -1, dtype=torch.int32)
        counts, out = torch.full((count, vocabulary), 3, dtype=torch.int32), logits.clone()
        requests = torch.arange(count, dtype=torch.int32)
        penalties.bincount(requests, tokens, prompt, known, mask, counts, longest)
        penalties.apply_penalties(
            *(out, request.int(), ahead, place.int(), repeated, frequent, present, mask, counts)
        )
        return out, counts

    def reference():
        rows = zip(tokens.long(), prompt.tolist(), known.tolist(), strict=True)
        parts = [(row[:n], row[n:m]) for row, n, m in rows]
        counts = torch.stack([new.bincount(minlength=vocabulary) for _, new in parts])
        asked = torch.stack([old.bincount(minlength=vocabulary) > 0 for old, _ in parts])
        often = counts[request]
        for row in range(1, len(often), drafted):
            often[row, ahead[row].long()] += 1
        by = repeated.double()[request, None].expand_as(often).clone()
        by[~(asked[request] | (often > 0))] = 1
        out = torch.where(logits > 0, logits / by, logits * by)
        out = out - frequent.double()[request, None] * often
        return out - present.double()[request, None] * (often > 0), counts

    return op, reference


@call(REQUESTS, VOCABULARY, dtypes=(torch.float32, torch.bfloat16))
def log_probabilities(dtype, *shape):
    """Of the token that was chosen and of the likeliest, and how many are likelier."""
    logits = torch.randn(shape, dtype=dtype)
    chosen = torch.randint(0, shape[1], shape[:1])

    def op():
        found = logprob.compute_topk_scores(logits, 20, chosen)
        return found["logprobs"], found["selected_token_ranks"]

    def reference():
        every = logits.double().log_softmax(-1)
        own = every.gather(1, chosen[:, None])
        at = logits.gather(1, chosen[:, None])
        return torch.cat((own, every.topk(20).values), 1), (logits >= at).sum(-1)

    return op, reference


@call(REQUESTS, VOCABULARY, dtypes=FULL)
def least_probability(dtype, *shape):
    logits, least = torch.randn(shape) * 3, torch.rand(shape[:1]) / 10
    least[0] = 0

    def op():
        out = logits.clone()
        min_p.apply_min_p(out, torch.arange(shape[0], dtype=torch.int32), least)
        return finite(out)

    def reference():
        shares = logits.double().softmax(-1)
        hidden = shares < least[:, None] * shares.amax(-1, keepdim=True)
        return logits.double().masked_fill(hidden, 0)

    return op, reference
