"""The arrays that train a flight policy against the physics engine that judges it."""

import numpy as np

from embodied.envs.flight import FlightBatch
from embodied.train.flight.batch import TrainingFlights


def test_training_flights_fly_as_the_engine_does():
    wind = (1.5, -0.8, 0.0)
    engine = FlightBatch(8, "hover", num_threads=1, wind_mps=wind)
    arrays = TrainingFlights(8, "hover")
    rng = np.random.default_rng(0)
    engine.reset(rng)
    arrays.reset(rng)
    arrays.gain[:] = 1.0
    arrays.wind_world_mps[:] = wind
    arrays._gust[:] = arrays._gust_rms[:] = 0.0
    world = engine.world
    arrays.state[:] = np.concatenate([world.qpos[:, :7], world.qvel[:, :6], world.act], axis=1)
    arrays._believed_n[:] = world.act
    for _ in range(25):  # half a second
        actions = -0.1 + 0.15 * rng.normal(size=(8, 4))
        engine.step(actions)
        arrays.step(actions)
    seen = np.concatenate([world.qpos[:, :3], world.qvel[:, :6]], axis=1)
    got = np.concatenate([arrays.state[:, :3], arrays.state[:, 7:13]], axis=1)
    assert np.abs(seen[:, :3] - got[:, :3]).max() < 0.01
    assert np.abs(seen[:, 3:6] - got[:, 3:6]).max() < 0.05
    assert np.abs(seen[:, 6:] - got[:, 6:]).max() < 0.1
    assert np.allclose(world.act, arrays.state[:, 13:17], atol=2e-3)
    assert np.abs(seen[:, :3]).max() > 0.3  # they flew
