"""Text rules against the plain definitions, and where the rules part ways."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import text as plain

from herald_jax.data.text import answer_tokens, normalise, query_key, tokens

# Mostly ASCII with the characters that rules turn on; any character now and then.
TEXTS = st.text(
    st.one_of(
        st.sampled_from("aAnthe THE\t\n'\"-,.$+_019ßİſﬁ½①　\u00a0\u200b–“”’《》ée\u0301Ａ\x1c"),
        st.characters(),
    ),
    max_size=30,
)


@given(TEXTS, st.sampled_from(["unicode", "squad"]))
def test_normalise_is_the_plain_definition(text, rules):
    assert normalise(text, rules) == plain.normalise(text, rules)


@given(st.text(st.characters(max_codepoint=127)), st.sampled_from(["unicode", "squad"]))
def test_normalise_of_ascii_is_the_plain_definition(text, rules):
    assert normalise(text, rules) == plain.normalise(text, rules)


@given(TEXTS)
def test_query_key_is_the_plain_definition(text):
    assert query_key(text) == plain.query_key(text)


@given(TEXTS)
def test_tokens_are_the_plain_definition(text):
    assert tokens(text) == plain.tokens(text)


@given(TEXTS)
def test_blank_texts_have_no_tokens_and_no_key(text):
    assert (answer_tokens(text) == 0) == (text.strip() == "")
    assert (query_key(text) == "") == (text.strip() == "")


def test_no_single_character_folds_to_white_space_without_being_it():
    odd = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if (query_key(chr(code)) == "") != chr(code).isspace()
    ]
    assert odd == []


def test_every_character_is_a_token_character_by_its_category():
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.is_normalized("NFKC", character) and character.casefold() == character:
            kept = unicodedata.category(character)[0] in "LNM"
            assert tokens(f"é {character}") == (["é", character] if kept else ["é"]), hex(code)


@pytest.mark.parametrize(
    ("text", "unicode", "squad"),
    [
        ("The  Answer!", "answer", "answer"),
        ("The A", "the a", ""),  # articles stay when nothing else is left; published: they go
        ("?!", "", ""),
        ("“The Wire”", "wire", "“ wire”"),  # published: only ASCII punctuation is deleted
        ("a-b", "ab", "ab"),  # punctuation goes before articles are looked for
        ("$5", "5", "5"),  # a symbol, but ASCII punctuation
        ("€5", "€5", "€5"),  # a symbol and no punctuation
    ],
)
def test_normal_forms_by_hand(text, unicode, squad):
    assert normalise(text) == unicode
    assert normalise(text, "squad") == squad


def test_unknown_rules_are_refused():
    with pytest.raises(ValueError, match="unicode, squad"):
        normalise("x", "SQuAD")


def test_tokens_by_hand():
    assert tokens("Port_of Dunmore's 1934–35") == ["port", "of", "dunmore", "s", "1934", "35"]
    assert tokens("Ｐｏｒｔ STRASSE Straße") == ["port", "strasse", "strasse"]
