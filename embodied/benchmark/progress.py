"""Progress of a run on stderr: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any, Protocol

from embodied.benchmark.metrics import wilson


class Progress(Protocol):
    """Is told of every episode that ends."""

    def start(self, total: int, results: list[dict[str, Any]]) -> None:
        """Begin with ``total`` episodes, of which ``results`` are there already."""
        ...

    def advance(self, result: dict[str, Any], wall_s: float) -> None:
        """Take one more result."""
        ...

    def stop(self) -> None:
        """Leave the terminal as it was."""
        ...


class _Tally:
    """Counts that both displays show."""

    def __init__(self) -> None:
        self.total = self.done = self.successes = self.steps = self.fresh = 0
        self.start_s = time.monotonic()

    def begin(self, total: int, results: list[dict[str, Any]]) -> None:
        self.total, self.done = total, len(results)
        self.successes = sum(bool(r["success"]) for r in results)
        self.start_s = time.monotonic()

    def add(self, result: dict[str, Any]) -> None:
        self.done += 1
        self.fresh += 1
        self.successes += bool(result["success"])
        self.steps += int(result.get("skill_steps", 0))

    def words(self) -> str:
        rate = wilson(self.successes, self.done)
        elapsed_s = max(time.monotonic() - self.start_s, 1e-9)
        text = f"success {rate.value:.2f} [{rate.low:.2f}, {rate.high:.2f}]" if self.done else "success –"
        if self.fresh:
            left_s = elapsed_s / self.fresh * (self.total - self.done)
            text += f"  {self.steps / elapsed_s:,.1f} skill steps/s  {_clock(left_s)} left"
        return text


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


class PlainProgress:
    """One line per episode, for logs of continuous integration."""

    def __init__(self) -> None:
        self._tally = _Tally()

    def start(self, total: int, results: list[dict[str, Any]]) -> None:
        """Begin."""
        self._tally.begin(total, results)
        if results:
            self._say(f"{len(results)} of {total} episodes are there already")

    def advance(self, result: dict[str, Any], wall_s: float) -> None:
        """Print the episode and where the run stands."""
        tally = self._tally
        tally.add(result)
        self._say(
            f"[{tally.done}/{tally.total}] {result['task_id']} {result['seed']}: {result['outcome']}"
            f" ({wall_s:.1f} s)  {tally.words()}"
        )

    def stop(self) -> None:
        """Nothing to restore."""

    def _say(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


class BarProgress:
    """One bar: episodes done, success so far with its interval, steps per second, time left."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._tally = _Tally()
        self._bar = RichProgress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
        )

    def start(self, total: int, results: list[dict[str, Any]]) -> None:
        """Begin."""
        self._tally.begin(total, results)
        self._bar.start()
        self._task = self._bar.add_task(self._tally.words(), total=total, completed=len(results))

    def advance(self, result: dict[str, Any], wall_s: float) -> None:
        """Move the bar."""
        self._tally.add(result)
        self._bar.update(self._task, completed=self._tally.done, description=self._tally.words())

    def stop(self) -> None:
        """Leave the last state of the bar on the terminal."""
        self._bar.stop()


class NoProgress:
    """Says nothing."""

    def start(self, total: int, results: list[dict[str, Any]]) -> None:
        """Begin."""

    def advance(self, result: dict[str, Any], wall_s: float) -> None:
        """Take one more result."""

    def stop(self) -> None:
        """End."""


def make_progress(*, quiet: bool) -> Progress:
    """Return the display that fits where stderr goes."""
    if quiet:
        return NoProgress()
    return BarProgress() if sys.stderr.isatty() else PlainProgress()
