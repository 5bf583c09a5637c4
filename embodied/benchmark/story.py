"""An episode told from its log: the plan trace, in simulated time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the trace.

    Attributes:
      start_s: simulated time at which it began, in seconds.
      end_s: when it ended; equal to ``start_s`` for an instant.
      agent: whose it is, empty for the world.
      what: the skill call or the event, in words.
      status: ``succeeded``, ``failed``, ``preempted``, ``rejected``, ``unfinished`` or ``event``.
      detail: why, in words.
    """

    start_s: float
    end_s: float
    agent: str
    what: str
    status: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A whole episode.

    Attributes:
      meta: what the log says about the run: task, seed, planner, world, instruction, versions.
      lines: the trace, in order of time.
      end_s: simulated time of the last sample.
      outcome: how the log says it ended, empty when it was cut off.
      facts_end: what was true at the end, as text, sorted.
      facts_changed: what became true or false on the way, as (time, sign and fact).
    """

    meta: Mapping[str, Any]
    lines: tuple[Line, ...]
    end_s: float
    outcome: str
    facts_end: tuple[str, ...]
    facts_changed: tuple[tuple[float, str], ...]

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self) | {"meta": dict(self.meta)}


def read_story(path: Path) -> Story:
    """Read the story of an episode log.

    Raises:
      LogError: the log is missing or cannot be read.
    """
    from embodied.record.log import read_log

    log = read_log(path)
    lines: list[Line] = []
    running: dict[str, tuple[float, str]] = {}
    outcome = ""
    for event in log.events:
        data, agent = event.payload, str(event.payload.get("agent", ""))
        if event.kind == "skill_start":
            running[agent] = (event.time_s, call_text(data))
        elif event.kind == "skill_end":
            start_s, what = running.pop(agent, (event.time_s, call_text(data)))
            lines.append(_line(start_s, event.time_s, agent, what, data))
        elif event.kind == "rejected":
            lines.append(_line(event.time_s, event.time_s, agent, call_text(data), data, status="rejected"))
        elif event.kind == "end":
            outcome = str(data.get("outcome", ""))
        elif event.kind == "decision":
            if data.get("message"):
                lines.append(_event(event.time_s, agent, f"says: {data['message']}"))
        else:
            words = data.get("message") or ", ".join(f"{k}: {_short(v)}" for k, v in data.items() if k != "agent")
            lines.append(_event(event.time_s, agent, event.kind.replace("_", " "), str(words)))
    end_s = max([float(t) for t in log.time_s[-1:]] + [e.time_s for e in log.events[-1:]] + [0.0])
    for agent, (start_s, what) in running.items():
        lines.append(Line(start_s=start_s, end_s=end_s, agent=agent, what=what, status="unfinished"))
    true: set[str] = set()
    changed: list[tuple[float, str]] = []
    for number, change in enumerate(log.changes):
        true |= {str(f) for f in change.added}
        true -= {str(f) for f in change.removed}
        if number:
            changed += [(change.time_s, f"− {f}") for f in change.removed] + [
                (change.time_s, f"+ {f}") for f in change.added
            ]
    return Story(
        meta=log.meta,
        lines=tuple(sorted(lines, key=lambda x: (x.start_s, x.end_s))),
        end_s=end_s,
        outcome=outcome,
        facts_end=tuple(sorted(true)),
        facts_changed=tuple(changed),
    )


def call_text(data: Mapping[str, Any]) -> str:
    """Write a skill call of an event as ``pick(thing=cup_1)``."""
    args = ", ".join(f"{k}={v}" for k, v in data.get("args", {}).items())
    return f"{data.get('skill', '?')}({args})"


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _line(
    start_s: float, end_s: float, agent: str, what: str, data: Mapping[str, Any], status: str | None = None
) -> Line:
    detail = ": ".join(str(data[k]) for k in ("code", "message") if data.get(k))
    return Line(
        start_s=start_s, end_s=end_s, agent=agent, what=what, status=status or str(data["status"]), detail=detail
    )


def _event(time_s: float, agent: str, what: str, detail: str = "") -> Line:
    return Line(start_s=time_s, end_s=time_s, agent=agent, what=what, status="event", detail=detail)


_SIGNS = {"succeeded": "ok", "failed": "FAILED", "preempted": "preempted", "rejected": "REJECTED", "unfinished": "…"}


def story_lines(story: Story) -> list[str]:
    """Return the story as lines of text for a terminal."""
    meta = story.meta
    mark = " (saw the truth)" if meta.get("privileged") else ""
    text = [
        f"{meta.get('task_id')}  seed {meta.get('seed')}",
        f"planner {meta.get('planner')}{mark}  world {meta.get('world')}",
        f"“{meta.get('instruction')}”",
        "",
    ]
    for line in story.lines:
        sign = _SIGNS.get(line.status, "")
        detail = f"  {line.detail}" if line.detail else ""
        text.append(f"{line.start_s:8.1f} s  {line.agent:<12} {line.what:<48} {sign}{detail}")
    text += ["", f"{story.end_s:8.1f} s  {story.outcome or 'the log ends here'}"]
    return text
