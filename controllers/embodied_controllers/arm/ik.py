"""Inverse kinematics of any serial chain by damped least squares, with joint limits, posture and free directions.

References:
  Y. Nakamura, H. Hanafusa, "Inverse kinematic solutions with singularity robustness for robot manipulator control",
  J. Dynamic Systems, Measurement and Control 108(3) (1986), equation 20: the damped pseudo-inverse.
  A. Liegeois, "Automatic supervisory control of the configuration and behavior of multibody mechanisms", IEEE Trans.
  Systems, Man and Cybernetics 7(12) (1977): posture in the null space.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from embodied_controllers.arm.chain import SerialChain
from embodied_controllers.contract import Array
from embodied_controllers.rotation import exp_rotation, log_rotation

Task = Literal["pose", "axis", "yaw_free", "position"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IkConfig:
    """Tuning of :func:`solve_ik`.

    Attributes:
      max_steps: Newton steps per start.
      damping: of the pseudo-inverse, in the units of the task (m and rad weigh alike).
      step_max: largest change of a joint in one step, rad or m.
      posture_gain: pull towards the posture in the null space.
      restarts: starts drawn within the limits after the given one.
      pos_tol_m: accuracy of the position.
      rot_tol_rad: accuracy of the constrained directions.
    """

    max_steps: int = 80
    damping: float = 0.03
    step_max: float = 0.25
    posture_gain: float = 0.1
    restarts: int = 8
    pos_tol_m: float = 1e-4
    rot_tol_rad: float = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class IkResult:
    """Best posture found.

    Attributes:
      joint_pos: (n,) posture within the limits.
      is_solved: both tolerances are met.
      pos_error_m: remaining position error.
      rot_error_rad: remaining error of the constrained directions.
      starts: starts used.
    """

    joint_pos: Array
    is_solved: bool
    pos_error_m: float
    rot_error_rad: float
    starts: int


def solve_ik(
    chain: SerialChain,
    pos_m: Array,
    rot: Array,
    start: Array,
    *,
    task: Task = "pose",
    posture: Array | None = None,
    rng: np.random.Generator | None = None,
    config: IkConfig | None = None,
) -> IkResult:
    """Find a posture that brings the tool to a pose.

    Args:
      chain: the joints.
      pos_m: (3,) wanted tool position in the base frame.
      rot: (3, 3) wanted tool axes in the base frame.
      start: (n,) first guess.
      task: ``pose`` fixes all axes, ``axis`` the tool's x axis only (free roll), ``yaw_free`` all but the turn about
        the base frame's vertical, ``position`` no axis.
      posture: (n,) preferred posture; None takes the middle of the limits.
      rng: for the restarts; without it the restarts are drawn from a fixed seed.
      config: tuning.

    Raises:
      ValueError: an argument is not finite or has the wrong shape.
    """
    c = config or IkConfig()
    pos_m, rot, start = np.asarray(pos_m, float), np.asarray(rot, float), np.asarray(start, float)
    if pos_m.shape != (3,) or rot.shape != (3, 3) or start.shape != (chain.size,):
        shapes = f"{pos_m.shape}, {rot.shape}, {start.shape}"
        raise ValueError(f"solve_ik: got shapes {shapes}; expected (3,), (3, 3), ({chain.size},).")
    if not (np.isfinite(pos_m).all() and np.isfinite(rot).all() and np.isfinite(start).all()):
        raise ValueError("solve_ik: target and start must be finite numbers.")
    rng = rng or np.random.default_rng(0)
    rest = 0.5 * (chain.low + chain.high) if posture is None else np.asarray(posture, float)
    best: IkResult | None = None
    for attempt in range(c.restarts + 1):
        q = chain.clip(start) if attempt == 0 else rng.uniform(chain.low, chain.high)
        result = _descend(chain, pos_m, rot, q, task, rest, c, attempt + 1)
        if best is None or (result.pos_error_m + result.rot_error_rad < best.pos_error_m + best.rot_error_rad):
            best = result
        if result.is_solved:
            return result
    assert best is not None
    return best


def _descend(
    chain: SerialChain, pos_m: Array, rot: Array, q: Array, task: Task, rest: Array, c: IkConfig, starts: int
) -> IkResult:
    pos_error = rot_error = np.inf
    span = chain.high - chain.low
    step = np.zeros(chain.size)
    for _ in range(c.max_steps):
        here, turn = chain.tool(q)
        error, rows = _error(pos_m, rot, here, turn, task)
        pos_error = float(np.linalg.norm(error[:3]))
        rot_error = float(np.linalg.norm(error[3:]))
        if pos_error <= c.pos_tol_m and rot_error <= c.rot_tol_rad:
            break
        jac = rows @ chain.jacobian(q)
        # Joints at a limit that would leave it are taken out, so that the others do the work.
        free = np.ones(chain.size, dtype=bool)
        for _ in range(3):
            j = jac * free
            inverse = j.T @ np.linalg.inv(j @ j.T + c.damping**2 * min(1.0, pos_error + rot_error) * np.eye(len(j)))
            step = inverse @ error
            step = step + (np.eye(chain.size) - inverse @ j) @ (c.posture_gain * (rest - q) * free)
            step *= min(1.0, c.step_max / max(float(np.abs(step).max()), 1e-12))
            leaving = free & (((q + step) < chain.low - 1e-9 * span) | ((q + step) > chain.high + 1e-9 * span))
            if not leaving.any():
                break
            free &= ~leaving
        q = chain.clip(q + step)
    here, turn = chain.tool(q)
    error, _ = _error(pos_m, rot, here, turn, task)
    pos_error, rot_error = float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:]))
    is_solved = pos_error <= c.pos_tol_m and rot_error <= c.rot_tol_rad
    return IkResult(joint_pos=q, is_solved=is_solved, pos_error_m=pos_error, rot_error_rad=rot_error, starts=starts)


def _error(pos_m: Array, rot: Array, here: Array, turn: Array, task: Task) -> tuple[Array, Array]:
    """Return the error (m,) of the constrained directions and the rows (m, 6) that pick them from a twist."""
    gap = pos_m - here
    if task == "position":
        return gap, np.eye(6)[:3]
    if task == "axis":
        # The shortest turn that brings the tool's x axis onto the wanted one; turns about that axis are free.
        axis = np.cross(turn[:, 0], rot[:, 0])
        angle = np.arctan2(np.linalg.norm(axis), turn[:, 0] @ rot[:, 0])
        axis = axis / max(float(np.linalg.norm(axis)), 1e-12) * angle
        if np.linalg.norm(axis) < 1e-12 and turn[:, 0] @ rot[:, 0] < 0.0:
            axis = np.pi * turn[:, 1]
        frame = turn[:, 1:].T
        rows = np.zeros((5, 6))
        rows[:3, :3], rows[3:, 3:] = np.eye(3), frame
        return np.concatenate([gap, frame @ axis]), rows
    vector = log_rotation(rot @ turn.T)
    if task == "yaw_free":
        # Compare where the vertical points in the tool: a turn about it changes nothing.
        up = turn @ (rot.T @ np.array([0.0, 0.0, 1.0]))
        axis = np.cross(up, np.array([0.0, 0.0, 1.0]))
        length = float(np.linalg.norm(axis))
        angle = float(np.arctan2(length, up[2]))
        axis = axis / length * angle if length > 1e-12 else (np.array([np.pi, 0, 0]) if up[2] < 0 else np.zeros(3))
        return np.concatenate([gap, axis[:2]]), np.eye(6)[:5]
    return np.concatenate([gap, vector]), np.eye(6)


def straight_line(
    chain: SerialChain, start: Array, pos_m: Array, rot: Array, *, step_m: float = 0.02, jump_max: float = 0.3
) -> Array | None:
    """Return postures (k, n) that move the tool straight from a posture to a pose, or None if it cannot follow.

    The orientation turns evenly from that of ``start`` to ``rot``.

    Args:
      chain: the joints.
      start: (n,) posture at the beginning.
      pos_m: (3,) end of the line in the base frame.
      rot: (3, 3) tool axes at the end.
      step_m: spacing of the postures along the line.
      jump_max: largest change of a joint between two postures.
    """
    here, turn = chain.tool(start)
    rotvec = log_rotation(rot @ turn.T)
    count = max(int(np.ceil(np.linalg.norm(pos_m - here) / step_m)), int(np.ceil(np.linalg.norm(rotvec) / 0.1)), 1)
    config = IkConfig(restarts=0, posture_gain=0.0)
    line = [np.asarray(start, dtype=np.float64)]
    for part in np.linspace(0.0, 1.0, count + 1)[1:]:
        goal = here + part * (pos_m - here)
        found = solve_ik(chain, goal, exp_rotation(part * rotvec) @ turn, line[-1], config=config)
        if not found.is_solved or np.abs(found.joint_pos - line[-1]).max() > jump_max:
            return None
        line.append(found.joint_pos)
    return np.stack(line)
