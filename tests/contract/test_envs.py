"""Every registered environment passes the checkers of its interface and keeps the invariants of ours."""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from pettingzoo.test import parallel_api_test, parallel_seed_test

import embodied.envs
from embodied.envs.flight import OBSERVATION_NAMES, FlightBatch
from embodied.envs.parallel import TaskParallelEnv
from embodied.envs.quad import QuadEnv, QuadVectorEnv
from embodied.envs.task_core import RobotPort
from embodied.errors import EmbodiedError, TaskError, WorldError
from embodied.robots.quadrotor.spec import QUADROTOR
from embodied_controllers.quadrotor.params import CRAZYFLIE_21

IDS = sorted(i for i in gymnasium.registry if i.startswith("Embodied/"))
TEAMS = (("warehouse/deliver@1", {"agents": 3}, 3), ("drones/inspect@1", {"num_drones": 2}, 2))
HOVER = np.float32(2 * CRAZYFLIE_21.hover_thrust_n / CRAZYFLIE_21.thrust_max_n - 1)


@pytest.fixture(params=IDS)
def env(request):
    made = gymnasium.make(request.param, disable_env_checker=True).unwrapped
    yield made
    made.close()


def rollout(env, seed, actions):
    rows = [env.reset(seed=seed)[0]]
    rewards = []
    for action in actions:
        obs, reward, ended, cut, _ = env.step(action)
        rows.append(obs)
        rewards.append(reward)
        if ended or cut:
            break
    return np.array(rows), np.array(rewards)


def some_actions(env, n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-0.4, 0.4, (n, *env.action_space.shape)).astype(np.float32)


def test_all_promised_ids_are_there_and_registering_again_changes_nothing():
    assert {f"Embodied/{n}-v1" for n in ("QuadHover", "QuadWaypoint", "Household", "Warehouse")} <= set(IDS)
    before = dict(gymnasium.registry)
    embodied.envs.register()
    assert dict(gymnasium.registry) == before


def test_checker_is_silent(env):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env, skip_render_check=True)


def test_same_seed_same_run_and_other_seeds_differ(env):
    actions = some_actions(env, 25)
    first, again = rollout(env, 7, actions), rollout(env, 7, actions)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])


def test_observations_are_finite_bounded_fresh_and_alive(env):
    rows, rewards = rollout(env, 1, some_actions(env, 25, 3))
    assert np.isfinite(rows).all()
    assert np.isfinite(rewards).all()
    assert all(env.observation_space.contains(r) for r in rows)
    obs, _ = env.reset(seed=0)
    kept = obs.copy()
    other, *_ = env.step(env.action_space.sample())
    np.testing.assert_array_equal(obs, kept)
    assert not np.shares_memory(obs, other)
    assert (rows.std(axis=0) > 0).any()


def test_actions_that_are_no_numbers_hold_and_wrong_shapes_are_refused(env):
    env.reset(seed=0)
    obs, *_ = env.step(np.full(env.action_space.shape, np.nan, dtype=np.float32))
    assert np.isfinite(obs).all()
    with pytest.raises((ValueError, EmbodiedError), match=r"shape|broadcast"):
        env.step(np.zeros(env.action_space.shape[0] + 3, dtype=np.float32))


def test_observation_entries_are_named(env):
    names = getattr(env, "observation_names", OBSERVATION_NAMES)
    assert len(names) == len(set(names)) == env.observation_space.shape[0]


def test_rendering_gives_an_image():
    env = gymnasium.make("Embodied/QuadHover-v1", render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert first.shape == (240, 320, 3)
    assert first.dtype == np.uint8
    assert first.std() > 5
    env.close()


def test_time_limits_truncate():
    env = gymnasium.make("Embodied/Warehouse-v1", time_limit_s=1.0, disable_env_checker=True)
    env.reset(seed=0)
    cuts = [env.step(np.zeros(env.action_space.shape, np.float32))[3] for _ in range(20)]
    assert cuts == [False] * 19 + [True]


def test_unknown_names_say_what_exists():
    with pytest.raises(WorldError, match="hover"):
        FlightBatch(1, "loop")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TaskError, match="drone_0"):
        gymnasium.make("Embodied/Warehouse-v1", task_id="drones/inspect@1", agent="amr_0")


