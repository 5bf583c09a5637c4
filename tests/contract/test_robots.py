"""Every registered robot keeps the robot contract."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from embodied.catalog import ROBOTS
from embodied.errors import RobotError
from embodied.robots.base import make_robot, robot_start
from embodied.worlds.contract import Start
from embodied.worlds.mujoco import MujocoWorld
from embodied_controllers.contract import Command
from embodied_deploy.robot import Robot
from embodied_scenes.builders import RobotMount, compile_scene
from embodied_scenes.spec import RoomSpec, SceneSpec

PRESETS = {"quadrotor": "flight", "amr": "fleet"}


def make(robot_id: str):
    spec = ROBOTS.get(robot_id)
    scene = SceneSpec(
        id="test/empty@1",
        preset=PRESETS.get(spec.kind, "manipulation"),
        rooms=(RoomSpec(name="hall", category="hall", rect_m=(-5, -5, 5, 5)),),
    )
    world = MujocoWorld(compile_scene(scene, [RobotMount(name="bot", kind=spec.kind, mjcf=spec.mjcf)]))
    pose = (0.5, -0.25, spec.height_m, 1.0, 0.0, 0.0, 0.0)
    world.reset(0, Start(poses={"bot": pose}, joint_pos=robot_start("bot", spec)))
    robot = make_robot(world, "bot", spec)
    robot.reset()
    return spec, world, robot


@pytest.fixture(params=ROBOTS.names())
def bot(request):
    return make(request.param)


def run(world, robot, command, periods: int) -> None:
    for _ in range(periods):
        robot.send(command)
        world.step(round(robot.dt_ctrl_s / world.dt_sim_s))


def middle(spec) -> np.ndarray:
    low, high = np.maximum(spec.action_spec.low, -1.0), np.minimum(spec.action_spec.high, 1.0)
    return (low + 3 * high) / 4


def test_specs_agree_in_size_and_order(bot):
    spec, _, robot = bot
    assert isinstance(robot, Robot)
    action, seen = spec.action_spec, spec.observation_spec
    for array in (action.low, action.high, action.safe):
        assert array.shape == (len(action.names),)
    assert np.all(action.low <= action.high)
    for array in (seen.joint_low, seen.joint_high, seen.joint_vel_max):
        assert array.shape == (len(seen.joint_names),)
    covered = [i for group in action.groups.values() for i in range(*group.indices(action.size))]
    assert sorted(covered) == list(range(action.size))
    assert len(set(action.names)) == action.size
    assert all(n.rsplit("_", 1)[-1] in ("mps", "radps", "m", "rad", "n", "nm", "ratio") for n in action.names)


def test_state_fits_the_spec_and_shares_no_memory(bot):
    spec, world, robot = bot
    first = robot.read()
    kept = first.joint_pos.copy(), first.base_pos_world_m.copy()
    assert first.joint_pos.shape == first.joint_vel.shape == (len(spec.observation_spec.joint_names),)
    assert set(first.signals) == set(spec.observation_spec.signals)
    run(world, robot, Command(values=middle(spec)), 20)
    np.testing.assert_array_equal(first.joint_pos, kept[0])
    np.testing.assert_array_equal(first.base_pos_world_m, kept[1])
    second = robot.read()
    assert second.time_s > first.time_s
    for values in (second.joint_pos, second.joint_vel, second.base_pos_world_m, second.base_quat_wxyz):
        assert np.all(np.isfinite(values))
    assert np.linalg.norm(second.base_quat_wxyz) == pytest.approx(1.0, abs=1e-6)
    changed = np.concatenate([second.joint_pos, second.base_pos_world_m, second.base_quat_wxyz])
    before = np.concatenate([first.joint_pos, first.base_pos_world_m, first.base_quat_wxyz])
    assert not np.allclose(changed, before), "a command must change something"


def test_starts_where_it_was_put_in_its_home_posture(bot):
    spec, world, robot = bot
    np.testing.assert_allclose(robot.read().base_pos_world_m[:2], [0.5, -0.25], atol=1e-6)
    for joint, value in spec.home.items():
        assert world.qpos[0, int(world.scene.model.joint(f"bot/{joint}").qposadr[0])] == pytest.approx(value)


def test_clips_holds_and_refuses(bot):
    spec, _, robot = bot
    applied = robot.send(Command(values=np.full(spec.action_spec.size, 1e9))).values
    finite = np.isfinite(spec.action_spec.high)
    np.testing.assert_allclose(applied[finite], spec.action_spec.high[finite])
    held = robot.send(Command(values=np.full(spec.action_spec.size, np.nan))).values
    np.testing.assert_array_equal(held, applied)
    assert robot.held_entries == spec.action_spec.size
    for bad in (np.zeros(spec.action_spec.size + 1), np.zeros((1, spec.action_spec.size))):
        with pytest.raises(RobotError, match="entries"):
            robot.send(Command(values=bad))
    np.testing.assert_array_equal(robot.last_action, applied)


def test_infinite_commands_never_reach_the_actuators(bot):
    spec, world, robot = bot
    robot.send(Command(values=np.where(np.arange(spec.action_spec.size) % 2, np.inf, -np.inf)))
    assert np.all(np.isfinite(world.ctrl))
    world.step(10)


def test_stop_brings_a_moving_robot_to_rest(bot):
    spec, world, robot = bot
    values = np.where(np.isfinite(spec.action_spec.safe), middle(spec), np.nan)
    if spec.root == "free":  # climb first: what flies comes to rest in the air
        values = np.full(spec.action_spec.size, 0.6 * spec.action_spec.high.max())
    run(world, robot, Command(values=values), 40 if spec.root == "planar" else 100)
    assert np.linalg.norm(robot.read().base_vel_body_mps) > 0.05
    for _ in range(round(3.0 / robot.dt_ctrl_s)):
        robot.stop()
        world.step(round(robot.dt_ctrl_s / world.dt_sim_s))
    assert np.linalg.norm(robot.read().base_vel_body_mps) < (0.01 if spec.root == "planar" else 0.05)


def test_equal_commands_give_equal_states(bot, request):
    spec, world, robot = bot
    _, other_world, other = make(request.node.callspec.params["bot"])
    for w, r in ((world, robot), (other_world, other)):
        run(w, r, Command(values=middle(spec)), 30)
    assert world.hash() == other_world.hash()


def test_model_elements_are_named_and_the_card_speaks(bot):
    spec, world, _ = bot
    model = world.scene.model
    for kind, count in (("body", model.nbody), ("joint", model.njnt), ("actuator", model.nu), ("camera", model.ncam)):
        for index in range(count):
            assert getattr(model, kind)(index).name, f"{kind} {index} has no name"
    assert len(spec.card) > 40
    assert "<!--" in spec.mjcf.read_text(), "numbers of a model file carry their source"
    assert spec.mjcf.parent.joinpath("README.md").is_file() or spec.card
    for camera in spec.observation_spec.cameras:
        assert mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, f"bot/{camera}") >= 0


def test_control_period_must_fit_the_step(bot):
    spec, world, _ = bot
    from dataclasses import replace

    with pytest.raises(RobotError, match="whole multiple"):
        make_robot(world, "bot", replace(spec, dt_ctrl_s=world.dt_sim_s * 1.5))
    with pytest.raises(RobotError, match="Did you mean 'bot'"):
        make_robot(world, "bob", spec)
