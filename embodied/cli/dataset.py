"""``embodied dataset``: look at datasets in LeRobot v3 layout, make them from episode logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embodied.cli.output import print_json, print_table

app = typer.Typer(help="Datasets in LeRobot v3 layout.", no_args_is_help=True, rich_markup_mode=None)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command("info")
def info(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a dataset.")],
    verify: Annotated[bool, typer.Option(help="Read everything and count every frame.")] = True,
    as_json: Json = False,
) -> None:
    """Tell what a dataset holds; exit code 1 when it is torn, edited or does not hold what it says."""
    from embodied.record.lerobot.reader import LeRobotDataset

    data = LeRobotDataset(folder)
    if verify:
        data.verify()
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "episodes": data.num_episodes,
                "frames": data.num_frames,
                "fps": data.fps,
                "robot": data.robot_type,
                "tasks": list(data.tasks),
                "sha256": data.sha256,
                "features": {key: f.as_json() for key, f in data.features.items()},
                "verified": verify,
            }
        )
        return
    rows = [(key, f.dtype, " x ".join(map(str, f.shape)), " ".join(f.names or ())) for key, f in data.features.items()]
    state = "every frame counted" if verify else "not verified"
    title = f"{data.num_episodes} episodes, {data.num_frames} frames at {data.fps} Hz, {len(data.tasks)} tasks, {state}"
    print_table(title, ("feature", "type", "shape", "names"), rows)
    print(f"sha256 {data.sha256}")


@app.command("export")
def export(
    logs: Annotated[list[Path], typer.Argument(metavar="LOGS...", help="Episode logs (.mcap), one episode each.")],
    out: Annotated[Path, typer.Option(help="Folder of the new dataset; it must not exist.")],
    camera: Annotated[
        list[str] | None, typer.Option(help="Camera to film with; several times. The robots' own by default.")
    ] = None,
    size_px: Annotated[int, typer.Option(min=16, max=1024, help="Width and height of the pictures.")] = 128,
    fps: Annotated[int | None, typer.Option(min=1, help="Frames per second; the rate of the logs by default.")] = None,
    pictures: Annotated[bool, typer.Option(help="Film at all.")] = True,
    as_json: Json = False,
) -> None:
    """Write episode logs as one dataset: states, actions, the task in words and what the cameras saw."""
    from embodied.record.lerobot.export import export_logs

    cameras = None if pictures else ()
    data = export_logs(logs, out, cameras=tuple(camera) if camera and pictures else cameras, size_px=size_px, fps=fps)
    if as_json:
        print_json(
            {"folder": str(out), "episodes": data.num_episodes, "frames": data.num_frames, "sha256": data.sha256}
        )
    else:
        print(f"{out}  {data.num_episodes} episodes, {data.num_frames} frames, sha256 {data.sha256}")
