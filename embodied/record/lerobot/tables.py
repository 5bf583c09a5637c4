"""Between NumPy and Arrow: how each feature lies in a Parquet table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.errors import require
from embodied.record.lerobot.layout import DatasetError, Feature
from embodied.record.lerobot.pictures import decode_png


def arrow_type(feature: Feature) -> Any:  # noqa: ANN401 -- pyarrow has no stubs
    """Return the Arrow type of one cell: scalars for the shape (1,), fixed lists for vectors, lists of lists beyond."""
    pa = require("pyarrow", "train")
    if feature.dtype == "image":
        return pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    if feature.dtype == "string":
        return pa.string()
    kind = pa.bool_() if feature.dtype == "bool" else pa.from_numpy_dtype(feature.dtype)
    if feature.shape == (1,):
        return kind
    if len(feature.shape) == 1:
        return pa.list_(kind, feature.shape[0])
    for _ in feature.shape:
        kind = pa.list_(kind)
    return kind


def data_schema(features: Mapping[str, Feature]) -> Any:  # noqa: ANN401
    """Return the schema of the data files, with the note that tells Hugging Face ``datasets`` what is a picture."""
    pa = require("pyarrow", "train")
    stored = {key: f for key, f in features.items() if f.dtype != "video"}
    schema = pa.schema([(key, arrow_type(f)) for key, f in stored.items()])
    if any(len(f.shape) > 1 and not f.is_visual for f in stored.values()):
        return schema  # lists of lists: readers take their shape from meta/info.json
    note = {"info": {"features": {key: _note(f) for key, f in stored.items()}}}
    return schema.with_metadata({"huggingface": json.dumps(note)})


def column_array(feature: Feature, values: NDArray[Any] | Sequence[Any]) -> Any:  # noqa: ANN401
    """Return the Arrow array of a column: (N, …) numbers, N strings, or N PNG files as bytes."""
    pa = require("pyarrow", "train")
    if feature.dtype == "image":
        return pa.array([{"bytes": png, "path": None} for png in values], type=arrow_type(feature))
    if feature.dtype == "string":
        return pa.array([str(v) for v in values], type=pa.string())
    numbers = np.asarray(values)
    flat = pa.array(np.ascontiguousarray(numbers).reshape(-1))
    if feature.shape == (1,):
        return flat
    if len(feature.shape) == 1:
        return pa.FixedSizeListArray.from_arrays(flat, feature.shape[0])
    for axis in range(numbers.ndim - 1, 0, -1):
        rows = int(np.prod(numbers.shape[:axis]))
        offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * numbers.shape[axis])
        flat = pa.ListArray.from_arrays(offsets, flat)
    return flat


def column_values(key: str, feature: Feature, column: Any) -> NDArray[Any]:  # noqa: ANN401
    """Return (N, *shape) of a column read back: the opposite of :func:`column_array`; pictures are decoded.

    Raises:
      DatasetError: the cells have not the declared shape.
    """
    pa = require("pyarrow", "train")
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    count = len(array)
    if feature.dtype == "image":
        images = np.empty((count, *feature.shape), dtype=np.uint8)
        for row, cell in enumerate(array.field("bytes").to_pylist()):
            image = decode_png(cell or b"")
            if image.shape != feature.shape:
                raise DatasetError(f"Picture {row} of {key!r} is {image.shape}, declared is {feature.shape}.")
            images[row] = image
        return images
    if feature.dtype == "string":
        return np.array(array.to_pylist(), dtype=object).reshape(count, 1)
    while pa.types.is_list(array.type) or pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type):
        array = array.flatten()
    numbers = array.to_numpy(zero_copy_only=False)
    if numbers.size != count * int(np.prod(feature.shape)):
        raise DatasetError(f"Column {key!r} holds {numbers.size} numbers in {count} rows, declared is {feature.shape}.")
    return numbers.astype(feature.dtype, copy=False).reshape(count, *feature.shape)


def tasks_table(tasks: Sequence[str]) -> Any:  # noqa: ANN401
    """Return the table of tasks: the text is the index, as pandas stores one."""
    pa = require("pyarrow", "train")
    table = pa.table({"task_index": pa.array(range(len(tasks)), pa.int64()), "task": pa.array(tasks, pa.string())})
    columns = [("task_index", "int64", "int64"), ("task", "unicode", "object")]
    note = {
        "index_columns": ["task"],
        "column_indexes": [
            {"name": None, "field_name": None, "pandas_type": "unicode", "numpy_type": "object", "metadata": None}
        ],
        "columns": [
            {"name": n, "field_name": n, "pandas_type": p, "numpy_type": d, "metadata": None} for n, p, d in columns
        ],
        "creator": {"library": "pyarrow", "version": pa.__version__},
        "pandas_version": "2.0.0",
    }
    return table.replace_schema_metadata({"pandas": json.dumps(note)})


def _note(feature: Feature) -> dict[str, Any]:
    if feature.dtype == "image":
        return {"_type": "Image"}
    value = {"dtype": feature.dtype, "_type": "Value"}
    if feature.shape == (1,):
        return value
    return {"feature": value, "length": feature.shape[0], "_type": "Sequence"}
