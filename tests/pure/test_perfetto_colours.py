"""The colours that Perfetto's UI makes of a trace, against those of our pictures.

The UI's rule, as its version 52 draws (compared with the pixels of a picture of it): a hash of the
text is the hue in HSLuv, one of the text and an x the lightness.
"""

import math
from pathlib import Path

import numpy as np
from synthetic import random_run

from proton.viewer import Run
from proton.viewer.export.perfetto.colours import SEEDS
from proton.viewer.pictures.picture import PALETTE
from proton.viewer.pictures.timeline import SliceKind, Timeline
from tests.trace_processor import TraceProcessor

WORD = 1 << 32
SATURATION, LEAST, LIGHTNESSES = 0.8, 40, 40
TO_RGB = np.array([[3.240969941904521, -1.537383177570093, -0.498610760293],
                   [-0.96924363628087, 1.87596750150772, 0.041555057407175],
                   [0.055630079696993, -0.20397695888897, 1.056971514242878]])  # fmt: skip
WHITE_U, WHITE_V, KAPPA, EPSILON = 0.19783000664283, 0.46831999493879, 903.2962962, 0.0088564516


def hashed(text: str, below: int) -> int:
    """As JavaScript computes it: a product of doubles, cut to 32 bits with a sign."""
    value = 18652613
    for letter in text:
        value ^= ord(letter)
        value = int(16777619.0 * float(value)) % WORD
        value -= WORD * (value >= WORD // 2)
    return abs(value) % below


def most_chroma(lightness: float, hue: float) -> float:
    """How far from grey the colours of sRGB go: to the first of six lines."""
    cubed = (lightness + 16) ** 3 / 1560896
    part = cubed if cubed > EPSILON else lightness / KAPPA
    lengths = []
    for red, green, blue in TO_RGB:
        for end in (0, 1):
            down = (632260 * blue - 126452 * green) * part + 126452 * end
            slope = (284517 * red - 94839 * blue) * part / down
            offset = (838422 * blue + 769860 * green + 731718 * red) * lightness * part
            offset = (offset - 769860 * end * lightness) / down
            lengths.append(offset / (math.sin(hue) - slope * math.cos(hue)))
    return min(length for length in lengths if length >= 0)


def drawn(text: str) -> tuple[int, ...]:
    """The colour of slices with this correlation id, as 8-bit RGB."""
    hue = math.radians(hashed(text, 360))
    lightness = hashed(f"{text}x", LIGHTNESSES) + LEAST
    chroma = most_chroma(lightness, hue) * SATURATION
    u = math.cos(hue) * chroma / (13 * lightness) + WHITE_U
    v = math.sin(hue) * chroma / (13 * lightness) + WHITE_V
    y = ((lightness + 16) / 116) ** 3
    x = 9 * y * u / (4 * v)
    linear = TO_RGB @ [x, y, (9 * y - 15 * v * y - v * x) / (3 * v)]
    curved = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return tuple(int(255 * value) for value in curved)


def lab(rgb: tuple[int, ...]) -> np.ndarray:
    """CIELAB of 8-bit RGB, in which distances are what eyes see."""
    part = np.array(rgb) / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    x, y, z = np.linalg.inv(TO_RGB) @ linear / [0.9505, 1.0, 1.089]
    f = [t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_the_rule_is_that_of_the_ui() -> None:
    """Colours of slices without a correlation id, as a browser drew them."""
    assert drawn("load + dot") == (119, 153, 235)
    assert drawn("matmul") == (88, 205, 193)
    assert drawn("matmul (,)") == (185, 68, 226)
    assert drawn("load") == (162, 172, 72)


def test_each_colour_of_the_palette_has_its_own() -> None:
    assert len(SEEDS) == len(set(SEEDS)) == len(PALETTE)
    ours = [lab(tuple(bytes.fromhex(colour[1:]))) for colour in PALETTE]
    theirs = [lab(drawn(seed)) for seed in SEEDS]
    half = len(PALETTE) // 2
    for one, other in zip(ours[:half], theirs[:half], strict=True):
        assert np.linalg.norm(one - other) < 18
    for one, other in zip(ours[half:], theirs[half:], strict=True):  # pale ones are dark there
        turned = abs(math.atan2(one[2], one[1]) - math.atan2(other[2], other[1]))
        assert min(turned, 2 * math.pi - turned) < math.radians(30)
    for number, one in enumerate(theirs):
        assert all(np.linalg.norm(one - other) > 5 for other in theirs[:number])


def test_scopes_have_the_colours_of_our_pictures(tmp_path: Path) -> None:
    run = Run(random_run(3))
    timeline = Timeline(run)
    used = np.unique(timeline.slices.name[timeline.slices.kind == SliceKind.SCOPE])
    wanted = {timeline.names[n].text: SEEDS[timeline.names[n].number % len(SEEDS)] for n in used}
    with TraceProcessor(run.save(tmp_path / "run.pftrace")) as processor:
        found = processor.query(
            "select distinct name, extract_arg(arg_set_id, 'correlation_id') as seed from slice"
            " where dur > 0 and seed is not null"
        )
    shown = {row["name"]: row["seed"] for row in found}
    assert len(shown) == len(found)
    assert {name: seed for name, seed in wanted.items() if name in shown} == shown
    assert len(shown) > 3
