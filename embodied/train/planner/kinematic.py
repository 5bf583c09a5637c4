"""The kinematic stage: one put-away task where skills teleport, with the image of the head camera at each decision.

The middle of three fidelities: skills take effect at once, geometry and images are those of the physics world. The
robot goes where ``go_to`` would choose to stand and turns base and head as ``look`` would; where manipulation leaves
the base is drawn from what physics episodes showed. A thing is known once a decision showed enough pixels of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from embodied.agents.episode import compile_task, task_start
from embodied.agents.eyes import IMAGE_PX, MIN_PIXELS, SEEING_PX
from embodied.agents.views import TruthView
from embodied.robots.base import RobotSpec
from embodied.robots.mobile_manipulator.spec import HEAD_LIMIT_RAD, MOBILE_MANIPULATOR
from embodied.seeding import stream_rng
from embodied.sensors.camera import Camera
from embodied.sensors.camera.frame import Frame
from embodied.sensors.camera.seen import entity_of_geom
from embodied.sensors.camera.table import geom_table
from embodied.skills.household.look import EYE_BASE_M
from embodied.skills.household.standing import choose, standings
from embodied.tasks.contract import Task
from embodied.tasks.goal import AllOf, Holds
from embodied.tasks.household.put_away import PutAwayFamily
from embodied.tasks.household.stage import AGENT, Stage, start_pose, taken_by
from embodied.train.planner.rules import TidyRules
from embodied.train.planner.teacher import CLOSED, SURFACES, Move
from embodied.worlds.contract import Start
from embodied.worlds.mujoco import MujocoWorld
from embodied_scenes.household import flat
from embodied_scenes.household.variants import flat_variant

Array = NDArray[np.float64]

KNOWN_PX = round(MIN_PIXELS * IMAGE_PX[0] * IMAGE_PX[1] / (SEEING_PX[0] * SEEING_PX[1]))
"""Pixels of a full image that stand for what makes a thing known in an episode."""
_SPECS: dict[str, RobotSpec] = {AGENT: MOBILE_MANIPULATOR}
_STAND_M, _STAND_RAD, _LOOK_RAD = 0.015, 0.02, 0.06  # how exactly a drive and a turn end
_AWAY = (50.0, 50.0, 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """How much a stage differs from the flat as it is.

    Attributes:
      layout: shifts of furniture, 0 to 1.
      clutter: share of the other things that lie elsewhere.
      paint: spread of the colours of furniture and, a third of it, of things, as a share of the full range.
      camera_rad: spread of the camera's mount.
      fovy_ratio: spread of its opening angle.
      crowded: whether what lies elsewhere lies where the task leaves things, on furniture and in it.
    """

    layout: float = 0.0
    clutter: float = 0.0
    paint: float = 0.0
    camera_rad: float = 0.0
    fovy_ratio: float = 0.0
    crowded: bool = False


PLAIN = Looks()
VARIED = Looks(layout=1.0, clutter=0.3, paint=0.12, camera_rad=0.02, fovy_ratio=0.02)
GALLERY = Looks(layout=1.0, clutter=0.9, paint=0.10, camera_rad=0.02, fovy_ratio=0.02, crowded=True)


class KinematicStage(TidyRules):
    """One task on teleporting skills.

    Args:
      seed: of the task, the looks and all draws.
      looks: how much the flat is varied.
      with_failures: whether manipulation may fail.

    Attributes:
      task: what is asked.
      owners: entity of each geom, to read segmentations by.
      visible_px: pixels of each entity in the last image.
    """

    def __init__(self, seed: int, looks: Looks = PLAIN, *, with_failures: bool = True) -> None:
        rng = stream_rng(seed, "task", "kinematic")
        self._stage = Stage(flat() if looks.layout == 0.0 else flat_variant(rng, looks.layout))
        self.task: Task = PutAwayFamily(lambda: self._stage).make(seed)
        self._world = MujocoWorld(compile_task(self.task, _SPECS))
        self._start = task_start(self.task, _SPECS)
        super().__init__(moves_of(self.task), {}, rng, with_failures=with_failures)
        self._poses: dict[str, tuple[float, ...]] = dict(self._start.poses)
        self._scatter(looks.clutter, crowded=looks.crowded)
        agent = self.task.agents[0]
        self._base = np.array([agent.pos_m[0], agent.pos_m[1], agent.yaw_rad])
        self._pan, self._tilt = 0.0, float(MOBILE_MANIPULATOR.home["head_tilt"])
        self._stands: dict[tuple[str, frozenset[str]], Array | None] = {}
        self._camera = Camera(self._world, f"{AGENT}/head_cam", *IMAGE_PX)
        self.owners = entity_of_geom(self._world.scene)
        self.visible_px: dict[str, int] = {}
        self._mount = _turn(rng.normal(0.0, looks.camera_rad, 2))
        self._fovy_scale = 1.0 + float(rng.normal(0.0, looks.fovy_ratio))
        self._table = replace(geom_table(self._world.scene.model), colour=self._painted(looks.paint))
        self._write()
        self._info = self._world.scene.info
        graph = self._world.graph()
        for name in self._stage.movable:
            support = graph.support_of(name)
            if support is not None:
                self.places[name] = ("in" if support.predicate == "inside" else "on", support.args[1])

    def observe(self) -> Frame:
        """Render what the head camera shows now and take note of what it shows."""
        self._write()
        view = self._camera.view()
        view = replace(view, fovy_deg=view.fovy_deg * self._fovy_scale, rot_world=view.rot_world @ self._mount)
        if self._camera.route == "zbuffer":
            from embodied.sensors.camera import zbuffer

            world = self._world
            frame = zbuffer.render(view, self._table, world.geom_pos_world_m[0], world.geom_rot_world[0])
        else:
            frame = self._camera.render()
        counts = np.bincount(frame.segmentation[frame.segmentation >= 0], minlength=len(self.owners))
        self.visible_px = {}
        for geom in np.flatnonzero(counts):
            name = self.owners[geom]
            if name is not None:
                self.visible_px[name] = self.visible_px.get(name, 0) + int(counts[geom])
        self.known |= {n for n in self._stage.movable if self.visible_px.get(n, 0) >= KNOWN_PX}
        return frame

    def moved(self, kind: str, target: str) -> str:
        """Move base and head as the skill would; see :meth:`TidyRules.moved`."""
        if kind == "place":
            return self._put_down(*target.split(" "))
        if target not in self._info.entities:
            return "unknown_name" if kind in ("go_to", "look") else ""
        if kind == "go_to":
            return self._stand_at(target)
        if kind == "look":
            self._turn_to(target)
        elif kind == "door":
            self._after_door(target)
        else:
            self._after_reach(target)
        return ""

    def _stand_at(self, target: str) -> str:
        key = (target, frozenset(self.doors))
        if key not in self._stands:
            self._write(is_hand_empty=True)
            view = TruthView(self._world, AGENT)
            best = choose(view, self._base[:2], standings(view, target, AGENT))
            self._stands[key] = None if best is None else np.array([*best.xy_m, best.yaw_rad])
        stand = self._stands[key]
        if stand is None:
            return "unreachable"
        self._base = stand + self.rng.normal(0.0, 1.0, 3) * (_STAND_M, _STAND_M, _STAND_RAD)
        return ""

    def _turn_to(self, target: str) -> None:
        point = self._point(target) + np.array([0.0, 0.0, float(self._info.entities[target].box_center_m[2])])
        rel = point - np.array([*self._base[:2], 0.0])
        turn = _wrapped(np.arctan2(rel[1], rel[0]) - self._base[2])
        if abs(turn) > _LOOK_RAD:
            self._base[2] += turn - np.sign(turn) * self.rng.uniform(0.0, _LOOK_RAD)
        cos, sin = np.cos(self._base[2]), np.sin(self._base[2])
        ahead = np.array([cos * rel[0] + sin * rel[1], cos * rel[1] - sin * rel[0], rel[2]]) - EYE_BASE_M
        self._pan = float(np.clip(np.arctan2(ahead[1], max(ahead[0], 0.05)), *HEAD_LIMIT_RAD[0]))
        self._tilt = float(np.clip(np.arctan2(-ahead[2], np.hypot(ahead[0], ahead[1])), *HEAD_LIMIT_RAD[1]))

    def _after_door(self, target: str) -> None:
        """Stand as after work on a door: 0.79 to 0.97 m before its face, anyhow turned (10 to 90 % of 96 openings)."""
        self._write(is_hand_empty=True)
        pose = TruthView(self._world, AGENT).pose(target)
        assert pose is not None
        yaw = _yaw(pose.quat_wxyz)
        front, side = np.array([np.cos(yaw), np.sin(yaw)]), np.array([-np.sin(yaw), np.cos(yaw)])
        out = float(self._info.entities[target].half_size_m[0]) + self.rng.uniform(0.78, 0.98)
        xy = pose.pos_world_m[:2] + front * out + side * self.rng.uniform(-0.22, 0.22)
        bearing = np.arctan2(*(pose.pos_world_m[:2] - xy)[::-1])
        self._base = np.array([*xy, bearing + self.rng.uniform(-0.75, 0.75)])

    def _after_reach(self, target: str) -> None:
        """Stand about where the furniture is worked at from."""
        self._stand_at(target)
        self._base += self.rng.uniform(-1.0, 1.0, 3) * (0.12, 0.12, 0.25)

    def _put_down(self, thing: str, relation: str, target: str) -> str:
        entity = self._info.entities.get(target)
        kind = "interior" if relation == "in" else "surface"
        if entity is None or not any(r.kind == kind for r in entity.regions):
            return "precondition"
        others = self._stage.boxes([n for n in self._stage.movable if n != thing])
        shape = self._info.entities[thing]
        spot = self._stage.spot(shape, target, relation, others, self.rng, is_crowding_allowed=True)
        if spot is None:
            return "occupied"
        self._after_reach(target)
        self._poses[thing] = start_pose(spot, shape)
        return ""

    def _point(self, name: str) -> Array:
        self._write()
        pose = TruthView(self._world, AGENT).pose(name)
        assert pose is not None
        return np.array(pose.pos_world_m)

    def _scatter(self, share: float, *, crowded: bool) -> None:
        """Put some of the things that are not asked for elsewhere."""
        wanted = set() if crowded else {m.thing for m in self.moves}
        info = self._stage.info
        places = [(n, "on") for n, e in info.entities.items() if not e.movable and "floor" not in e.properties]
        if crowded:
            places = [*((n, "on") for n in SURFACES), *((n, "in") for n in CLOSED)]
        taken = self._stage.boxes([])
        for index in self.rng.permutation(len(self._stage.movable)):
            name = self._stage.movable[int(index)]
            if name in wanted or self.rng.random() >= share:
                continue
            for choice in self.rng.permutation(len(places))[:3]:
                fixture, relation = places[int(choice)]
                room = taken if crowded else self._stage.boxes([n for n in self._stage.movable if n != name])
                spot = self._stage.spot(info.entities[name], fixture, relation, room, self.rng)
                if spot is not None:
                    taken = taken_by(taken, spot, info.entities[name])
                    self._poses[name] = start_pose(spot, info.entities[name])
                    break

    def _painted(self, spread: float) -> NDArray[np.float32]:
        colour = np.array(geom_table(self._world.scene.model).colour, dtype=np.float64)
        shift: dict[str | None, Array] = {AGENT: np.zeros(3)}
        for geom, owner in enumerate(self.owners):
            if owner not in shift:
                scale = 255.0 * (spread / 3 if owner in self._stage.movable else spread)
                shift[owner] = 0.7 * self.rng.normal(0.0, scale, 3) + self.rng.normal(0.0, scale)
            colour[geom] = np.clip(colour[geom] + shift[owner], 0.0, 255.0)
        return colour.astype(np.float32)

    def _write(self, *, is_hand_empty: bool = False) -> None:
        """Bring the world to the present state; a held thing hangs in the hand, or is away while drives are planned."""
        x, y, yaw = self._base
        poses = dict(self._poses)
        poses[AGENT] = (x, y, MOBILE_MANIPULATOR.height_m, np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2))
        if self.holding:
            hand = (x + 0.30 * np.cos(yaw), y + 0.30 * np.sin(yaw), 0.62)
            poses[self.holding] = (*(_AWAY if is_hand_empty else hand), 1.0, 0.0, 0.0, 0.0)
        joint_pos = dict(self._start.joint_pos)
        joint_pos[f"{AGENT}/head_pan"], joint_pos[f"{AGENT}/head_tilt"] = self._pan, self._tilt
        self._world.reset(0, Start(poses=poses, joints=dict.fromkeys(self.doors, 0.97), joint_pos=joint_pos))


def moves_of(task: Task) -> list[Move]:
    """Return what a put-away task asks for."""
    assert isinstance(task.goal, AllOf)
    found = []
    for part in task.goal.parts:
        if isinstance(part, Holds):
            thing, target = part.fact.args
            found.append(Move(thing, "in" if part.fact.predicate == "inside" else "on", target))
    return found


def _turn(mount_rad: Array) -> Array:
    """Return a small turn of a camera about its x and y axes, (3, 3)."""
    a, b = mount_rad
    rx = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    ry = np.array([[np.cos(b), 0, np.sin(b)], [0, 1, 0], [-np.sin(b), 0, np.cos(b)]])
    return rx @ ry


def _wrapped(angle_rad: float) -> float:
    return float(np.arctan2(np.sin(angle_rad), np.cos(angle_rad)))


def _yaw(quat_wxyz: Array) -> float:
    w, x, y, z = quat_wxyz
    return float(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
