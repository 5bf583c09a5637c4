"""Any shapes, types and lengths survive a round trip through a dataset."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

from embodied.record.lerobot.layout import NUMERIC, Feature
from embodied.record.lerobot.reader import LeRobotDataset
from embodied.record.lerobot.writer import LeRobotWriter

FEATURES = st.dictionaries(
    st.text("abcxyz._", min_size=1, max_size=8).filter(lambda k: not k.startswith(".") and k != "index"),
    st.tuples(st.sampled_from([*NUMERIC, "image"]), st.lists(st.integers(1, 4), min_size=1, max_size=4)),
    min_size=1,
    max_size=3,
)


@settings(max_examples=25, deadline=None)
@given(FEATURES, st.lists(st.integers(1, 6), min_size=1, max_size=3), st.integers(1, 240), st.integers(0, 2**32 - 1))
def test_every_shape_survives(kinds, lengths, fps, seed):
    rng = np.random.default_rng(seed)
    features = {
        key: Feature(dtype=dtype, shape=(shape[0], shape[-1], 3) if dtype == "image" else tuple(shape))
        for key, (dtype, shape) in kinds.items()
    }
    episodes = [
        {
            key: rng.integers(0, 2 if f.dtype == "bool" else 100, (n, *f.shape)).astype(
                np.uint8 if f.dtype == "image" else f.dtype
            )
            for key, f in features.items()
        }
        for n in lengths
    ]
    with tempfile.TemporaryDirectory() as folder:
        with LeRobotWriter(Path(folder) / "set", fps=fps, features=features) as writer:
            for columns in episodes:
                writer.add_episode(columns, task="t")
        data = LeRobotDataset(Path(folder) / "set")
        assert data.num_frames == sum(lengths)
        for index, columns in enumerate(episodes):
            got = data.episode(index)
            for key, values in columns.items():
                assert got[key].dtype == values.dtype
                assert np.array_equal(got[key], values)
            stamps = got["timestamp"][:, 0]
            assert np.allclose(stamps, got["frame_index"][:, 0] / fps, atol=1e-6)
