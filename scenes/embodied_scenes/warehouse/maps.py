"""Map files of the path-finding world: MovingAI ``.map`` and POGEMA's YAML of named maps.

MovingAI (and the League of Robot Runners, which uses it): four header lines, then rows of ``.`` and ``G`` (free),
``S`` and ``E`` (free, service points), ``@ O T W`` (blocked).
POGEMA: ``.`` free, ``#`` blocked, ``!`` free but neither start nor goal, ``@`` free start cell, ``$`` free goal cell,
letters are free cells with a start (lower case) or goal (upper case) of one agent. The same sign ``@`` means a wall in
one format and a free cell in the other, so the format follows from the file's form, never from its signs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from embodied_scenes.warehouse.grid import CELL_M, CellKind, GridMap

MOVINGAI = {
    **dict.fromkeys(".G", CellKind.FREE),
    **dict.fromkeys("SE", CellKind.SLOT),
    **dict.fromkeys("@OTW", CellKind.WALL),
}
POGEMA = {
    ".": CellKind.FREE,
    "!": CellKind.FREE,
    "#": CellKind.RACK,
    "@": CellKind.STATION,
    "$": CellKind.SLOT,
    **{chr(c): CellKind.STATION for c in range(ord("a"), ord("z") + 1)},
    **{chr(c): CellKind.SLOT for c in range(ord("A"), ord("Z") + 1)},
}


class MapError(ValueError):
    """A map file is malformed; the message names file, line and column."""


def load_map(path: str | Path, name: str | None = None, *, cell_m: float = CELL_M) -> GridMap:
    """Read one map.

    Args:
      path: a MovingAI ``.map``, or a POGEMA ``.yaml`` of named maps.
      name: which map of a YAML file; may be left out where it holds one.
      cell_m: edge of a cell in metres.

    Raises:
      MapError: the file cannot be read or is malformed.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MapError(f"{path}: cannot be read as text ({error}).") from error
    if path.suffix in (".yaml", ".yml"):
        maps = parse_pogema_yaml(text, str(path), cell_m=cell_m)
        if name is None and len(maps) == 1:
            return next(iter(maps.values()))
        if name not in maps:
            shown = ", ".join(sorted(maps)[:8])
            raise MapError(f"{path}: holds {len(maps)} maps ({shown} …) and none is called {name!r}. Name one of them.")
        return maps[name]
    return parse_movingai(text, str(path), name or path.stem, cell_m=cell_m)


def parse_movingai(text: str, source: str, name: str, *, cell_m: float = CELL_M) -> GridMap:
    """Read the text of a MovingAI map.

    Raises:
      MapError: header or rows are malformed.
    """
    lines = text.splitlines()
    header: dict[str, str] = {}
    start = None
    for number, line in enumerate(lines[:10], start=1):
        key, _, value = line.strip().partition(" ")
        if key == "map":
            start = number
            break
        header[key] = value.strip()
    if start is None or "height" not in header or "width" not in header:
        missing = [k for k in ("height", "width") if k not in header] + ([] if start else ["map"])
        raise MapError(
            f"{source}:1:1: the MovingAI header lacks {', '.join(missing)}. "
            "Expected the lines 'type octile', 'height H', 'width W', 'map'."
        )
    size = []
    for key in ("height", "width"):
        if not header[key].isdigit() or int(header[key]) < 1:
            line = next(n for n, t in enumerate(lines, start=1) if t.strip().startswith(key))
            raise MapError(f"{source}:{line}:{len(key) + 2}: {key} must be a positive number, got {header[key]!r}.")
        size.append(int(header[key]))
    rows = lines[start:]
    while rows and not rows[-1].strip():
        rows.pop()
    if len(rows) != size[0]:
        raise MapError(f"{source}:{start + len(rows)}:1: the header says height {size[0]}, got {len(rows)} rows.")
    if rows and len(rows[0]) != size[1]:
        raise MapError(f"{source}:{start + 1}:{len(rows[0]) + 1}: the header says width {size[1]}, got {len(rows[0])}.")
    return _build(rows, MOVINGAI, source, start + 1, 1, name, cell_m)


def parse_pogema(text: str, source: str, name: str, *, first_line: int = 1, cell_m: float = CELL_M) -> GridMap:
    """Read the text of one POGEMA map.

    Raises:
      MapError: a row is ragged or a sign unknown.
    """
    rows = text.splitlines()
    while rows and not rows[-1].strip():
        rows.pop()
    skip = 0
    while skip < len(rows) and not rows[skip].strip():
        skip += 1
    rows = rows[skip:]
    indent = len(rows[0]) - len(rows[0].lstrip(" ")) if rows else 0
    cut = [r[indent:].rstrip() if r[:indent].isspace() or not indent else r.strip() for r in rows]
    return _build(cut, POGEMA, source, first_line + skip, indent + 1, name, cell_m)


def parse_pogema_yaml(text: str, source: str, *, cell_m: float = CELL_M) -> dict[str, GridMap]:
    """Read all maps of a POGEMA YAML file.

    Raises:
      MapError: it is no YAML mapping of names to texts, or a map is malformed.
    """
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        raise MapError(f"{source}:{where}: is not valid YAML ({getattr(error, 'problem', error)}).") from error
    if not isinstance(root, yaml.MappingNode) or not root.value:
        raise MapError(f"{source}:1:1: expected a YAML mapping of map names to texts of rows.")
    lines = text.splitlines()
    maps: dict[str, GridMap] = {}
    for key, value in root.value:
        if not isinstance(value, yaml.ScalarNode) or value.style not in ("|", ">", None, '"', "'"):
            at = value.start_mark
            raise MapError(f"{source}:{at.line + 1}:{at.column + 1}: map {key.value!r} must be a text of rows (`|-`).")
        if value.style == "|":
            first, last = value.start_mark.line + 1, value.end_mark.line + (1 if value.end_mark.column else 0)
            body = "\n".join(lines[first:last])
        else:
            first, body = value.start_mark.line, value.value
        maps[key.value] = parse_pogema(body, source, key.value, first_line=first + 1, cell_m=cell_m)
    return maps


def _build(
    rows: list[str],
    signs: dict[str, CellKind],
    source: str,
    first_line: int,
    first_column: int,
    name: str,
    cell_m: float,
) -> GridMap:
    if not rows or not rows[0]:
        raise MapError(
            f"{source}:{first_line}:{first_column}: map {name!r} is empty. Give it at least one row of cells."
        )
    if not cell_m > 0:
        raise MapError(f"{source}: cell_m must be positive, got {cell_m}.")
    width = len(rows[0])
    kinds = np.zeros((len(rows), width), np.uint8)
    for r, row in enumerate(rows):
        for c, sign in enumerate(row[:width]):
            if sign not in signs:
                raise MapError(
                    f"{source}:{first_line + r}:{first_column + c}: unknown sign {sign!r} in map {name!r}. "
                    f"Known: {' '.join(s for s in signs if not s.isalpha() or len(signs) < 20)}."
                )
            kinds[r, c] = int(signs[sign])
        if len(row) != width:
            raise MapError(
                f"{source}:{first_line + r}:{first_column + min(len(row), width)}: ragged row in map {name!r}: "
                f"{len(row)} cells, the first row has {width}. Make all rows equally long."
            )
    grid = GridMap(name=name, kinds=kinds, cell_m=cell_m)
    if not grid.free.any():
        raise MapError(
            f"{source}:{first_line}:{first_column}: map {name!r} has no free cell: no robot could stand in it."
        )
    return grid
