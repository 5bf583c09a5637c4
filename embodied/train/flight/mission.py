"""How a flight policy is judged: on the simulated robot in the physics engine, in wind by seed. Loads no torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from embodied.benchmark.pool import Job, run_jobs
from embodied.robots.base import SimRobot, make_robot
from embodied.robots.quadrotor.spec import QUADROTOR
from embodied.seeding import stream_rng
from embodied.tasks.drones.inspect import GUST_MAX_MPS, WIND_MAX_MPS
from embodied.train.contract import Score
from embodied.train.flight.channels import RATE_HZ
from embodied.worlds.contract import Start
from embodied.worlds.mujoco import MujocoWorld
from embodied_controllers.contract import Command
from embodied_deploy.package.load import load_package
from embodied_deploy.policy.controller import PolicyController
from embodied_deploy.policy.sample import Sample
from embodied_deploy.policy.session import PolicySession
from embodied_scenes.builders import RobotMount, compile_scene
from embodied_scenes.builders.compile import CompiledScene
from embodied_scenes.drones.open_air import open_air
from embodied_scenes.drones.parts import windsock

Array = NDArray[np.float64]

DURATION_S = {"hover": 10.0, "waypoint": 24.0}
NUM_WAYPOINTS = 6
REACHED_M = 0.25
HELD_M, HELD_S = 0.15, 3.0
ROBOT = "drone_0"
_SOCK = "windsock"
_GROUND_M, _STRAY_M = 0.05, 9.0
_LIMIT_S = 120.0  # wall clock of one episode in a worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Mission:
    """What a seed stands for.

    Attributes:
      task: ``hover`` or ``waypoint``.
      seed: of everything.
      targets_m: (n, 3) points to visit in order, or the one to hold.
      pos_m: where the drone starts, at rest and with its motors off.
      yaw_rad: heading at the start.
      wind_mps: (x, y) steady part.
      gust_mps: root mean square of the gusts.
    """

    task: str
    seed: int
    targets_m: Array
    pos_m: tuple[float, float, float]
    yaw_rad: float
    wind_mps: tuple[float, float]
    gust_mps: float


def mission(task: str, seed: int) -> Mission:
    """Return the mission of a seed: a point at most a metre away, or six in a box of 5 x 5 x 1.8 m."""
    rng = stream_rng(seed, "task", "flight", task)
    count = NUM_WAYPOINTS if task == "waypoint" else 1
    targets = rng.uniform((-2.5, -2.5, 0.8), (2.5, 2.5, 2.6), (count, 3))
    start = targets[0] + rng.uniform(-1.0, 1.0, 3) * (1, 1, 0.6) if task == "hover" else rng.uniform(-2.5, 2.5, 3)
    angle, speed = float(rng.uniform(-math.pi, math.pi)), float(rng.uniform(0.0, WIND_MAX_MPS))
    return Mission(
        task=task,
        seed=seed,
        targets_m=targets,
        pos_m=(float(start[0]), float(start[1]), float(np.clip(start[2], 1.2, 2.6))),
        yaw_rad=float(rng.uniform(-math.pi, math.pi)),
        wind_mps=(speed * math.cos(angle), speed * math.sin(angle)),
        gust_mps=float(rng.uniform(0.0, GUST_MAX_MPS)),
    )


class Flight:
    """One mission, stepped at :data:`channels.RATE_HZ`: :meth:`observe`, :meth:`step`, until :attr:`is_over`."""

    def __init__(self, task: Mission) -> None:
        self.mission = task
        self.world = MujocoWorld(_field())
        self.robot: SimRobot = make_robot(self.world, ROBOT, QUADROTOR)
        half = task.yaw_rad / 2
        self.world.reset(
            task.seed,
            Start(
                poses={ROBOT: (*task.pos_m, math.cos(half), 0.0, 0.0, math.sin(half))},
                states={
                    (_SOCK, "wind_x_mps"): task.wind_mps[0],
                    (_SOCK, "wind_y_mps"): task.wind_mps[1],
                    (_SOCK, "gust_mps"): task.gust_mps,
                    (_SOCK, "gust_seed"): task.seed % 2**31,
                },
            ),
        )
        self.robot.reset()
        self._substeps = round(self.robot.dt_ctrl_s / self.world.dt_sim_s)
        self._periods = round(1.0 / (RATE_HZ * self.robot.dt_ctrl_s))
        self.leg, self.steps, self.is_crashed = 0, 0, False
        self._far_step = 0  # last step at which the point was not held

    @property
    def target_m(self) -> Array:
        """(3,) where to fly now."""
        return self.mission.targets_m[min(self.leg, len(self.mission.targets_m) - 1)]

    @property
    def error_m(self) -> float:
        """Distance to the present target."""
        return float(np.linalg.norm(self.robot.read().base_pos_world_m - self.target_m))

    @property
    def is_success(self) -> bool:
        """All points were reached; or the point was held within 0.15 m during the last 3 s of the flight."""
        if self.is_crashed:
            return False
        if self.mission.task == "waypoint":
            return self.leg >= len(self.mission.targets_m)
        return self._is_late and self.steps - self._far_step >= HELD_S * RATE_HZ

    @property
    def is_over(self) -> bool:
        """Crashed, late, or every point was reached."""
        return self.is_crashed or self._is_late or (self.mission.task == "waypoint" and self.is_success)

    @property
    def outcome(self) -> str:
        """What became of the flight, in one word."""
        if self.is_success:
            return "held" if self.mission.task == "hover" else "visited"
        return "crashed" if self.is_crashed else ("drifted" if self.mission.task == "hover" else "late")

    @property
    def _is_late(self) -> bool:
        return self.steps >= DURATION_S[self.mission.task] * RATE_HZ

    def observe(self) -> Sample:
        """Return what the policy may know now."""
        goal = {"pos_world_m": self.target_m.copy()}
        return Sample(state=self.robot.read(), last_action=self.robot.last_action, goal=goal)

    def step(self, thrust_n: Array) -> None:
        """Hold (4,) thrusts for one period of 20 ms; an entry that is not finite keeps its last value."""
        self.robot.send(Command(values=thrust_n))
        for period in range(self._periods):
            if period:
                self.robot.refresh()
            self.world.step(self._substeps)
        self.steps += 1
        state = self.robot.read()
        _, x, y, _ = state.base_quat_wxyz.tolist()
        up = 1.0 - 2.0 * (x * x + y * y)
        far = float(np.abs(state.base_pos_world_m).max()) > _STRAY_M
        self.is_crashed = bool(state.base_pos_world_m[2] < _GROUND_M or up < -0.2 or far)
        error_m = float(np.linalg.norm(state.base_pos_world_m - self.target_m))
        if error_m > HELD_M:
            self._far_step = self.steps
        if self.mission.task == "waypoint" and error_m < REACHED_M:
            self.leg += 1


def evaluate_package(task: str, package: Path, seeds: Sequence[int], workers: int = 1) -> list[Score]:
    """Return one score per seed, in order; a worker that dies counts as a failed flight."""
    if workers <= 1:
        session = open_package(package)
        return [fly(session, mission(task, seed)) for seed in seeds]
    jobs = [Job(key=str(seed), payload=(task, str(package), int(seed))) for seed in seeds]
    endings = {e.key: e for e in run_jobs(f"{__name__}:fly_seed", jobs, workers=workers, timeout_s=_LIMIT_S)}
    return [
        endings[job.key].value
        if endings[job.key].status == "done"
        else Score(seed=job.payload[2], value=0.0, outcome=f"crash: {endings[job.key].message}")
        for job in jobs
    ]


def open_package(package: Path) -> PolicySession:
    """Load a package for the quadrotor."""
    return PolicySession(load_package(package, robot=QUADROTOR))


def fly(session: PolicySession, task: Mission) -> Score:
    """Return the score of one mission."""
    flight = Flight(task)
    controller = PolicyController(session, flight.robot.action_spec, flight.robot.observation_spec)
    while not flight.is_over:
        flight.step(controller.act(flight.observe()))
    return Score(seed=task.seed, value=float(flight.is_success), outcome=flight.outcome, steps=flight.steps)


def fly_seed(payload: tuple[str, str, int]) -> Score:
    """Fly one (task, package, seed) in a process that keeps the package open."""
    task, package, seed = payload
    return fly(_opened(package), mission(task, seed))


@lru_cache(maxsize=4)
def _opened(package: str) -> PolicySession:
    return open_package(Path(package))


@lru_cache(maxsize=1)
def _field() -> CompiledScene:
    scene = open_air()
    scene = scene.model_copy(update={"id": "drones/windy_air@1", "entities": (windsock(_SOCK, (-5.5, 5.5, 0.0)),)})
    return compile_scene(scene, [RobotMount(name=ROBOT, kind="quadrotor", mjcf=QUADROTOR.mjcf)])
