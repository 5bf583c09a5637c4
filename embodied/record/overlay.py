"""Text and insets on frames; lettering by Pillow, which comes with imageio."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.errors import require

Image = NDArray[np.uint8]
_BAR = (24, 28, 34)
_INK = ((245, 246, 248), (190, 205, 225))


def text_bar(image: Image, lines: Sequence[str]) -> Image:
    """Return the image with a dark bar of text under it; the first line is brighter.

    Args:
      image: (height, width, 3).
      lines: one to three lines; what does not fit is cut and ends in three dots.

    Raises:
      MissingExtraError: Pillow is not installed.
    """
    draw_module: Any = require("PIL.ImageDraw", "report")
    image_module: Any = require("PIL.Image", "report")
    height, width, _ = image.shape
    letter_px = max(10, height // 26)
    line_px = round(letter_px * 1.45)
    bar = image_module.new("RGB", (width, line_px * len(lines) + letter_px // 2), _BAR)
    draw = draw_module.Draw(bar)
    font = _font(letter_px)
    for row, line in enumerate(lines):
        text = _fit(line, font, width - letter_px)
        draw.text((letter_px // 2, letter_px // 4 + row * line_px), text, font=font, fill=_INK[min(row, 1)])
    return np.concatenate([image, np.asarray(bar, dtype=np.uint8)])


def inset(image: Image, small: Image, border_px: int = 2) -> Image:
    """Return the image with a smaller one in its upper right corner."""
    out = image.copy()
    height, width = small.shape[0], small.shape[1]
    room = out[: height + 2 * border_px, out.shape[1] - width - 2 * border_px :]
    room[:] = _BAR
    room[border_px : border_px + height, border_px : border_px + width] = small
    return out


@lru_cache(maxsize=8)
def _font(size_px: int) -> Any:  # noqa: ANN401
    module: Any = require("PIL.ImageFont", "report")
    return module.load_default(size_px)


def _fit(text: str, font: Any, width_px: int) -> str:  # noqa: ANN401
    text = " ".join(text.split())
    if font.getlength(text) <= width_px:
        return text
    while text and font.getlength(text + "...") > width_px:
        text = text[: max(0, len(text) - max(1, len(text) // 40))]
    return text.rstrip() + "..."
