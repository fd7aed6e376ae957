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
from herald_jax.kernels.lexical import lexical_topk
from herald_jax.search import CorpusIndex
from herald_jax.types import BoundaryError, Edit

POOL = tiny.pool([tiny.log("t")])


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
    ],
)
def test_a_generator_either_ranks_or_offers_from_gold_labels(parts):
    with pytest.raises(ValueError, match="generator 'odd' must be"):
        Generator(name="odd", **parts)


class Watch:
    """What ran: texts that were ranked for, and stages that were reported."""

    def __init__(self):
        self.searches = []
        self.stages = []

    def rank(self, corpus, ranking, index, texts, *rest, **options):
        self.searches.append(list(texts))
        return RANK(corpus, ranking, index, texts, *rest, **options)

    def progress(self, stage, done, total):
        self.stages.append(stage)

    def refused(self, *, match):
        with pytest.raises(BoundaryError, match=match) as error:
            run(POOL, tiny.manifest(), progress=self.progress)
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
    report = run(POOL, tiny.manifest(), progress=watch.progress).data
    assert watch.searches == [["who built the mill Ada"]]
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
    support = jnp.asarray(POOL.support[0])

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
