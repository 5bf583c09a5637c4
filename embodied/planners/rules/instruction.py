"""From an instruction in plain English to a goal, by keywords and the names of what is in the scene."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from embodied.graph.facts import Fact, Graph, Node, fact
from embodied.tasks.goal import AllOf, Goal, Holds, Latched, Not, any_of

_CLAUSE = re.compile(r"[.,;:!?]|\band then\b|\bthen\b|\band\b|\bafterwards\b|\bfinally\b")
_VERBS: tuple[tuple[str, str], ...] = (
    (r"\b(turn|switch) (\w+ )*on\b|\bswitch on\b", "on"),
    (r"\b(turn|switch) (\w+ )*off\b", "off"),
    (r"\btake off\b|\blift off\b", "take_off"),
    (r"\blower\b|\bput (it|them) down\b", "lower"),
    (r"\b(put|place|bring|move|store|stow|set|return|carry|deliver|transport|take|tidy|stack|drop)\b", "put"),
    (r"\b(close|shut)\b", "close"),
    (r"\bopen\b", "open"),
    (r"\b(inspect|photograph|examine|survey|check)\b", "inspect"),
    (r"\bland\b", "land"),
    (r"\bscan\b", "scan"),
    (r"\b(charge|recharge|dock)\b", "charge"),
    (r"\b(pick up|grab|hold|fetch|get)\b", "hold"),
    (r"\b(go|drive|fly|visit|come|navigate|pass|move)\b", "go"),
)
_SPLIT = re.compile(r"\b(inside|into|in|onto|on top of|on|to|at|next to|beside|under|from)\b")
_ALL = re.compile(r"\b(all|every|each|both)\b")


# "Close what you open", "leave all doors closed", "shut every door": no door is named, all are meant.
_CLOSE_UP = re.compile(
    r"close what you open|doors?( and drawers?)? closed|(shut|close) (all|every|the) (doors?|drawers?|furniture)"
)


@dataclass(frozen=True, slots=True)
class Mention:
    """Things named by one phrase, and where in the text it begins."""

    names: tuple[str, ...]
    start: int


def read_instruction(text: str, graph: Graph, agent: str) -> Goal | None:
    """Read a goal from an instruction, or return None if no clause was understood.

    Args:
      text: the instruction.
      graph: what the agent knows; only its nodes and properties are looked at.
      agent: who is to act.
    """
    parts: list[Goal] = []
    last: list[Mention] = []
    verb = ""
    for clause in _CLAUSE.split(text.lower()):
        if not clause or not clause.strip():
            continue
        verb = next((name for pattern, name in _VERBS if re.search(pattern, clause)), verb)
        mentions = find_mentions(clause, graph)
        if not mentions and re.search(r"\b(it|them|this|these)\b", clause):
            mentions = _antecedent(verb, last, graph)
        elif mentions and re.search(r"\b(it|them)\b", clause) and verb == "put" and last:
            mentions = [Mention(last[0].names, 0), *mentions]
        parts.extend(_clause(verb, clause, mentions, graph, agent))
        last = mentions or last
    if parts and _CLOSE_UP.search(text.lower()):
        doors = sorted(n for n, node in graph.nodes.items() if "openable" in node.properties)
        parts.extend(Not(Holds(fact("open", n))) for n in doors)
    return AllOf(tuple(dict.fromkeys(parts))) if parts else None


def _antecedent(verb: str, last: list[Mention], graph: Graph) -> list[Mention]:
    """What "it" stands for: the last thing with a door for opening and closing, else what was named first."""
    if verb in ("open", "close"):
        doors = [m for m in last if any("openable" in graph.nodes[n].properties for n in m.names)]
        return doors[-1:] or last[-1:]
    return last[:1]


def find_mentions(clause: str, graph: Graph) -> list[Mention]:
    """Find the things a clause names: by their own name first, then by category, singular or plural."""
    found: list[Mention] = []
    taken: list[tuple[int, int]] = []
    for phrase, names in sorted(_phrases(graph.nodes).items(), key=lambda item: (-len(item[0]), item[0])):
        for match in re.finditer(rf"\b{re.escape(phrase)}(s|es)?\b", clause):
            if any(a < match.end() and match.start() < b for a, b in taken):
                continue
            taken.append(match.span())
            before = clause[max(0, match.start() - 20) : match.start()]
            many = bool(match.group(1)) or bool(_ALL.search(before))
            found.append(Mention(tuple(names) if many else tuple(names[:1]), match.start()))
    return sorted(found, key=lambda m: m.start)


def _phrases(nodes: Mapping[str, Node]) -> dict[str, list[str]]:
    phrases: dict[str, list[str]] = {}
    for name in sorted(nodes):
        node = nodes[name]
        words = {node.category.lower().replace("_", " ")} if node.kind != "agent" else set()
        for phrase in words | {name.lower(), name.lower().replace("_", " ")}:
            phrases.setdefault(phrase, []).append(name)
    return phrases


def _clause(verb: str, clause: str, mentions: list[Mention], graph: Graph, agent: str) -> list[Goal]:
    named = [n for m in mentions for n in m.names]
    if verb == "put":
        return _put(clause, mentions, graph)
    if verb in ("take_off", "charge"):
        return [Latched(Holds(fact("flying", agent)))] if verb == "take_off" else [Holds(fact("charged", agent))]
    if verb == "land":
        return [*[Holds(fact("at", agent, n)) for n in named[:1]], Not(Holds(fact("flying", agent)))]
    if verb in ("close", "off"):
        return [Not(Holds(fact("open" if verb == "close" else "on", n))) for n in named]
    if verb == "lower":
        return [Not(Holds(fact("lifted", agent, n))) for n in named if graph.nodes[n].kind == "object"]
    if verb in ("open", "on", "inspect", "scan"):
        word = {"open": "open", "on": "on", "inspect": "inspected", "scan": "scanned"}[verb]
        return [Holds(fact(word, n)) for n in named]
    if verb == "hold":
        return [Holds(fact("holding", agent, n)) for n in named[:1]]
    return [Latched(Holds(fact("at", agent, n))) for n in named] if verb == "go" else []


def _put(clause: str, mentions: list[Mention], graph: Graph) -> list[Goal]:
    words = [m for m in _SPLIT.finditer(clause) if m.group(1) != "from"]
    if len(mentions) < 2 or not words:
        return []
    target_at = mentions[-1]
    before = [w for w in words if w.start() < target_at.start]
    word = before[-1].group(1) if before else words[-1].group(1)
    things = [n for m in mentions[:-1] for n in m.names if graph.nodes[n].kind == "object"]
    return [_related(thing, target_at.names, word, graph) for thing in things]


def _related(thing: str, targets: tuple[str, ...], word: str, graph: Graph) -> Goal:
    options = [Holds(_relation(thing, t, word, graph.nodes[t])) for t in targets if t != thing]
    return options[0] if len(options) == 1 else any_of(*options)


def _relation(thing: str, target: str, word: str, node: Node) -> Fact:
    if node.kind == "room":
        return fact("inroom", thing, target)
    if node.kind == "place":
        return fact("at", thing, target)
    if word in ("next to", "beside"):
        return fact("nextto", thing, target)
    if word == "under":
        return fact("under", thing, target)
    if word in ("inside", "into", "in"):
        return fact("inside", thing, target)
    if word in ("on", "onto", "on top of"):
        return fact("ontop", thing, target)
    return fact("inside" if "container" in node.properties else "ontop", thing, target)
