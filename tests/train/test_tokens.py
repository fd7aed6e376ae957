"""Ids, pieces of bytes, and where characters come from."""

import numpy as np
import pytest
from tokenizers import Tokenizer, models

from herald_jax.train import chat
from herald_jax.train.tokens import Tokeniser, TokeniserError

TEXTS = ["the river bank of Ümlaut town", "a river, a bank", "naïve café 東京 river"] * 4


@pytest.fixture(scope="module")
def tokeniser():
    return Tokeniser.train(TEXTS, 320)


@pytest.mark.parametrize("text", ["a river bank", "café 東京", "", "<search>x</search>", "\n\t é"])
def test_pieces_of_a_text_are_its_bytes(tokeniser, text):
    ids = tokeniser.encode(text)
    assert b"".join(tokeniser.pieces[i] for i in ids) == text.encode()
    assert tokeniser.decode(ids) == text


def test_tags_are_single_tokens(tokeniser):
    for tag in chat.SPECIAL:
        assert len(tokeniser.encode(tag)) == 1


def test_places_count_characters_that_are_complete(tokeniser):
    ids = [i for part in ("東", "x") for i in tokeniser.encode(part)]
    text, ends = tokeniser.places(ids)
    assert text == "東x"
    assert len(ends) == len(ids) + 1
    assert ends[0] == 0 and ends[-1] == 2
    # A character of several bytes is complete with the last of them.
    alone = tokeniser.encode("東")
    assert tokeniser.places(alone)[1].tolist() == [0] * len(alone) + [1]


def test_bytes_that_are_no_text_are_replaced_and_placed(tokeniser):
    lone = tokeniser.encode("東")[0]
    text, ends = tokeniser.places([lone, *tokeniser.encode("x")])
    assert text.endswith("x") and "�" in text
    assert ends[-1] == len(text)
    assert np.all(np.diff(ends) >= 0)
    assert tokeniser.places([]) == ("", pytest.approx([0]))


def test_ids_that_encode_otherwise_drift(tokeniser):
    ids = tokeniser.encode("river bank")
    assert not tokeniser.drifts(ids)
    letters = [i for c in "river bank" for i in tokeniser.encode(c)]
    assert tokeniser.drifts(letters)


def test_the_same_texts_give_the_same_ids(tokeniser):
    assert Tokeniser.train(TEXTS, 320).to_json() == tokeniser.to_json()


def test_a_file_comes_back(tokeniser, tmp_path):
    tokeniser.save(tmp_path / "tokenizer.json")
    assert Tokeniser.load(tmp_path / "tokenizer.json").encode("a river") == tokeniser.encode(
        "a river"
    )


def test_what_is_no_tokeniser_is_refused(tmp_path):
    with pytest.raises(TokeniserError, match="No such file"):
        Tokeniser.load(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(TokeniserError, match=r"bad\.json"):
        Tokeniser.load(tmp_path / "bad.json")
    with pytest.raises(TokeniserError, match=r"im_start"):
        Tokeniser(Tokenizer(models.BPE()))
