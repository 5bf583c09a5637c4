"""Plots as inline SVG: no script, a few kilobytes, sharp in print; a plot library's script alone is over 4 MB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One point of a strip plot.

    Attributes:
      value: place on the axis.
      is_good: decides the colour.
      label: text on hovering.
    """

    value: float
    is_good: bool
    label: str


def interval_bar(value: float | None, low: float, high: float, *, width_px: int = 220, height_px: int = 18) -> str:
    """Draw a share in [0, 1] as a dot on its interval, over an axis with quarter marks.

    Args:
      value: the share, None when nothing was measured.
      low: lower end of the interval.
      high: upper end.
      width_px: width of the drawing.
      height_px: height of the drawing.
    """
    pad, middle = 6, height_px / 2
    span = width_px - 2 * pad

    def at(share: float) -> float:
        return pad + share * span

    marks = "".join(
        f'<line class="grid" x1="{at(q):.1f}" x2="{at(q):.1f}" y1="2" y2="{height_px - 2}"/>'
        for q in (0, 0.25, 0.5, 0.75, 1)
    )
    shape = f'<line class="ci" x1="{at(low):.1f}" x2="{at(high):.1f}" y1="{middle}" y2="{middle}"/>'
    if value is not None:
        shape += f'<circle class="dot" cx="{at(value):.1f}" cy="{middle}" r="5"/>'
    label = "no episodes" if value is None else f"{value:.3f}, 95 % interval {low:.3f} to {high:.3f}"
    return (
        f'<svg class="interval" width="{width_px}" height="{height_px}" '
        f'viewBox="0 0 {width_px} {height_px}" role="img" '
        f'aria-label="{label}"><title>{label}</title>{marks}{shape}</svg>'
    )


def strip_plot(groups: Mapping[str, Sequence[Dot]], unit: str, *, width_px: int = 760) -> str:
    """Draw one row of dots per group on a common axis that begins at zero.

    Args:
      groups: row label to dots.
      unit: unit of the axis.
      width_px: width of the drawing.
    """
    left, right, row_px, top = 190, 24, 34, 8
    largest = max((d.value for dots in groups.values() for d in dots), default=0.0)
    step = _nice_step(largest)
    end = max(step, step * -(-largest // step))
    bottom = top + row_px * len(groups)

    def at(value: float) -> float:
        return left + value / end * (width_px - left - right)

    parts = []
    for k in range(round(end / step) + 1):
        x = at(k * step)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>')
        parts.append(f'<text class="axis" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{k * step:g}</text>')
    parts.append(f'<text class="axis" x="{width_px - right}" y="{bottom + 32}" text-anchor="end">{escape(unit)}</text>')
    for row, (name, dots) in enumerate(groups.items()):
        y = top + row_px * (row + 0.5)
        parts.append(f'<text class="row" x="{left - 12}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>')
        for place, dot in enumerate(dots):
            # Spread over the row so that equal values stay countable.
            shift = (place % 5 - 2) * 4.0
            kind = "good" if dot.is_good else "bad"
            parts.append(
                f'<circle class="{kind}" cx="{at(dot.value):.1f}" cy="{y + shift:.1f}" r="4.5">'
                f"<title>{escape(dot.label)}</title></circle>"
            )
    height_px = bottom + 38
    return (
        f'<svg class="strip" viewBox="0 0 {width_px} {height_px}" role="img" aria-label="{escape(unit)}">'
        f"{''.join(parts)}</svg>"
    )


def _nice_step(largest: float) -> float:
    """Return a step of 1, 2 or 5 times a power of ten that cuts [0, largest] into at most eight parts."""
    if largest <= 0:
        return 1.0
    power = 10.0 ** len(str(int(largest)))
    steps = [power * f for f in (1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2)]
    return next((s for s in steps if largest / s <= 8), power / 2)
