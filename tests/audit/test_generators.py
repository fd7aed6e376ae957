"""The registry of candidate generators, and what one that cheats is told."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny_audits as tiny

from herald_jax.audit import run
from herald_jax.audit.generators import GENERATORS, Generator
from herald_jax.audit.operators import FAKE, GENERATOR, OPERATORS, Operator
from herald_jax.audit.registry import Registry
from herald_jax.kernels import edits, offers
from herald_jax.kernels.admission import admitted
from herald_jax.kernels.lexical import lexical_topk
from herald_jax.search import CorpusIndex
from herald_jax.types import BoundaryError, Edit

PASSAGES = {"a": "Who built it", "b": "Ada built the mill", "c": "the mill", "d": ""}


def pool():
    """A pool of one trajectory, of which nothing was audited before."""
    return tiny.pool([tiny.log("t")], passages=PASSAGES)


def test_a_second_generator_of_one_name_is_an_error():
    registry = Registry("generator")
    registry.register(GENERATORS["lexical"])
    with pytest.raises(ValueError, match="generator 'lexical' is registered already"):
        registry.register(GENERATORS["lexical"])


@pytest.mark.parametrize(
    "parts",
    [
        {"oracle": False},
        {"oracle": False, "offer": offers.one_of_each_class},
        {"oracle": True},
        {"oracle": True, "ranking": lexical_topk},
        {"oracle": False, "ranking": lexical_topk, "offer": offers.one_of_each_class},
        {"oracle": True, "admit": admitted},
        {"oracle": False, "ranking": lexical_topk, "admit": admitted},
        {"oracle": True, "admit": admitted, "offer": offers.one_of_each_class},
    ],
)
def test_a_generator_ranks_or_takes_what_is_proposed_or_offers_from_gold_labels(parts):
    with pytest.raises(ValueError, match="generator 'odd' must be"):
        Generator(name="odd", **parts)


class Watch:
    """What ran: terms that were ranked for without which passages, and stages that were told."""

    def __init__(self):
        self.searches = []
        self.stages = []

    def rank(self, corpus, ranking, index, queries, exclude, k, **options):
        words = list(corpus.vocabulary)
        for row in range(len(queries)):
            terms = [words[term] for term in queries[row].tolist()]
            self.searches.append((terms, set(exclude[row].tolist())))
        return RANK(corpus, ranking, index, queries, exclude, k, **options)

    def progress(self, stage, done, total):
        self.stages.append(stage)

    def refused(self, *, match):
        with pytest.raises(BoundaryError, match=match) as error:
            run(pool(), tiny.manifest(), progress=self.progress)
        assert self.searches == self.stages == []
        return str(error.value)


RANK = CorpusIndex.rank


@pytest.fixture
def watch(monkeypatch):
    watch = Watch()
    monkeypatch.setattr(CorpusIndex, "rank", lambda *args, **options: watch.rank(*args, **options))
    return watch


@pytest.fixture
def plant(monkeypatch):
    """Puts a plug-in in the place of a registered one, for one test."""

    def replaced(registry, name, plugin):
        kind = {"GENERATORS": "generator", "OPERATORS": "operator"}[name]
        fresh = Registry(kind)
        for known in registry.values():
            fresh.register(plugin if known.name == plugin.name else known)
        # The package's attribute `run` is the function: ask for the module of that name.
        monkeypatch.setattr(importlib.import_module("herald_jax.audit.run"), name, fresh)

    return replaced


def lexical_with(ranking):
    return Generator(name="lexical", oracle=False, ranking=ranking, index="lexical_index")


def test_the_planted_generator_runs_when_it_is_honest(plant, watch):
    plant(GENERATORS, "GENERATORS", lexical_with(lexical_topk))
    report = run(pool(), tiny.manifest(), progress=watch.progress).data
    # Question and answer, in order; `a` was retrieved and cited.
    assert watch.searches == [(["who", "built", "the", "mill", "ada"], {0})]
    assert report["generators"]["lexical"]["reads"] == [
        "answer",
        "citations",
        "corpus",
        "question",
        "steps.query",
        "steps.retrieved",
        "steps.valid",
    ]


def test_a_generator_that_holds_the_labels_in_its_closure_is_refused(plant, watch):
    support = jnp.asarray(pool().questions.support[0])

    def ranking(index, query, taken, *, k):
        codes, scores = lexical_topk(index, query, taken, k=k)
        return jnp.where(codes == support[0], codes, codes), scores

    plant(GENERATORS, "GENERATORS", lexical_with(ranking))
    message = watch.refused(match="generator 'lexical' may read index, query, taken only")
    # The way it takes: out of the closure, through the comparison, to the first output.
    assert "<captured constant int32[2]> -> " in message
    assert " -> eq -> " in message
    assert message.splitlines()[1].endswith(" -> 0")


def test_a_generator_that_asks_the_host_is_refused(plant, watch):
    def ranking(index, query, taken, *, k):
        codes, scores = lexical_topk(index, query, taken, k=k)
        shape = jax.ShapeDtypeStruct(codes.shape, codes.dtype)
        return jax.pure_callback(lambda c: np.asarray(c), shape, codes), scores

    plant(GENERATORS, "GENERATORS", lexical_with(ranking))
    message = watch.refused(match="generator 'lexical'")
    assert "<host code behind pure_callback> -> pure_callback -> 0" in message


def test_a_visible_operator_that_reads_labels_is_refused(plant, watch):
    def edit(state, offer, labels) -> Edit:
        done = edits.fake_id(state, offer, labels)
        return Edit(
            made=done.made & jnp.any(labels.support),
            state=done.state,
            offered=done.offered,
            gold=done.gold,
        )

    planted = Operator(name="fake_id", edit=edit, target="fake_citation", offers=FAKE, each=True)
    plant(OPERATORS, "OPERATORS", planted)
    # It is named, with the label, and the output that the label reaches.
    message = watch.refused(match="operator 'fake_id' may read visible, passages, offered, fake")
    (leak,) = [line for line in message.splitlines() if line.startswith("  ")]
    assert leak.strip().startswith("oracle.support -> ")
    assert leak.endswith(" -> made")


def test_a_visible_operator_whose_labels_decide_through_its_offer_is_refused(plant, watch):
    planted = Operator(
        name="citation_laundering",
        edit=edits.citation_laundering,
        target="cited_not_retrieved",
        offers=offers.unretrieved_support,
        each=True,
    )
    plant(OPERATORS, "OPERATORS", planted)
    message = watch.refused(match="operator 'citation_laundering'")
    assert "oracle.support -> " in message
    assert " -> state.ids" in message
    assert OPERATORS["citation_laundering"].offers == GENERATOR
