"""The teacher and the stages that the compact planner is trained on."""

from __future__ import annotations

import numpy as np
import pytest

from embodied.agents.episode import Episode, EpisodeRequest
from embodied.agents.recorder import Recorder
from embodied.catalog import TASKS
from embodied.planners.contract import Plan
from embodied.skills.contract import SkillCall
from embodied.studies.edge_planner import CONTROL_TARGETS, figures
from embodied.tasks.household.stage import AGENT
from embodied.train.planner.collect import collect, collect_episode, demonstrate, random_call
from embodied.train.planner.failures import failure_kind
from embodied.train.planner.kinematic import PLAIN, VARIED, KinematicStage
from embodied.train.planner.paired import Played
from embodied.train.planner.symbolic import SymbolicStage
from embodied.train.planner.teacher import TOUR, Done, Move, next_call
from embodied_scenes.builders import compile_scene
from embodied_scenes.household import flat
from embodied_scenes.household.variants import flat_variant

GO, LOOK, OPEN, CLOSE, PICK, DONE = "go_to", "look", "open", "close", "pick", "done"
CUP = Move("cup_1", "in", "dish_cabinet")


def call(skill, name=""):
    return SkillCall.of(skill, **({} if not name else {"thing" if skill == PICK else "target": name}))


def past(*calls):
    return [Done(c, "") if isinstance(c, SkillCall) else Done(*c) for c in calls]


def test_opens_where_the_thing_goes_before_it_searches():
    assert next_call([CUP], [], []) == call(GO, "dish_cabinet")
    assert next_call([CUP], past(call(GO, "dish_cabinet")), []) == call(OPEN, "dish_cabinet")


def test_takes_what_it_has_seen_and_nothing_else():
    ready = past(call(GO, "dish_cabinet"), call(OPEN, "dish_cabinet"))
    assert next_call([CUP], ready, ["cup_1"]) == call(PICK, "cup_1")
    assert next_call([CUP], ready, []).skill in (GO, LOOK)


def test_closes_what_it_opened_and_is_done():
    place = SkillCall.of("place", thing="cup_1", target="dish_cabinet", relation="in")
    ready = past(call(GO, "dish_cabinet"), call(OPEN, "dish_cabinet"), call(PICK, "cup_1"), place)
    assert next_call([CUP], ready, ["cup_1"]) == call(GO, "dish_cabinet")  # only go_to says where one stands
    ready += past(call(GO, "dish_cabinet"))
    assert next_call([CUP], ready, ["cup_1"]) == call(CLOSE, "dish_cabinet")
    assert next_call([CUP], [*ready, *past(call(CLOSE, "dish_cabinet"))], ["cup_1"]) == call(DONE)


def test_puts_a_thing_aside_when_its_place_is_shut():
    held = past(call(PICK, "cup_1"))
    aside = next_call([CUP], held, ["cup_1"])
    assert (aside.skill, aside.arg("target")) == ("place", "counter")
    assert next_call([CUP], [*held, Done(aside, "")], ["cup_1"]) == call(GO, "dish_cabinet")


def test_takes_a_thing_again_that_was_put_in_a_wrong_place():
    wrong = SkillCall.of("place", thing="cup_1", target="sink", relation="on")
    ready = past(call(GO, "dish_cabinet"), call(OPEN, "dish_cabinet"), call(PICK, "cup_1"), wrong)
    assert next_call([CUP], ready, ["cup_1"]) == call(PICK, "cup_1")


def test_gives_up_a_call_that_keeps_failing():
    ready = past(call(GO, "dish_cabinet"), call(OPEN, "dish_cabinet"))
    failing = [Done(call(PICK, "cup_1"), "grasp_failed")] * 3
    assert next_call([CUP], [*ready, *failing], ["cup_1"]) != call(PICK, "cup_1")


def test_an_endless_search_ends():
    done, steps = [], 0
    while (answer := next_call([CUP], done, [])).skill != DONE:
        done.append(Done(answer, ""))
        steps += 1
        assert steps < 5 * len(TOUR)
    assert next_call([CUP], done, []) == call(DONE)


def test_the_teacher_solves_nearly_all_symbolic_tasks():
    solved = 0
    for seed in range(60):
        stage = SymbolicStage(seed)
        demonstrate(stage, stage.observe, lambda answer: answer, 60)
        solved += stage.succeeded()
    assert solved >= 54


def test_the_teacher_recovers_from_a_meddler():
    solved = 0
    for seed in range(40):
        stage, rng = SymbolicStage(seed), np.random.default_rng(seed)

        def meddled(answer, stage=stage, rng=rng):
            return random_call(stage, rng) if rng.random() < 0.2 else answer

        demonstrate(stage, stage.observe, meddled, 80)
        solved += stage.succeeded()
    assert solved >= 32


def test_the_teacher_solves_kinematic_tasks_by_what_images_show():
    for seed, looks in ((30, PLAIN), (35, VARIED)):
        stage = KinematicStage(seed, looks, with_failures=False)
        demonstrate(stage, lambda stage=stage: stage.observe() and None, lambda answer: answer, 60)
        assert stage.succeeded()