class TestVector:
    @pytest.mark.parametrize("task", ["hover", "waypoint"])
    def test_seeded_bounded_and_independent_of_threads(self, task):
        runs = []
        for threads in (1, 2):
            env = QuadVectorEnv(6, task, num_threads=threads)
            rows = [env.reset(seed=3)[0]]
            rng = np.random.default_rng(0)
            for _ in range(120):
                obs, reward, _, _, _ = env.step(rng.uniform(-0.6, 0.4, (6, 4)))
                assert reward.shape == (6,)
                rows.append(obs)
            runs.append(np.array(rows))
            assert all(env.observation_space.contains(r) for r in rows)
        np.testing.assert_array_equal(*runs)

    def test_a_batch_of_one_is_the_single_environment(self):
        single, batch = QuadEnv("hover"), QuadVectorEnv(1, "hover")
        np.testing.assert_array_equal(single.reset(seed=5)[0], batch.reset(seed=5)[0][0])
        rng = np.random.default_rng(1)
        for _ in range(40):
            action = rng.uniform(-0.3, 0.1, 4).astype(np.float32)
            a, b = single.step(action), batch.step(action[None])
            np.testing.assert_array_equal(a[0], b[0][0])
            assert a[1] == b[1][0]
            assert a[2] == b[2][0]
            if a[2]:
                break

    def test_next_step_autoreset(self):
        env = QuadVectorEnv(3)
        assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        env.reset(seed=0)
        falling = np.array([[-1.0] * 4, [HOVER] * 4, [HOVER] * 4])
        for _ in range(120):
            _, _, ended, _, _ = env.step(falling)
            if ended[0]:
                break
        assert ended[0]
        obs, reward, ended, cut, _ = env.step(falling)
        assert reward[0] == 0.0
        assert not ended[0]
        assert not cut[0]
        assert abs(obs[0, 2]) <= 0.81, "the new flight starts within 0.8 m of the target's height"

    def test_same_step_autoreset_hands_over_the_last_observation(self):
        env = QuadVectorEnv(2, autoreset_mode="SameStep")
        env.reset(seed=0)
        for _ in range(120):
            obs, _, ended, _, info = env.step(np.array([[-1.0] * 4, [HOVER] * 4]))
            if ended[0]:
                break
        assert info["_final_obs"][0]
        assert info["final_obs"][0].shape == (len(OBSERVATION_NAMES),)
        assert info["final_obs"][0][2] > 1.2, "it ended near the ground, far below its target"
        assert abs(obs[0, 2]) <= 0.81

    def test_disabled_autoreset_wants_a_mask(self):
        env = QuadVectorEnv(2, autoreset_mode=AutoresetMode.DISABLED)
        env.reset(seed=0)
        for _ in range(120):
            _, _, ended, _, _ = env.step(np.array([[-1.0] * 4, [HOVER] * 4]))
            if ended[0]:
                break
        with pytest.raises(RuntimeError, match=r"\[0\]"):
            env.step(np.zeros((2, 4)))
        with pytest.raises(ValueError, match="reset_mask"):
            env.reset(options={"reset_mask": [1, 0]})
        env.reset(options={"reset_mask": np.array([True, False])})
        env.step(np.full((2, 4), HOVER))

    def test_make_vec_takes_the_native_batch(self):
        env = gymnasium.make_vec("Embodied/QuadHover-v1", num_envs=4)
        assert isinstance(env.unwrapped, QuadVectorEnv)
        with pytest.raises(ValueError, match=r"\(4, 4\)"):
            env.unwrapped.step(np.zeros((3, 4)))

    def test_a_flight_controller_earns_what_random_thrusts_do_not(self):
        """The reward means hovering: the project's own controller, through the interface, scores far above noise."""
        from embodied_controllers.contract import RobotState
        from embodied_controllers.quadrotor.controller import FlightController, FlightSetpoint

        env = QuadEnv("hover")
        scores = []
        for is_piloted in (True, False):
            env.reset(seed=4)
            pilot, total = FlightController(), 0.0
            rng = np.random.default_rng(0)
            for step in range(200):
                world = env._flight.world
                quat = world.qpos[0, 3:7].copy()
                rot = env._flight.observe()[0, 6:15].reshape(3, 3).astype(np.float64)
                state = RobotState(
                    time_s=0.02 * step,
                    joint_pos=np.zeros(0),
                    joint_vel=np.zeros(0),
                    base_pos_world_m=world.qpos[0, :3].copy(),
                    base_quat_wxyz=quat,
                    base_vel_body_mps=rot.T @ world.qvel[0, :3],
                    base_angvel_body_radps=world.qvel[0, 3:6].copy(),
                )
                if step == 0:
                    pilot.reset(state)
                thrust = pilot.step(state, FlightSetpoint(pos_world_m=(0.0, 0.0, 1.5)), 0.02)
                action = 2 * thrust / CRAZYFLIE_21.thrust_max_n - 1 if is_piloted else rng.uniform(-1, 1, 4)
                _, reward, ended, cut, _ = env.step(action)
                total += reward
                if ended or cut:
                    break
            scores.append(total)
        assert scores[0] > 150
        assert scores[1] < 100


@pytest.mark.parametrize(("task_id", "options", "size"), TEAMS)
def test_parallel_environment_passes_its_checkers(task_id, options, size):
    def make():
        return TaskParallelEnv(task_id, task_options=options, time_limit_s=2.0)

    assert len(make().possible_agents) == size
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(make(), num_cycles=60)
        parallel_seed_test(make, num_cycles=30)


def test_parallel_environment_shares_reward_and_ends_together():
    env = TaskParallelEnv("warehouse/deliver@1", time_limit_s=0.5)
    obs, infos = env.reset(seed=0)
    assert set(obs) == set(env.possible_agents) == set(infos)
    assert all(infos[a]["instruction"] for a in obs)
    while env.agents:
        obs, rewards, ended, cut, _ = env.step({a: env.action_space(a).sample() for a in env.agents})
        assert len(set(rewards.values())) == 1
        assert all(env.observation_space(a).contains(o) for a, o in obs.items())
    assert all(cut.values())
    assert not any(ended.values())


def test_actions_map_onto_the_limits_of_the_robot():
    port = RobotPort(QUADROTOR)
    np.testing.assert_allclose(port.command(np.full(4, -1.0)).values, QUADROTOR.action_spec.low)
    np.testing.assert_allclose(port.command(np.full(4, 1.0)).values, QUADROTOR.action_spec.high)
    np.testing.assert_allclose(port.action_of(port.command(np.full(4, 0.3)).values), 0.3, rtol=1e-6)
