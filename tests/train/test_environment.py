"""The search environment: one search or many, short errors, passages cut to length."""

import numpy as np
import pytest
from train_setups import small_setup

from herald_jax.data.records import Passage
from herald_jax.train.chat import ERRORS, read_turn, tool_message
from herald_jax.train.environment import NOTHING, Environment
from herald_jax.train.tokens import Tokeniser
from herald_jax.types import PAD

PASSAGES = [
    Passage(passage_id=f"p{n}", text=f"The river of {town} is the {river}.", title=town)
    for n, (town, river) in enumerate(
        [("Ardmoor", "Ilsen"), ("Brode", "Kell"), ("Tolm", "Ilsen"), ("Rye", "Nar")]
    )
]
LONG = Passage(passage_id="p9", text="wool " * 3000 + "dear", title="Weavers")


@pytest.fixture(scope="module")
def tokeniser():
    texts = [f"{p.passage_id} {p.title} {p.text}" for p in PASSAGES] + ["wool dear Weavers …"]
    return Tokeniser.train(texts, 330)


@pytest.fixture(scope="module")
def environment(tokeniser):
    return Environment([*PASSAGES, LONG], tokeniser, results=2, passage_tokens=64)


def search(query):
    return read_turn(f"<search>{query}</search>")


def test_results_come_with_their_ids_best_first(environment, tokeniser):
    [reply] = environment.respond([search("river of Brode")])
    assert reply.retrieved[0] == "p1" and len(reply.retrieved) == 2
    said = tokeniser.decode(reply.tokens)
    # The title is not told twice, since no text begins with it.
    assert said.startswith(tool_message("").split("\n\n")[0])
    assert "[p1] Brode. The river of Brode is the Kell.\n[p" in said


def test_equal_scores_are_in_the_order_of_passage_ids(environment):
    [reply] = environment.respond([search("Ilsen")])
    assert reply.retrieved == ("p0", "p2")


def test_many_searches_are_the_single_ones(environment):
    queries = ["Kell", "river of Tolm", "Ilsen", "zzz", "Kell", "the Nar", "wool"]
    singly = [environment.respond([search(query)])[0] for query in queries]
    assert environment.respond([search(query) for query in queries]) == singly
    assert environment.search_all(queries) == singly


def test_a_large_batch_is_searched_as_single_queries_are():
    setup, _ = small_setup()
    queries = [task.question for task in setup.tasks.train]
    together = setup.environment.search_all(queries)
    assert len(queries) > 10
    for query, reply in list(zip(queries, together, strict=True))[::7]:
        assert setup.environment.search_all([query]) == [reply]


class Empty:
    """An index in which candidates have run out."""

    def bm25(self, queries, exclude, k):
        return np.full((len(queries), k), PAD, np.int32), None


def test_nothing_found_is_said(tokeniser):
    empty = Environment(PASSAGES, tokeniser, results=2, passage_tokens=64, index=Empty())
    [reply] = empty.respond([search("Kell")])
    assert reply.retrieved == ()
    assert tokeniser.decode(reply.tokens) == tool_message(NOTHING)


def test_a_corpus_smaller_than_the_results_comes_whole(tokeniser):
    few = Environment(PASSAGES[:2], tokeniser, results=5, passage_tokens=64)
    assert set(few.search_all(["Kell"])[0].retrieved) == {"p0", "p1"}


@pytest.mark.parametrize(
    ("turn", "failure"),
    [
        ("Kell", "no_action"),
        ("<search>Kell", "no_action"),
        ("<search>  </search>", "empty_query"),
        ("<think><search>Kell</search>", "unclosed_thought"),
    ],
)
def test_what_cannot_be_executed_gets_a_short_error(environment, tokeniser, turn, failure):
    # Beside a turn that can: replies keep their places.
    first, second, third = environment.respond([search("Kell"), read_turn(turn), search("Nar")])
    assert (first.retrieved[0], third.retrieved[0]) == ("p1", "p3")
    assert second.retrieved == ()
    assert tokeniser.decode(second.tokens) == tool_message(f"error: {ERRORS[failure]}")


def test_nobody_asks_nothing_comes(environment):
    assert environment.respond([]) == []
    assert environment.search_all([]) == []


def test_a_passage_is_cut_after_so_many_tokens(environment, tokeniser):
    [reply] = environment.respond([search("wool")])
    assert reply.retrieved[0] == "p9"
    said = tokeniser.decode(reply.tokens)
    assert "[p9] Weavers. wool wool" in said and " …\n[p0]" in said
    assert "dear" not in said
    shown = said[said.index("[p9]") : said.index(" …")]
    assert len(tokeniser.encode(shown)) == 64


def test_a_character_that_would_be_cut_in_two_is_left_out(tokeniser):
    hard = Passage(passage_id="p0", text="é" * 50, title="")
    for most in (9, 10):
        short = Environment([hard], tokeniser, results=1, passage_tokens=most)
        [reply] = short.search_all(["é" * 50])
        said = tokeniser.decode(reply.tokens)
        assert reply.retrieved == ("p0",)
        assert "\ufffd" not in said and "é …" in said


def test_a_long_text_comes_whole_where_there_is_room(tokeniser):
    wide = Environment([LONG], tokeniser, results=1, passage_tokens=20_000)
    [reply] = wide.search_all(["dear"])
    assert "dear" in tokeniser.decode(reply.tokens) and len(reply.tokens) > 3000
