"""The flight recipes: training sees what the robot tells, runs resume in the same bits, wrong files are named."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("rsl_rl")

from embodied.robots.quadrotor.spec import QUADROTOR  # noqa: E402
from embodied.train.flight.batch import TrainingFlights  # noqa: E402
from embodied.train.flight.mission import Flight, mission  # noqa: E402
from embodied.train.flight.policy import flight_contract  # noqa: E402
from embodied.train.flight.ppo import PpoConfig, train_ppo  # noqa: E402
from embodied.train.flight.recipe import QUAD_HOVER, QUAD_WAYPOINT  # noqa: E402
from embodied.train.run import TrainError, TrainRun, load_checkpoint  # noqa: E402
from embodied_deploy.package.contract import Training  # noqa: E402
from embodied_deploy.policy.channels import Assembler  # noqa: E402

TINY = PpoConfig(num_envs=16, num_steps=8, hidden=(16,), critic_hidden=(16,))
ROUND = TINY.iteration_steps * 20
CONTRACT = flight_contract("quad-hover", "1.0.0", Training(recipe="quad-hover@1", seed=0, commit="none"))


def _run(folder, steps=2 * ROUND, seed=5, recipe="quad-hover@1"):
    return TrainRun(folder=folder, recipe=recipe, recipe_version="1", seed=seed, steps=steps)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    run = _run(tmp_path_factory.mktemp("flight"))
    train_ppo(run, "hover", TINY)
    return run


@pytest.mark.parametrize("task", ["hover", "waypoint"])
def test_training_and_robot_observe_the_same(task):
    flight = Flight(mission(task, 3))
    rng = np.random.default_rng(0)
    for _ in range(25):
        flight.step(rng.uniform(0.0, QUADROTOR.action_spec.high))
    feed = {"observation": np.zeros((1, 22), dtype=np.float32)}
    sample = flight.observe()
    Assembler(CONTRACT, QUADROTOR.action_spec, QUADROTOR.observation_spec).fill(sample, feed)

    flights = TrainingFlights(2, task)
    flights.reset(np.random.default_rng(1))
    qpos, qvel = flight.world.qpos[0], flight.world.qvel[0]  # the drone is the only body that moves
    state = sample.state
    thrusts = [state.signals[f"thrust_{i}_n"] for i in range(1, 5)]
    flights.state[1] = [*qpos[:7], *qvel[:6], *thrusts]
    flights._believed_n[1] = thrusts
    flights.targets_m[1, 0] = flight.target_m
    assert np.allclose(flights.observe()[1], feed["observation"][0], atol=1e-6)


def test_the_signal_of_a_thrust_lags_alike():
    flight = Flight(mission("hover", 0))
    flights = TrainingFlights(1, "hover")
    flights.reset(np.random.default_rng(0))
    flights._believed_n[:] = 0.0  # as after a reset of the robot
    rng = np.random.default_rng(2)
    for _ in range(10):
        ratio = rng.uniform(-1.0, 1.0, 4)
        flights.step(ratio[None])
        flight.step((ratio + 1.0) / 2.0 * QUADROTOR.action_spec.high)
    signals = flight.robot.read().signals
    assert np.allclose(flights.observe()[0, 18:], [signals[f"thrust_{i}_n"] for i in range(1, 5)], atol=1e-6)


def test_weather_and_motors_differ_between_flights():
    flights = TrainingFlights(64, "hover")
    flights.reset(np.random.default_rng(0))
    speeds = np.linalg.norm(flights.wind_world_mps, axis=1)
    assert 2.5 < speeds.max() <= 3.5
    assert 0.87 < flights.gain.min() < 0.93
    assert 1.07 < flights.gain.max() < 1.13
    assert flights.privileged().shape == (64, 8)


def test_an_interrupted_run_ends_in_the_same_bits(trained, tmp_path):
    train_ppo(_run(tmp_path, steps=ROUND), "hover", TINY)
    assert load_checkpoint(tmp_path / "checkpoint.pt")["round"] == 1
    torch.manual_seed(1234)
    train_ppo(_run(tmp_path), "hover", TINY)
    whole, parts = load_checkpoint(trained.checkpoint_path), load_checkpoint(tmp_path / "checkpoint.pt")
    for kind in ("actor_state_dict", "critic_state_dict"):
        for name, value in whole[kind].items():
            assert torch.equal(value, parts[kind][name]), name
    assert (trained.folder / "curves.jsonl").read_text() == (tmp_path / "curves.jsonl").read_text()


def test_other_seeds_end_elsewhere_and_nothing_is_printed(trained, tmp_path, capfd):
    train_ppo(_run(tmp_path, steps=ROUND, seed=6), "hover", TINY)
    out, err = capfd.readouterr()
    assert out == ""
    assert err == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint.pt", "curves.jsonl"]
    mine, other = load_checkpoint(tmp_path / "checkpoint.pt"), load_checkpoint(trained.checkpoint_path)
    name = next(iter(mine["actor_state_dict"]))
    assert not torch.equal(mine["actor_state_dict"][name], other["actor_state_dict"][name])


def test_the_graph_says_what_the_actor_says(trained):
    from tensordict import TensorDict

    from embodied.train.flight.ppo import _algorithm

    document = load_checkpoint(trained.checkpoint_path)
    policy = QUAD_HOVER.policy(document)
    flights = TrainingFlights(TINY.num_envs, "hover")
    flights.reset(np.random.default_rng(0))
    algorithm = _algorithm(flights, TINY)
    algorithm.load(document, None, True)
    algorithm.eval_mode()
    seen = torch.from_numpy(flights.observe())
    with torch.no_grad():
        raw = algorithm.get_policy()(TensorDict({"policy": seen}, batch_size=[TINY.num_envs]))
        (thrust,) = policy(seen)
    expected = (raw.clamp(-1, 1) + 1) / 2 * 0.15  # what TrainingFlights.step makes of an action
    assert torch.allclose(thrust, expected, atol=1e-6)
    assert torch.std(thrust, dim=0).max() > 0


def test_wrong_checkpoints_are_named(trained, tmp_path):
    document = load_checkpoint(trained.checkpoint_path)
    with pytest.raises(TrainError, match="quad-hover@1"):
        QUAD_WAYPOINT.policy(document)
    with pytest.raises(TrainError, match="another actor"):
        QUAD_HOVER.policy({**document, "hidden": [8]})
    with pytest.raises(TrainError, match="num_envs"):
        train_ppo(trained, "hover", PpoConfig(num_envs=8, num_steps=8, hidden=(16,), critic_hidden=(16,)))
    with pytest.raises(TrainError, match="recipe"):
        train_ppo(_run(trained.folder, recipe="quad-waypoint@1"), "waypoint", TINY)


def test_calibration_comes_from_missions_of_the_policy(trained):
    policy = QUAD_HOVER.policy(load_checkpoint(trained.checkpoint_path))
    a, b = (QUAD_HOVER.calibration(policy, 40, seed)["observation"] for seed in (0, 1))
    assert a.shape == (40, 22)
    assert a.dtype == np.float32
    assert not np.array_equal(a, b)
    assert np.array_equal(a, QUAD_HOVER.calibration(policy, 40, 0)["observation"])
    assert np.unique(a[:, 15]).size > 10  # not one moment forty times
