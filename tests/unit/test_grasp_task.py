"""The grasping scenes, the teacher and what the policy is given; no torch is loaded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embodied.robots.mobile_manipulator.kinematics import GRIPPER_MAX_M, torso_arm_chain
from embodied.robots.mobile_manipulator.spec import MOBILE_MANIPULATOR
from embodied.train.grasp import teacher
from embodied.train.grasp.demos import collect
from embodied.train.grasp.promise import grasp_contract
from embodied.train.grasp.scene import PATCH_CENTER_X_M, PATCH_HALF_M, ROBOT, THING, grasp_scene, hand_down
from embodied.train.grasp.task import CAMERA, IMAGE_PX, STEPS, GraspEpisode, proprioception
from embodied.train.grasp.teacher import Goal, Hand
from embodied_deploy.errors import ObservationError
from embodied_deploy.package.contract import Training
from embodied_deploy.policy.channels import Assembler
from embodied_deploy.policy.sample import Sample

SEEDS = range(700, 706)


def _run(seed: int) -> GraspEpisode:
    episode = GraspEpisode(grasp_scene(seed))
    while not episode.is_over:
        episode.step(teacher.label(episode)[0])
    return episode


@pytest.mark.parametrize("seed", SEEDS)
def test_the_teacher_lifts_and_holds(seed: int) -> None:
    episode = _run(seed)
    assert episode.outcome == "lifted"
    assert episode.lift_m >= 0.05
    assert episode.steps < STEPS / 2


def test_doing_nothing_lifts_nothing() -> None:
    episode = GraspEpisode(grasp_scene(SEEDS[0]))
    hold = np.full(14, np.nan)
    while not episode.is_over:
        episode.step(hold)
    assert episode.steps == STEPS
    assert (episode.outcome, episode.is_success) == ("missed", False)


def test_a_thing_that_is_pushed_over_ends_the_episode() -> None:
    episode = GraspEpisode(grasp_scene(SEEDS[1]))
    body = episode.world.scene.model.body(THING)
    start = int(episode.world.scene.model.jnt_qposadr[int(body.jntadr[0])])
    episode.world.qpos[0, start + 3 : start + 7] = [np.cos(np.pi / 4), np.sin(np.pi / 4), 0.0, 0.0]
    episode.world.forward()
    assert episode.is_over
    assert episode.outcome == "toppled"


def test_a_seed_is_a_scene() -> None:
    one, two, other = (GraspEpisode(grasp_scene(s)) for s in (11, 11, 12))
    assert one.scene.spec == two.scene.spec
    np.testing.assert_array_equal(one.image(), two.image())
    assert one.scene.spec != other.scene.spec
    assert not np.array_equal(one.image(), other.image())


def test_scenes_vary_in_all_that_they_promise() -> None:
    scenes = [grasp_scene(s) for s in range(60)]
    things = [next(e for e in s.spec.entities if e.name == THING) for s in scenes]
    assert {t.model for t in things} == {"round_thing", "block_thing", "can", "cup", "candle"}
    offsets = np.array([t.pos_m[:2] for t in things]) - [PATCH_CENTER_X_M, 0.0]
    assert (np.abs(offsets) <= PATCH_HALF_M).all()
    assert (np.ptp(offsets, axis=0) > 1.5 * np.array(PATCH_HALF_M)).all()
    assert np.ptp([s.table_m for s in scenes]) > 0.15
    assert {len(s.spec.entities) for s in scenes} == {2, 3}
    for values in (
        np.stack([s.base_xyyaw for s in scenes]),
        np.stack([s.arm_rad for s in scenes]),
        np.stack([s.gain_rgb for s in scenes]),
    ):
        assert (values.std(axis=0) > 1e-3).all()
    assert all(2 * s.thing_half_m[1] < GRIPPER_MAX_M - 0.03 for s in scenes)


@pytest.mark.parametrize("seed", range(20, 32))
def test_the_camera_sees_the_thing_at_the_start(seed: int) -> None:
    episode = GraspEpisode(grasp_scene(seed))
    model = episode.world.scene.model
    body = int(model.body(THING).id)
    geoms = [g for g in range(model.ngeom) if model.geom_bodyid[g] == body]
    assert np.isin(episode.camera.render().segmentation, geoms).sum() >= 30


def test_targets_of_the_teacher_reach_the_points_they_mean() -> None:
    base, torso = np.array([0.01, -0.02, 0.04]), 0.2
    points = np.array([[0.6, 0.1, 0.85], [0.7, -0.1, 0.9], [0.55, 0.0, 1.0]])
    yaws = np.array([0.3, -0.5, 0.0])
    joints = teacher.joint_targets(points, yaws, base, torso)
    pos, rot = torso_arm_chain().tool(np.hstack([np.full((3, 1), torso), joints]))
    cos, sin = np.cos(base[2]), np.sin(base[2])
    turn = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(pos @ turn.T + [base[0], base[1], 0.0], points, atol=1e-9)
    np.testing.assert_allclose(turn @ rot, hand_down(yaws), atol=1e-9)


GOAL = Goal(pos_m=np.array([0.6, 0.0, 0.80]), yaw_rad=0.2, top_m=0.84, width_m=0.06, table_m=0.76)
_OFF = st.floats(-0.2, 0.2)


@given(_OFF, _OFF, st.floats(-0.03, 0.3), st.floats(-1.0, 1.0), st.floats(0.0, 0.11), st.floats(-10.0, 40.0))
def test_the_teacher_moves_in_small_steps_and_not_below_its_grasp(
    x: float, y: float, z: float, yaw: float, width: float, force: float
) -> None:
    hand = Hand(
        pos_m=GOAL.pos_m + np.array([x, y, z]),
        yaw_rad=yaw,
        width_m=width,
        force_n=force,
        is_closing=width < teacher.OPEN_M - 0.008,
    )
    point, heading, _ = teacher.advise(hand, GOAL)
    assert np.linalg.norm(point - hand.pos_m) <= teacher.SPEED_MPS * teacher.DT_S + 1e-9
    assert point[2] >= min(hand.pos_m[2], GOAL.pos_m[2]) - 0.01 - 1e-9
    assert abs(heading - hand.yaw_rad) <= teacher.TURN_RADPS * teacher.DT_S + 1e-9


def test_the_teacher_begins_again_after_closing_on_nothing() -> None:
    hand = Hand(pos_m=GOAL.pos_m + np.array([0.0, 0.0, 0.02]), yaw_rad=0.2, width_m=0.0, force_n=36.0, is_closing=True)
    points, _, closes = teacher.chunk(hand, GOAL)
    assert not closes[0]
    assert points[0, 2] > hand.pos_m[2]


def test_a_chunk_closes_before_it_lifts() -> None:
    hand = Hand(pos_m=GOAL.pos_m, yaw_rad=0.2, width_m=teacher.OPEN_M, force_n=0.0, is_closing=False)
    points, _, closes = teacher.chunk(hand, GOAL, horizon=20)
    assert closes.all()
    lifting = points[:, 2] > GOAL.pos_m[2] + 0.01
    assert not lifting[:3].any()
    assert lifting[-1]


def test_demonstrations_hold_recoveries_and_are_reproducible() -> None:
    one, two = collect(SEEDS[:3]), collect(SEEDS[:3])
    for name in ("images", "proprio", "chunks", "applied", "episodes", "successes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert np.abs(one.applied - one.chunks[:, 0])[:, :7].max() > 0.005  # disturbed, labels are not
    assert set(np.unique(one.episodes)) == set(SEEDS[:3])


def _contract() -> tuple[Assembler, dict[str, np.ndarray]]:
    contract = grasp_contract(Training(recipe="reach-and-grasp@1", seed=0, commit="0" * 40))
    spec = MOBILE_MANIPULATOR
    arrays = {t.name: np.zeros((1, *t.shape), dtype=t.dtype) for t in contract.inputs}
    return Assembler(contract, spec.action_spec, spec.observation_spec), arrays


def test_the_runtime_assembles_what_training_used() -> None:
    episode = GraspEpisode(grasp_scene(SEEDS[2]))
    for action in teacher.label(episode)[:4]:
        episode.step(action)
    assembler, arrays = _contract()
    assembler.fill(episode.observe(), arrays)
    np.testing.assert_array_equal(arrays["proprio"][0], proprioception(episode.robot.read()).astype(np.float32))
    np.testing.assert_array_equal(arrays["image"][0], episode.image())


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((IMAGE_PX, IMAGE_PX), dtype=np.uint8),
        np.zeros((32, 32, 3), dtype=np.uint8),
        np.zeros((3, IMAGE_PX, IMAGE_PX), dtype=np.uint8),
        np.zeros((IMAGE_PX, IMAGE_PX, 3), dtype=np.float32),
        None,
    ],
)
def test_a_bad_image_is_refused(image: np.ndarray | None) -> None:
    episode = GraspEpisode(grasp_scene(SEEDS[2]))
    state = episode.robot.read()
    images = {} if image is None else {CAMERA: image}
    assembler, arrays = _contract()
    with pytest.raises(ObservationError, match=CAMERA):
        assembler.fill(Sample(state=state, last_action=np.zeros(14), images=images), arrays)


def test_the_policy_drives_arm_and_gripper_in_the_robots_order() -> None:
    contract = grasp_contract(Training(recipe="reach-and-grasp@1", seed=0, commit="0" * 40))
    action = contract.action
    assert action is not None
    spec = MOBILE_MANIPULATOR.action_spec
    assert [e.name for e in action.entries] == [*spec.names[spec.groups["arm"]], *spec.names[spec.groups["gripper"]]]
    index = [spec.names.index(e.name) for e in action.entries]
    np.testing.assert_array_equal([e.low for e in action.entries], spec.low[index])
    np.testing.assert_array_equal([e.high for e in action.entries], spec.high[index])
    assert contract.chunk is not None
    assert contract.chunk.execute <= contract.chunk.horizon == action.shape[0]


def test_the_base_stands_whatever_the_action_says() -> None:
    episode = GraspEpisode(grasp_scene(SEEDS[3]))
    before = episode.robot.read().base_pos_world_m
    action = np.full(14, np.nan)
    action[0] = 0.8
    for _ in range(3):
        episode.step(action)
    np.testing.assert_allclose(episode.robot.read().base_pos_world_m, before, atol=1e-3)
    assert episode.robot.name == ROBOT
