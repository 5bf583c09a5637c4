"""lift and lower: the deck takes a carrier off the floor and puts it down again."""

from __future__ import annotations

from collections.abc import Iterable

from embodied.graph.facts import Fact, Graph, fact
from embodied.skills.contract import (
    SUCCESS,
    Outcome,
    Parameter,
    Skill,
    SkillCall,
    SkillContext,
    SkillRun,
    Unmet,
    failed,
)
from embodied.skills.warehouse.common import KINDS, Ended, is_under, liftables, load_of, send_deck
from embodied.skills.warehouse.floor import carrier_above, floor_of, lifted_by

DECK_UP_M = 0.10
_LIFTED_M = 0.08  # the deck meets a tray at 0.06 m: higher than this the legs are off the floor
_LEAST_LOAD_KG = 3.0
_SETTLE_S = 0.5
_STROKE_S = 6.0  # 3.4 s at the deck's speed, with reserve


class Lift(Skill):
    """Lift the carrier above the robot."""

    name = "lift"
    summary = "Lift the carrier that the robot stands under."
    parameters = (Parameter(name="thing", kind="object", summary="the carrier above the robot"),)
    robot_kinds = KINDS
    failure_codes = ("nothing_to_lift", "wrong_thing", "overloaded")
    timeout_s = 30.0

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Yield every carrier."""
        for name in liftables(graph):
            yield SkillCall.of(self.name, thing=name)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """The robot is under the carrier, with nothing on its deck."""
        thing, load = str(call.arg("thing")), load_of(graph, agent)
        if thing not in liftables(graph):
            return (Unmet(message=f"{thing} is no carrier that a robot can lift"),)
        found = []
        if load:
            found.append(Unmet(message=f"{agent} carries {load} already"))
        if not is_under(graph, agent, thing):
            missing = fact("at", agent, thing)
            found.append(Unmet(message=f"{agent} is not under {thing}; drive_to {thing} first", missing=missing))
        for other in graph.find("lifted", None, thing):
            if other.args[0] != agent:
                found.append(Unmet(message=f"{other.args[0]} carries {thing}"))
        return tuple(found)

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """The robot carries it."""
        return frozenset({fact("lifted", agent, str(call.arg("thing")))}), frozenset()

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Check what is above the robot, then raise the deck."""
        thing, above = str(call.arg("thing")), carrier_above(ctx)
        if not above:
            return Ended(failed("nothing_to_lift", f"No carrier stands above {ctx.agent}.", thing=thing))
        if above != thing:
            return Ended(failed("wrong_thing", f"{above} stands above {ctx.agent}, not {thing}.", above=above))
        return _LiftRun(ctx, thing)


class _LiftRun:
    def __init__(self, ctx: SkillContext, thing: str) -> None:
        self._thing = thing
        self._began_s = ctx.time_s
        self._up_s: float | None = None
        self._failure: Outcome | None = None

    def tick(self, ctx: SkillContext) -> Outcome | None:
        """Raise the deck; succeed when it is up with a load on it."""
        state = ctx.robot.read()
        deck_m, load_kg = state.signals["deck_m"], state.signals["deck_load_kg"]
        if self._failure is not None:
            send_deck(ctx, 0.0)
            return self._failure if deck_m < 0.005 else None
        send_deck(ctx, DECK_UP_M)
        is_still = abs(float(state.joint_vel[0])) < 0.002
        if deck_m > _LIFTED_M and is_still:
            self._up_s = ctx.time_s if self._up_s is None else self._up_s
            if ctx.time_s - self._up_s >= _SETTLE_S:
                return self._judge(ctx, load_kg)
        elif ctx.time_s - self._began_s > _STROKE_S:
            self._failure = failed(
                "overloaded",
                f"{self._thing} does not rise: {load_kg:.0f} kg on the deck at {deck_m * 1000:.0f} mm.",
                load_kg=load_kg,
            )
        return None

    def cancel(self, ctx: SkillContext) -> None:
        """Hold the deck where it is."""
        ctx.robot.stop()

    def _judge(self, ctx: SkillContext, load_kg: float) -> Outcome | None:
        if load_kg < _LEAST_LOAD_KG:
            message = f"The deck is up and carries only {load_kg:.1f} kg."
            self._failure = failed("nothing_to_lift", message, load_kg=load_kg)
            return None
        ctx.set_state(ctx.agent, "lifted", self._thing)
        floor_of(ctx).lifted(ctx.view, self._thing)
        return SUCCESS


class Lower(Skill):
    """Put the carried carrier down."""

    name = "lower"
    summary = "Lower the carrier that the robot carries onto the floor below."
    parameters = (Parameter(name="thing", kind="object", summary="the carrier it carries", required=False),)
    robot_kinds = KINDS
    failure_codes = ("nothing_lifted", "stuck")
    timeout_s = 30.0

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Yield every carrier."""
        for name in liftables(graph):
            yield SkillCall.of(self.name, thing=name)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """The robot carries something, and what was named if something was."""
        load, thing = load_of(graph, agent), str(call.arg("thing", ""))
        if not load or (thing and thing != load):
            missing = fact("lifted", agent, thing) if thing else None
            return (Unmet(message=f"{agent} carries {load or 'nothing'}, not {thing or 'a carrier'}", missing=missing),)
        return ()

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """It stands where the robot is."""
        thing = str(call.arg("thing", "")) or load_of(graph, agent)
        return frozenset(), frozenset({fact("lifted", agent, thing)} if thing else ())

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Lower the deck."""
        thing = lifted_by(ctx)
        if not thing:
            return Ended(failed("nothing_lifted", f"{ctx.agent} carries nothing."))
        return _LowerRun(ctx, thing)


class _LowerRun:
    def __init__(self, ctx: SkillContext, thing: str) -> None:
        self._thing = thing
        self._began_s = ctx.time_s

    def tick(self, ctx: SkillContext) -> Outcome | None:
        """Lower the deck; succeed when it is down and carries nothing."""
        state = ctx.robot.read()
        send_deck(ctx, 0.0)
        if state.signals["deck_m"] < 0.005 and state.signals["deck_load_kg"] < _LEAST_LOAD_KG:
            ctx.set_state(ctx.agent, "lifted", "")
            x_m, y_m = (float(v) for v in state.base_pos_world_m[:2])
            floor_of(ctx).lowered(ctx.view, self._thing, x_m, y_m)
            return SUCCESS
        if ctx.time_s - self._began_s > _STROKE_S:
            return failed("stuck", f"The deck of {ctx.agent} does not come down.", deck_m=state.signals["deck_m"])
        return None

    def cancel(self, ctx: SkillContext) -> None:
        """Hold the deck where it is."""
        ctx.robot.stop()