def test_variants_of_the_flat_keep_its_names_and_compile():
    plain = {e.name for e in flat().entities}
    for seed in range(4):
        one, again = (flat_variant(np.random.default_rng(seed)) for _ in range(2))
        assert one == again
        assert {e.name for e in one.entities} == plain
        assert one != flat_variant(np.random.default_rng(seed + 100))
        compile_scene(one)  # refuses furniture that overlaps


def test_stages_know_only_what_was_shown():
    stage = SymbolicStage(0, with_failures=False)
    thing = stage.moves[0].thing
    assert stage.apply(call(PICK, thing)) == "not_found"
    stage.known.add(thing)
    stage.places[thing] = ("in", "fridge")
    assert stage.apply(call(PICK, thing)) == "precondition"
    stage.doors.add("fridge")
    assert stage.apply(call(PICK, thing)) == ""
    assert stage.apply(call(OPEN, "pantry")) == "precondition"


class _Once:
    """Makes one call and keeps the image of the decision after it."""

    privileged = False

    def __init__(self, first):
        self.first, self.images = first, []

    def reset(self, agent, seed):
        pass

    def act(self, view):
        self.images.append(view.images()[f"{AGENT}/head_cam"].copy())
        return Plan(calls=(self.first if len(self.images) == 1 else SkillCall.of("done"),))


def test_images_of_the_stage_are_those_of_a_physics_episode():
    seed, target = 11, "counter"
    task = TASKS.get("household/put_away@1").make(seed)
    planner = _Once(call(GO, target))
    recorder = Recorder(task, EpisodeRequest(task_id=task.id, seed=seed), False, "test")
    Episode(task, {AGENT: planner}, "mujoco", seed, recorder).run()
    recorder.close()
    stage = KinematicStage(seed, PLAIN, with_failures=False)
    first = stage.observe().rgb.astype(int)
    assert np.abs(first - planner.images[0]).mean() < 0.5  # physics has settled by one period, nothing else differs
    assert stage.apply(call(GO, target)) == ""
    apart = np.abs(stage.observe().rgb.astype(int) - planner.images[1]).mean()
    assert apart < 0.5 * np.abs(planner.images[0].astype(int) - planner.images[1]).mean()


def test_episodes_are_recorded_alike_twice(tmp_path):
    one, two = collect_episode(5, max_decisions=4), collect_episode(5, max_decisions=4)
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])
    assert len(one["images"]) == len(one["answers"]) == len(one["lasts"]) <= 4
    shown = one["pixels"] > 200
    marked = np.array([[(c >> k & 1).any() for k in range(shown.shape[1])] for c in one["cells"]])
    assert (marked | ~shown).all()


def test_finished_files_are_kept(tmp_path):
    collect(tmp_path, range(5, 6), per_file=1)
    target = tmp_path / "5.npz"
    stamp = target.stat().st_mtime_ns
    collect(tmp_path, range(5, 6), per_file=1)
    assert target.stat().st_mtime_ns == stamp
    assert not list(tmp_path.glob("*.torn"))


@pytest.mark.parametrize(
    ("done", "kind"),
    [
        ([(call(PICK, "mug_1"), "")], "wrong thing"),
        (
            [(call(PICK, "cup_1"), ""), (SkillCall.of("place", thing="cup_1", target="sink", relation="on"), "")],
            "wrong place",
        ),
        ([(call(OPEN, "dish_cabinet"), "stuck")] * 3, "skill failed"),
        ([(call(GO, "counter"), "")], "not found"),
        ([(call(PICK, "cup_1"), "")], "budget"),
        (
            [
                (call(GO, "dish_cabinet"), ""),
                (call(OPEN, "dish_cabinet"), ""),
                (call(PICK, "cup_1"), ""),
                (SkillCall.of("place", thing="cup_1", target="dish_cabinet", relation="in"), ""),
            ],
            "left open",
        ),
    ],
)
def test_failures_have_a_kind(done, kind):
    assert failure_kind([CUP], [Done(*d) for d in done], success=False, out_of_budget=True) == kind
    assert failure_kind([CUP], [Done(*d) for d in done], success=True, out_of_budget=True) == "solved"


def test_figures_say_where_the_planner_fails():
    def played(seed, success, kind, things=1):
        return Played(
            planner="compact",
            seed=seed,
            things=things,
            success=success,
            kind=kind,
            decisions=5,
            sim_time_s=9.0,
            agreed=True,
        )

    int8 = [played(0, True, "solved"), played(1, False, "not found", 2), played(2, True, "solved", 2)]
    fp32 = [played(0, True, "solved"), played(1, True, "solved", 2), played(2, True, "solved", 2)]
    controls = {name: [played(0, name == "oracle", "budget")] for name in CONTROL_TARGETS}
    found = {f.name: f for f in figures(int8, fp32, controls)}
    assert found["success from images, int8"].value == pytest.approx(2 / 3)
    assert found["success from images, int8"].note == "1 not found"
    assert found["of these with 2 to bring"].value == 0.5
    assert found["success, int8 less fp32"].value == pytest.approx(-1 / 3)
    assert found["success, black images"].holds
    assert found["size of the int8 package"].holds
