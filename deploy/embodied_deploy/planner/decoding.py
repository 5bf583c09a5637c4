"""From scores to a call: the best one that the grammar of skills allows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from embodied_deploy.planner.vocabulary import Call, Vocabulary

GRAMMAR: dict[str, tuple[str, ...]] = {
    "go_to": ("furniture",),
    "look": ("furniture",),
    "open": ("furniture",),
    "close": ("furniture",),
    "pick": ("things",),
    "place": ("things", "furniture", "relations"),
    "done": (),
}
"""Skill to the lists that its arguments come from."""
RETRIED = frozenset({"unreachable", "blocked", "grasp_failed", "dropped", "slipped", "stuck", "timeout"})
"""Codes of a body's failures: the same call may be worth another try at once. After any other outcome it is not."""
_FIELDS = {"things": "thing", "furniture": "furniture", "relations": "relation"}
_LISTS = ("skills", "things", "furniture", "relations")


def decode(
    words: Vocabulary, scores: Sequence[NDArray[np.floating]], *, refused: Call | None = None
) -> tuple[Call, float]:
    """Return the most likely call and its probability.

    Args:
      words: what the scores stand for.
      scores: of skills, things, furniture and relations, each (n,).
      refused: a call that is not to be said again at once, see :func:`not_again`.

    Raises:
      ValueError: scores of another length, or not finite.
    """
    chances: dict[str, NDArray[np.float64]] = {}
    for name, values in zip(_LISTS, scores, strict=True):
        chances[name] = _softmax(words, name, values)
    best: tuple[Call, float] | None = None
    for index in np.argsort(-chances["skills"], kind="stable"):
        call, chance = _fill(words, words.skills[int(index)], chances, refused)
        chance *= float(chances["skills"][index])
        if best is None or chance > best[1]:
            best = (call, chance)
    assert best is not None
    return best


def not_again(last: Call | None, outcome: str) -> Call | None:
    """Return the last call if saying it again at once is pointless: it was done, or refused for what is not so."""
    return None if last is None or outcome in RETRIED else last


def _fill(
    words: Vocabulary, skill: str, chances: dict[str, NDArray[np.float64]], refused: Call | None
) -> tuple[Call, float]:
    """Return the best arguments of a skill; if that is the refused call, the best with another first argument."""
    given: dict[str, str] = {}
    total = 1.0
    lists = GRAMMAR[skill]
    for name in lists:
        order = np.argsort(-chances[name][1:], kind="stable") + 1  # the first word is 'none'
        given[_FIELDS[name]] = getattr(words, name)[int(order[0])]
        total *= float(chances[name][order[0]])
    call = Call(skill, **given)
    if call != refused:
        return call, total
    if not lists:
        return call, 0.0
    first = lists[0]
    order = np.argsort(-chances[first][1:], kind="stable") + 1
    given[_FIELDS[first]] = getattr(words, first)[int(order[1])]
    return Call(skill, **given), total / max(float(chances[first][order[0]]), 1e-12) * float(chances[first][order[1]])


def _softmax(words: Vocabulary, name: str, scores: NDArray[np.floating]) -> NDArray[np.float64]:
    expected = len(getattr(words, name))
    if scores.shape != (expected,) or not np.isfinite(scores).all():
        raise ValueError(f"Scores of {name} must be {expected} finite numbers, got shape {scores.shape}.")
    e = np.exp(np.asarray(scores, dtype=np.float64) - scores.max())
    return e / e.sum()
