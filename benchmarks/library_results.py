"""Whether what an op of a library gives is what torch gives."""

import torch

# The largest error, relative or absolute, of a dtype; of float32 what sums in another order make.
TOLERANCES = {torch.float16: 5e-3, torch.bfloat16: 4e-2, torch.float64: 1e-6}
TOLERANCE = 2e-4
FAR = 1e-6  # of many numbers, how many may be off


class Wrong(AssertionError):
    """A result that is not the reference's."""


def compare(found: object, expected: object, what: str, scaled: bool = False) -> None:
    """Raises `Wrong` unless two results, which may be in tuples, are about equal. `scaled`, for
    many numbers, measures absolute errors by the root mean square of what is expected."""
    if isinstance(expected, list | tuple):
        if not isinstance(found, list | tuple) or len(found) != len(expected):
            raise Wrong(f"{what}: {type(found).__name__} in the place of {len(expected)} results")
        for number, pair in enumerate(zip(found, expected, strict=True)):
            compare(*pair, f"{what}[{number}]", scaled)
        return
    if not isinstance(expected, torch.Tensor):
        if isinstance(found, torch.Tensor):
            found = found.item()
        if found != expected and expected is not None:
            raise Wrong(f"{what}: {found} in the place of {expected}")
        return
    if not isinstance(found, torch.Tensor):
        raise Wrong(f"{what}: {type(found).__name__} in the place of a tensor")
    rate = TOLERANCES.get(expected.dtype, TOLERANCE)
    if scaled:
        _compare_scaled(found, expected, what, rate)
        return
    try:
        torch.testing.assert_close(found, expected, rtol=rate, atol=rate, equal_nan=True)
    except AssertionError as problem:
        raise Wrong(f"{what}: {problem}") from None


def _compare_scaled(found: torch.Tensor, expected: torch.Tensor, what: str, rate: float) -> None:
    """Of many numbers some may be where a derivative jumps."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise Wrong(f"{what}: {found.dtype}{[*found.shape]} in the place of {[*expected.shape]}")
    scale = expected.float().square().mean().sqrt()
    far = (found - expected).abs() > rate * (expected.abs() + scale)
    count = int((far | (found.isnan() != expected.isnan())).sum())
    if count > FAR * found.numel():
        raise Wrong(f"{what}: {count} of {found.numel()} numbers are off")


def compare_kinds(found: object, expected: object, what: str) -> None:
    """Raises TypeError where shapes and dtypes differ: these are the library's own, not of what its
    kernels compute."""
    kinds = [
        [(tuple(part.shape), part.dtype) for part in _parts(value)] for value in (found, expected)
    ]
    if kinds[0] != kinds[1]:
        raise TypeError(f"{what}: {kinds[0]} in the place of {kinds[1]}")


def _parts(value: object) -> list[torch.Tensor]:
    if isinstance(value, list | tuple):
        return [part for each in value for part in _parts(each)]
    return [value] if isinstance(value, torch.Tensor) else []


# Of numbers that go through long sums and products of blocks: how far the root mean square of
# what they are off may be, by that of what is expected.
NORMS = {torch.float16: 1e-2, torch.bfloat16: 3e-2, torch.float32: 1e-3}


def compare_norms(found: object, expected: object, what: str, dtype: torch.dtype) -> None:
    """Raises `Wrong` unless tensors, which may be in lists, are about equal in the mean."""
    if isinstance(expected, list | tuple):
        assert isinstance(found, list | tuple)
        for number, pair in enumerate(zip(found, expected, strict=True)):
            compare_norms(*pair, f"{what}[{number}]", dtype)
        return
    if expected is None or found is None:
        if found is not None and bool(found.any()):  # type: ignore[attr-defined]
            raise Wrong(f"{what}: a gradient where none is expected")
        if expected is not None and bool(expected.any()):  # type: ignore[attr-defined]
            raise Wrong(f"{what}: no gradient")
        return
    assert isinstance(found, torch.Tensor)
    assert isinstance(expected, torch.Tensor)
    if found.shape != expected.shape:
        raise Wrong(f"{what}: {[*found.shape]} in the place of {[*expected.shape]}")
    scale = expected.double().square().mean().sqrt()
    off = (found.double() - expected.double()).square().mean().sqrt()
    if not off <= NORMS.get(dtype, 1e-2) * scale + 1e-6:
        raise Wrong(f"{what}: off by {float(off):.2g}, where numbers are of {float(scale):.2g}")
