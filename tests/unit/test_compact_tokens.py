"""Tokens and decoding of the compact planner: what the device reads and says."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embodied_deploy.errors import ObservationError
from embodied_deploy.planner.decoding import GRAMMAR, decode, not_again
from embodied_deploy.planner.images import IMAGE_HW, shrink
from embodied_deploy.planner.vocabulary import PAD, UNKNOWN, Call, Vocabulary, words_of

WORDS = Vocabulary(
    words=("<pad>", "<unknown>", "put", "into", ".", "cup_1", "sink"),
    skills=("go_to", "pick", "place", "done"),
    things=("-", "cup_1", "mug_1"),
    furniture=("-", "sink", "counter"),
    relations=("-", "in", "on"),
    outcomes=("success", "not_found", "other"),
)
FLOATS = st.floats(-30, 30, width=32)
SCORES = st.tuples(*(st.lists(FLOATS, min_size=n, max_size=n).map(np.array) for n in (4, 3, 3, 3)))


@given(st.text(max_size=300), st.integers(1, 40))
def test_any_text_becomes_tokens_of_the_vocabulary(text, length):
    tokens = WORDS.instruction(text, length)
    assert tokens.shape == (length,)
    assert tokens.dtype == np.int64
    assert ((tokens >= 0) & (tokens < len(WORDS.words))).all()
    used = min(len(words_of(text)), length)
    assert (tokens[:used] != PAD).all()
    assert (tokens[used:] == PAD).all()


def test_words_names_and_signs_are_told_apart():
    assert words_of("Put cup_1 into SINK.") == ["put", "cup_1", "into", "sink", "."]
    assert WORDS.instruction("Put cup_1 into sink.", 8).tolist() == [2, 5, 3, 6, 4, 0, 0, 0]


def test_unknown_words_have_one_token_and_long_texts_are_cut():
    assert WORDS.instruction("hurl cup_1", 3).tolist() == [UNKNOWN, 5, PAD]
    assert WORDS.instruction("put " * 50, 6).tolist() == [2] * 6


def test_last_call_tokens():
    assert WORDS.last_call(None, "").tolist() == [0] * 5
    assert WORDS.last_call(Call("pick", "mug_1"), "success").tolist() == [2, 2, 0, 0, 0]
    assert WORDS.last_call(Call("place", "cup_1", "sink", "in"), "bewitched").tolist() == [3, 1, 1, 1, 2]
    assert WORDS.last_call(Call("fly", "broom"), "not_found").tolist() == [0, 0, 0, 0, 1]


def test_a_contract_without_a_list_is_refused():
    lists = WORDS.lists()
    assert Vocabulary.of(lists) == WORDS
    with pytest.raises(ValueError, match="furniture"):
        Vocabulary.of({**lists, "furniture": ()})
    with pytest.raises(ValueError, match="things"):
        Vocabulary.of({**lists, "things": ("-", "cup_1", "cup_1")})


@given(SCORES)
def test_every_answer_keeps_to_the_grammar(scores):
    call, confidence = decode(WORDS, scores)
    assert 0.0 <= confidence <= 1.0 + 1e-9
    given_lists = {"things": call.thing, "furniture": call.furniture, "relations": call.relation}
    for name, word in given_lists.items():
        assert bool(word) == (name in GRAMMAR[call.skill])
        assert word != "-"


@given(SCORES)
def test_a_refused_call_is_not_said_again(scores):
    call, _ = decode(WORDS, scores)
    again, _ = decode(WORDS, scores, refused=call)
    assert again != call


def test_only_a_failure_of_the_body_is_worth_the_same_call_at_once():
    call = Call("pick", "cup_1")
    assert not_again(call, "grasp_failed") is None
    for outcome in ("success", "not_found", "precondition", "other"):
        assert not_again(call, outcome) == call
    assert not_again(None, "") is None


def test_the_best_call_weighs_skill_and_arguments():
    skills = np.log(np.array([0.05, 0.5, 0.4, 0.05]))  # pick before place
    things = np.log(np.array([0.02, 0.49, 0.49]))
    sure = np.log(np.array([0.01, 0.98, 0.01]))
    call, confidence = decode(WORDS, (skills, things, sure, sure))
    assert call == Call("pick", "cup_1")
    assert confidence == pytest.approx(0.5 * 0.49)


def test_scores_that_do_not_fit_are_refused():
    good = [np.zeros(4), np.zeros(3), np.zeros(3), np.zeros(3)]
    with pytest.raises(ValueError, match="things must be 3"):
        decode(WORDS, [good[0], np.zeros(5), *good[2:]])
    with pytest.raises(ValueError, match="finite"):
        decode(WORDS, [np.full(4, np.nan), *good[1:]])


def test_images_are_averaged_down():
    rows, columns = IMAGE_HW
    image = np.zeros((2 * rows, 2 * columns, 3), dtype=np.uint8)
    image[::2, ::2] = 200
    assert (shrink(image) == 50).all()
    small = np.zeros((rows, columns, 3), dtype=np.uint8)
    assert shrink(small) is small


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((100, 160, 3), np.uint8),
        np.zeros((120, 160), np.uint8),
        np.zeros((120, 160, 3), np.float32),
        np.zeros((240, 160, 3), np.uint8),
        np.zeros((60, 80, 3), np.uint8),
    ],
)
def test_other_images_are_refused(image):
    with pytest.raises(ObservationError, match="120 x 160"):
        shrink(image)


def test_the_device_side_loads_neither_torch_nor_embodied():
    code = (
        "import sys, embodied_deploy.planner.vocabulary, embodied_deploy.planner.decoding, "
        "embodied_deploy.planner.planner; "
        "bad = {'torch', 'embodied', 'mujoco', 'pydantic', 'onnxruntime'} & {m.split('.')[0] for m in sys.modules}; "
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
