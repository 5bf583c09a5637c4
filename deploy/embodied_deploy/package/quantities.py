"""What the names of a contract's entries mean: the source of a value, its unit and its frame. Standard library only.

An observation entry is a path. Unit and frame follow from it and are not free to choose; a contract that says otherwise
is refused. Angles are radians everywhere: there is no path in degrees.

====================================  =====================================================  ========  =======
path                                  value                                                  unit      frame
====================================  =====================================================  ========  =======
``joint_pos.<joint>``                 position of a joint of the observation spec            m, rad    joint
``joint_vel.<joint>``                 its velocity                                           m/s …     joint
``base_pos_world_m.<x|y|z>``          position of the base                                   m         world
``base_quat_wxyz.<w|x|y|z>``          its orientation                                        1         world
``base_rot_world_body.<row><col>``    the same as a matrix, body to world                    1         world
``base_vel_body_mps.<x|y|z>``         linear velocity in the body frame                      m/s       body
``base_vel_world_mps.<x|y|z>``        the same in the world frame                            m/s       world
``base_angvel_body_radps.<x|y|z>``    angular velocity                                       rad/s     body
``gravity_body.<x|y|z>``              unit vector that points down                           1         body
``signal.<name>``                     a scalar of ``RobotState.signals``                     by name   by name
``last_action.<name>``                action applied last                                    by name   by name
``goal.<key>.<axis or index>``        a set-point of the caller                              by key    by key
``to_goal_pos_world_m.<x|y|z>``       ``goal.pos_world_m`` less the base's position          m         world
``to_goal_pos_body_m.<x|y|z>``        the same in the body frame                             m         body
``ranges.<name>.<index>``             a range reading                                        m         body
====================================  =====================================================  ========  =======
"""

from __future__ import annotations

from dataclasses import dataclass

from embodied_deploy.package.contract import Entry

_SUFFIXES = {
    "m": "m", "rad": "rad", "mps": "m/s", "radps": "rad/s", "mps2": "m/s2", "radps2": "rad/s2", "n": "N", "nm": "N m",
    "kg": "kg", "s": "s", "hz": "Hz", "px": "px", "v": "V", "a": "A", "ratio": "1",
}  # fmt: skip
_RATES = {"m": "m/s", "rad": "rad/s"}
_XYZ = ("x", "y", "z")
_MATRIX = tuple(f"{row}{column}" for row in range(3) for column in range(3))
_FIXED = {
    "base_pos_world_m": (_XYZ, "m", "world"),
    "base_quat_wxyz": (("w", "x", "y", "z"), "1", "world"),
    "base_rot_world_body": (_MATRIX, "1", "world"),
    "base_vel_body_mps": (_XYZ, "m/s", "body"),
    "base_vel_world_mps": (_XYZ, "m/s", "world"),
    "base_angvel_body_radps": (_XYZ, "rad/s", "body"),
    "gravity_body": (_XYZ, "1", "body"),
    "to_goal_pos_world_m": (_XYZ, "m", "world"),
    "to_goal_pos_body_m": (_XYZ, "m", "body"),
}
_NAMED = ("joint_pos", "joint_vel", "signal", "last_action")


@dataclass(frozen=True, slots=True)
class Channel:
    """One path, taken apart.

    Attributes:
      source: first word of the path.
      key: joint, signal, action, goal or range sensor; empty for the base.
      index: position in the source's vector, -1 where the key finds it.
      unit: what the value is measured in.
      frame: what it is expressed in.
    """

    source: str
    key: str
    index: int
    unit: str
    frame: str


def parse(path: str) -> Channel:
    """Return the channel of a path.

    Raises:
      ValueError: no such path; the message says what may stand there.
    """
    source, _, rest = path.partition(".")
    if source in _FIXED:
        axes, unit, frame = _FIXED[source]
        if rest not in axes:
            raise ValueError(f"{path!r}: {rest!r} is no axis of {source}; expected one of {', '.join(axes)}")
        return Channel(source, "", axes.index(rest), unit, frame)
    if source in _NAMED and rest and "." not in rest:
        unit, frame = action_quantity(rest) if source == "last_action" else _named_quantity(source, rest)
        return Channel(source, rest, -1, unit, frame)
    key, _, part = rest.partition(".")
    if source == "ranges" and key and part.isdecimal():
        return Channel(source, key, int(part), "m", "body")
    if source == "goal" and key:
        return _goal(path, key, part)
    known = ", ".join((*_FIXED, *_NAMED, "goal", "ranges"))
    raise ValueError(
        f"{path!r} is no channel; a path begins with one of {known}, see embodied_deploy.package.quantities"
    )


def action_quantity(name: str) -> tuple[str, str]:
    """Return unit and frame of an action: ``arm_0_rad`` is of a joint, ``forward_mps`` body, ``thrust_1_n`` rotor."""
    unit = unit_of(name)
    if (frame := _frame_of(name)) != "none":
        return unit, frame
    if unit in ("m", "rad"):
        return unit, "joint"
    if unit in ("m/s", "rad/s"):
        return unit, "body"
    return unit, "rotor" if name.startswith("thrust") else "none"


def unit_of(name: str) -> str:
    """Return the unit that the last word of a name stands for, ``1`` when it stands for none."""
    return _SUFFIXES.get(name.rpartition("_")[2], "1")


def observation_entry(path: str, low: float, high: float) -> Entry:
    """Return the entry of an observation path with the unit and frame that it implies.

    Args:
      path: see the table of this module.
      low: smallest value the policy was trained for, in that unit.
      high: largest value.

    Raises:
      ValueError: no such path.
    """
    channel = parse(path)
    return Entry(name=path, unit=channel.unit, frame=channel.frame, low=float(low), high=float(high))


def action_entry(name: str, low: float, high: float) -> Entry:
    """Return the entry of an action with the unit and frame that its name implies.

    Args:
      name: an entry of the robot's action spec.
      low: smallest value the policy may put out, in that unit.
      high: largest value.
    """
    unit, frame = action_quantity(name)
    return Entry(name=name, unit=unit, frame=frame, low=float(low), high=float(high))


def _named_quantity(source: str, name: str) -> tuple[str, str]:
    unit = unit_of(name)
    if source == "joint_pos":
        return unit, "joint"
    if source == "joint_vel":
        return _RATES.get(unit, f"{unit}/s"), "joint"
    return unit, _frame_of(name)


def _goal(path: str, key: str, part: str) -> Channel:
    axes = ("x", "y", "yaw") if key.endswith("_xyyaw") else ("w", "x", "y", "z") if key.endswith("_wxyz") else _XYZ
    if part.isdecimal():
        index = int(part)
    elif part in axes:
        index = axes.index(part)
    else:
        raise ValueError(f"{path!r}: {part!r} is no axis of {key}; expected one of {', '.join(axes)} or an index")
    unit = unit_of(key)
    if key.endswith("_xyyaw"):
        unit = "rad" if index == 2 else "m"
    return Channel("goal", key, index, unit, _frame_of(key))


def _frame_of(name: str) -> str:
    words = name.split("_")
    return next((w for w in ("world", "body", "tool", "cam") if w in words), "none")
