"""Runs inside the emulated board and, for comparison, here: loads a package and drives the loopback robot in lockstep.

Prints one JSON object. Imports nothing but the standard library, NumPy, onnxruntime and ``embodied_deploy``.
"""

from __future__ import annotations

import json
import math
import platform
import sys
import time
from dataclasses import replace

FOREIGN = ("torch", "mujoco", "pydantic", "typer", "onnx", "embodied", "embodied_scenes")


def main(path: str, steps: int) -> None:
    """Load, check parity, answer the parity vectors one by one, then run the edge runtime for ``steps`` periods."""
    start_s = time.monotonic()
    import embodied_deploy  # noqa: F401

    is_light = not {"numpy", "onnxruntime"} & set(sys.modules)
    import numpy as np
    import onnxruntime

    from embodied_controllers.contract import RobotState
    from embodied_deploy.package.load import load_package
    from embodied_deploy.policy.session import PolicySession
    from embodied_deploy.robots.loopback import LoopbackRobot
    from embodied_deploy.robots.stand_in import loopback_for
    from embodied_deploy.runtime.host import HostConfig, drive
    from embodied_deploy.runtime.loop import LoopConfig

    import_s = time.monotonic() - start_s
    package = load_package(path)
    session = PolicySession(package)
    outputs: dict[str, list[list[float]]] = {t.name: [] for t in package.contract.outputs}
    for row in range(package.parity.count):
        answer = session.infer({name: values[row : row + 1] for name, values in package.parity.inputs.items()})
        for name, rows in outputs.items():
            rows.append(np.asarray(answer[name], np.float64).reshape(-1).tolist())

    class Swaying(LoopbackRobot):
        """Moves on its own along sines of many periods, so that the policy is asked something new each time."""

        def read(self) -> RobotState:
            state = super().read()
            wave = [math.sin(state.time_s * (0.7 + 0.31 * i) + i) for i in range(16)]
            spec = self.observation_spec
            sway = np.resize(np.array(wave), len(spec.joint_names))
            half = 0.4 * np.nan_to_num(np.minimum(spec.joint_high - spec.joint_low, 1.0))
            turn = np.array([1.0, 0.1 * wave[0], 0.1 * wave[1], 0.3 * wave[2]])
            return replace(
                state,
                joint_pos=np.clip(state.joint_pos + half * sway, spec.joint_low, spec.joint_high),
                joint_vel=state.joint_vel + 0.3 * sway[::-1],
                base_pos_world_m=state.base_pos_world_m + np.array(wave[:3]),
                base_quat_wxyz=turn / np.linalg.norm(turn),
                base_vel_body_mps=state.base_vel_body_mps + 0.5 * np.array(wave[3:6]),
                base_angvel_body_radps=state.base_angvel_body_radps + 0.3 * np.array(wave[6:9]),
                signals={n: v + wave[i % 16] for i, (n, v) in enumerate(state.signals.items())},
            )

    actions: list[list[float]] = []
    modes: list[str] = []

    def record(tick: int, state: RobotState | None, applied: np.ndarray, mode: str) -> None:
        del tick, state
        actions.append(applied.tolist())
        modes.append(mode)

    if package.contract.kind == "controller":
        config = HostConfig(realtime=False, ticks=steps, loop=LoopConfig(recorder=record))
        plain = loopback_for(package.contract)
        specs = plain.action_spec, plain.observation_spec, plain.kind, plain.dt_ctrl_s
        drive(package, Swaying(*specs, senses=plain.sense()), config)
    told = {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "onnxruntime": onnxruntime.__version__,
        "package": package.contract.name,
        "precision": package.contract.precision,
        "parity_error": package.parity_error,
        "parity_atol": package.contract.parity_atol,
        "bare_import_is_light": is_light,
        "foreign_modules": sorted(set(FOREIGN) & set(sys.modules)),
        "import_s": import_s,
        "modes": sorted(set(modes)),
        "outputs": outputs,
        "actions": actions,
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
