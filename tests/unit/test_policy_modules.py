"""The blocks of policies against second formulations."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from embodied.train.commit import UNKNOWN, training_commit  # noqa: E402
from embodied.train.modules import ChunkHead, CnnTrunk, GruCell, Limiter, MlpTrunk, Normalizer  # noqa: E402


def test_normalizer_measures_and_limits():
    values = np.random.default_rng(0).normal(3.0, [0.1, 50.0], (500, 2))
    norm = Normalizer.of(values, limit=5.0)
    out = norm(torch.tensor(values, dtype=torch.float32)).numpy()
    assert np.allclose(out.mean(axis=0), 0, atol=1e-3)
    assert np.allclose(out.std(axis=0), 1, atol=1e-3)
    assert norm(torch.full((1, 2), 1e9)).max() == 5.0
    constant = Normalizer.of(np.ones((10, 1)))
    assert constant(torch.tensor([[1.001]])).item() == pytest.approx(1.0, rel=0.01)
    with pytest.raises(ValueError, match="finite"):
        Normalizer(np.array([np.nan]), np.ones(1))


@pytest.mark.parametrize("squash", ["tanh", "clip"])
def test_limiter_keeps_the_range(squash):
    low, high = np.array([0.0, -3.0]), np.array([0.15, 5.0])
    limiter = Limiter(low, high, squash)
    assert limiter(torch.zeros(1, 2)).numpy() == pytest.approx(np.array([[0.075, 1.0]]))
    out = limiter(torch.tensor([[1e9, -1e9]])).numpy()[0]
    assert out == pytest.approx(np.array([0.15, -3.0]))
    with pytest.raises(ValueError, match="low < high"):
        Limiter(high, low)
    with pytest.raises(ValueError, match="finite"):
        Limiter(low, np.array([np.inf, 1.0]))


def test_gru_cell_equals_the_fused_one():
    torch.manual_seed(0)
    ours, theirs = GruCell(5, 7), torch.nn.GRUCell(5, 7)
    theirs.load_state_dict(
        {
            "weight_ih": ours.from_input.weight,
            "weight_hh": ours.from_hidden.weight,
            "bias_ih": ours.from_input.bias,
            "bias_hh": ours.from_hidden.bias,
        }
    )
    x, h = torch.randn(4, 5), torch.randn(4, 7)
    assert torch.allclose(ours(x, h), theirs(x, h), atol=1e-6)


def test_cnn_takes_uint8_images_of_any_batch():
    torch.manual_seed(0)
    trunk = CnnTrunk(64, 48, num_features=9).eval()
    images = torch.randint(0, 256, (3, 64, 48, 3), dtype=torch.uint8)
    out = trunk(images)
    assert out.shape == (3, 9)
    assert torch.allclose(out[1:2], trunk(images[1:2]), atol=1e-5)
    assert not torch.allclose(out[0], out[1])


def test_heads_have_their_shapes():
    assert ChunkHead(6, 8, 3)(torch.zeros(2, 6)).shape == (2, 8, 3)
    assert MlpTrunk((4, 8, 2), "tanh", final_gain=0.0)(torch.ones(5, 4)).abs().max() == 0.0


def test_commit_of_a_tree(tmp_path):
    import subprocess

    assert training_commit(tmp_path) == UNKNOWN
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    (tmp_path / "file").write_text("one")
    for step in (["init", "-q"], ["add", "file"], ["commit", "-q", "-m", "One"]):
        subprocess.run([*git, *step], check=True)
    clean = training_commit(tmp_path)
    assert len(clean) == 40
    (tmp_path / "file").write_text("two")
    assert training_commit(tmp_path) == clean + "+changes"
