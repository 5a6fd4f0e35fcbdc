"""A picture as PNG, drawn by matplotlib (extra `plot`)."""

from __future__ import annotations

import warnings
from typing import BinaryIO

import numpy as np

from proton.viewer.pictures.picture import Picture

PER_INCH = 100  # pixels of the picture
SHARPER = 2  # pixels of the file each way for one of the picture
POINTS = 72 / PER_INCH


def write_png(picture: Picture, file: BinaryIO) -> None:
    """Writes the picture, with twice the pixels each way, as screens have."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure

    figure = Figure((picture.width / PER_INCH, picture.height / PER_INCH), PER_INCH * SHARPER)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, picture.width), ylim=(picture.height, 0))
    axes.set_axis_off()
    boxes = picture.boxes
    sides = np.array([(b.x, b.y, b.x + b.width, b.y + b.height) for b in boxes]).reshape(-1, 4)
    corners = sides[:, [0, 1, 0, 3, 2, 3, 2, 1]].reshape(-1, 4, 2)
    fills = [box.fill for box in boxes]
    axes.add_collection(PolyCollection(list(corners), facecolors=fills, linewidths=0))
    sides_of = {"start": "left", "middle": "center", "end": "right"}
    for label in picture.labels:
        axes.text(
            label.x, label.y, label.text.replace("$", r"\$"), color=label.fill,
            fontsize=label.size * POINTS, ha=sides_of[label.anchor], va="baseline",
        )  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a font without a name's letters draws boxes
        figure.savefig(file, format="png")
