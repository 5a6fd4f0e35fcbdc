"""Samples of operators for which torch has none that reach them, and what is known of some."""

from collections.abc import Callable
from typing import Any

import torch

Call = tuple[tuple[Any, ...], dict[str, Any]]

# Operators whose samples torch has under another name.
SYNONYMS = {
    "or": "bitwise_or",
    "ior": "bitwise_or",
    "clip": "clamp",
    "clamp_min": "clamp",
    "conv_depthwise2d": "conv2d",
    "dropout": "nn.functional.dropout",
    "index_put_impl": "index_put",
    "nll_loss": "nn.functional.nll_loss",
    "nll_loss2d": "nn.functional.nll_loss",
    "upsample_nearest1d": "nn.functional.upsample_nearest",
    "upsample_nearest2d": "nn.functional.upsample_nearest",
    "upsample_nearest3d": "nn.functional.upsample_nearest",
    "upsample_linear1d": "nn.functional.interpolate",
    "upsample_bicubic2d": "nn.functional.interpolate",
    "weight_norm_interface": "_weight_norm",
    "embedding_dense": "nn.functional.embedding",
    "log_sigmoid": "nn.functional.logsigmoid",
    "elu": "nn.functional.elu",
    "vector_norm": "linalg.vector_norm",
    "unique2": "unique",
    "greater": "gt",
    "divide": "div",
    "true_divide": "div",
    "max_pool2d_with_indices": "nn.functional.max_pool2d",
    "rrelu_with_noise": "nn.functional.rrelu",
}

# Where the library's results are not torch's whatever compiles its kernels, and why.
LIBRARYS_OWN = {
    "_upsample_nearest_exact1d": "pixels are taken at their edges, as in upsample_nearest1d",
    "addr": "beta = 0 and alpha = 0 multiply, and do not drop, what is not a number",
    "logaddexp": "of two equal infinities the difference is not a number",
    "linalg_vector_norm": "sums of powers are kept in the type of the input, and overflow",
    "native_group_norm": "the mask takes in channels of the next group, unless groups are powers "
    "of two",
    "native_group_norm_backward": "as native_group_norm",
    "nll_loss_forward": "the total weight is left as it was, without a reduction",
    "soft_margin_loss": "fp16 is summed in fp32, and does not overflow",
    "sort": "equal elements in another order",
    "upsample_nearest2d": "its table for this vendor lacks a constant of the kernel",
    "unfold_backward": "a gradient is taken for contiguous",
    "topk": "integers and equal elements in another order",
    "zero": "fills its argument",
}


def _x(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def _calls(*args: Any, **kwargs: Any) -> Callable[[], list[Call]]:
    """One call; arguments that are functions are made for it."""
    return lambda: [(tuple(arg() if callable(arg) else arg for arg in args), kwargs)]


def _mask() -> torch.Tensor:
    return _x(5, 7) > 0


SAMPLES: dict[str, Callable[[], list[Call]]] = {
    "_is_all_true": _calls(_mask),
    "_safe_softmax": _calls(lambda: _x(5, 7), -1),
    "_to_copy": _calls(lambda: _x(5, 7), dtype=torch.float16),
    "_upsample_nearest_exact1d": _calls(lambda: _x(2, 3, 5), [7]),
    "_weight_norm_interface": _calls(lambda: _x(5, 7), lambda: _x(5, 1), 0),
    "arange": _calls(17, dtype=torch.int64, device="cpu"),
    "arange.start": _calls(3, 17, dtype=torch.int64, device="cpu"),
    "conv1d": _calls(lambda: _x(2, 4, 9), lambda: _x(6, 4, 3), None, 1, 1),
    "conv1d.padding": _calls(lambda: _x(2, 4, 9), lambda: _x(6, 4, 3), None, 1, "same"),
    "conv2d.padding": _calls(lambda: _x(2, 4, 9, 9), lambda: _x(6, 4, 3, 3), None, 1, "valid"),
    "conv3d": _calls(lambda: _x(2, 4, 5, 5, 5), lambda: _x(6, 4, 3, 3, 3), None, 1, 1),
    "copy_": _calls(lambda: _x(5, 7), lambda: _x(7)),
    "copysign": _calls(lambda: _x(5, 7), lambda: _x(5, 7).neg()),
    "embedding_backward": _calls(
        lambda: _x(4, 7), lambda: torch.tensor([1, 3, 3, 0]), 5, -1, False, False
    ),
    "fill.Tensor": _calls(lambda: _x(5, 7), lambda: torch.tensor(2.5)),
    "fill_.Tensor": _calls(lambda: _x(5, 7), lambda: torch.tensor(2.5)),
    "index.Tensor": _calls(lambda: _x(5, 7), lambda: [torch.tensor([0, 4, 4])]),
    "isin.Scalar_Tensor": _calls(3, lambda: torch.arange(5)),
    "isin.Tensor_Scalar": _calls(lambda: torch.arange(5), 3),
    "lift_fresh_copy": _calls(lambda: _x(5, 7)),
    "margin_ranking_loss": _calls(lambda: _x(7), lambda: _x(7) + 1, lambda: torch.ones(7)),
    "native_dropout": _calls(lambda: _x(5, 7), 0.5, True),
    "nll_loss2d_forward": _calls(
        lambda: _x(2, 3, 4, 4), lambda: torch.ones(2, 4, 4, dtype=torch.int64), None, 1, -100
    ),
    "pow.Scalar": _calls(2.0, lambda: _x(5, 7)),
    "pow.Tensor_Scalar": _calls(lambda: _x(5, 7), 3),
    "pow_.Scalar": _calls(lambda: _x(5, 7), 3),
    "quantile": _calls(lambda: _x(5, 7), lambda: torch.tensor([0.25, 0.5]), 1),
    "rand": _calls([5, 7], device="cpu"),
    "randperm": _calls(17, device="cpu"),
    "reflection_pad1d": _calls(lambda: _x(2, 3, 5), [2, 1]),
    "reflection_pad2d": _calls(lambda: _x(2, 3, 5, 5), [2, 1, 1, 2]),
    "replication_pad1d": _calls(lambda: _x(2, 3, 5), [2, 1]),
    "replication_pad3d": _calls(lambda: _x(2, 3, 5, 5, 5), [2, 1, 1, 2, 0, 1]),
    "upsample_nearest3d": _calls(lambda: _x(1, 2, 3, 3, 3), [5, 4, 6]),
    "zero": _calls(lambda: _x(5, 7)),
    "zero_": _calls(lambda: _x(5, 7)),
}  # fmt: skip
