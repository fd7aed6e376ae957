"""Every kernel lowers for CPU, CUDA and TPU, and none can be added without being tried here."""

import dataclasses
import importlib
import inspect
import pkgutil
import typing
from functools import partial

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

from herald_jax import kernels
from herald_jax.kernels import (
    admission,
    bm25,
    cancellation,
    credit_checks,
    detectors,
    draws,
    edits,
    features,
    groups,
    lexical,
    margins,
    membership,
    multinomial,
    offers,
    pairs,
    policy_loss,
    postings,
    programs,
    resample,
    retrieval_credit,
    rewards,
    sums,
    topk,
)
from herald_jax.types import DETECTORS, Labels, Offer, Oracle, State, Visible

PLATFORMS = ("cpu", "cuda", "tpu")

# Sizes of the axes of `types.arrays`; R is beyond what `member` writes out.
B, R, C, S, K, E, J, M, P = 8, 70, 5, 4, 3, 20, 6, 4, 2
D, X = len(DETECTORS), len(rewards.COLUMNS)


def array(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, dtype)


def ints(*shape):
    return array(jnp.int32, *shape)


def floats(*shape):
    return array(jnp.float32, *shape)


def bits(*shape):
    return array(jnp.bool_, *shape)


def words(*shape):
    return array(jnp.uint32, *shape)


# One trajectory with `batch` (), a block of them with (B,).
def visible(*batch):
    return Visible(
        retrieved=ints(R, *batch),
        citations=ints(C, *batch),
        searches=ints(*batch),
        invalid=ints(*batch),
        repeated=bits(*batch),
        answer_tokens=ints(*batch),
        malformed=ints(*batch),
    )


def oracle(*batch):
    return Oracle(
        support=ints(S, *batch),
        em=floats(*batch),
        f1=floats(*batch),
        gold_em=floats(*batch),
        gold_f1=floats(*batch),
        gold_tokens=ints(*batch),
        is_gold=bits(*batch),
    )


def state(*batch):
    return State(
        ids=ints(C, *batch),
        present=bits(C, *batch),
        real=bits(C, *batch),
        retrieved=bits(C, *batch),
        first=bits(C, *batch),
        searches=ints(*batch),
        invalid=ints(*batch),
        repeated=bits(*batch),
        answer_tokens=ints(*batch),
        malformed=ints(*batch),
    )


def offer(*shape):
    return Offer(ids=ints(*shape), present=bits(*shape), real=bits(*shape), retrieved=bits(*shape))


def labels(offered, *batch):
    return Labels(
        support=bits(C, *batch),
        offered_support=bits(*offered, *batch),
        n_support=ints(*batch),
        f1=floats(*batch),
        gold_f1=floats(*batch),
        gold_tokens=ints(*batch),
        is_gold=bits(*batch),
    )


def flags(*batch):
    return detectors.Flags(**{name: bits(*batch) for name in DETECTORS})


def measured(*batch):
    names = features.Features.__dataclass_fields__
    return rewards.Measured(
        features=features.Features(**{name: floats(*batch) for name in names}),
        flags=flags(*batch),
    )


def moved(*batch):
    return {name: bits(*batch) if name in DETECTORS else floats(*batch) for name in rewards.COLUMNS}


LIMITS = detectors.Limits(min_searches=ints(), max_searches=ints())
WEIGHTS = features.FeatureWeights(precision=floats(), recall=floats(), hacking=floats(D))
RULES = programs.Rules(limits=LIMITS, weights=WEIGHTS)
CONTRACTS = rewards.Contracts(weights=floats(J, X), base=floats(J))
RULE = pairs.Rule(target=bits(D), watched=bits(D))
STEPS = cancellation.Steps(start=ints(P), end=ints(P), added=floats(P, D))

# Passage 0 holds terms 0, 0 and 1; passage 1 holds term 2.
TOKENS, OFFSETS = np.array([0, 0, 1, 2], np.int32), np.array([0, 3, 4])
FREQUENCY = postings.term_frequency(TOKENS, OFFSETS, 3)
BM25 = bm25.build_bm25(FREQUENCY)
LEXICAL = lexical.build_lexical(FREQUENCY)

# Tokens, searches and evidence nodes of a rollout; groups of a batch.
T, Q, N, G = 24, 5, 4, 3
KEY = jax.eval_shape(lambda: jax.random.key(0))

ONE_ID = (state(), offer(), labels(()))
A_LIST = (state(), offer(C), labels((C,)))
OFFERED = (visible(), oracle(), ints())

LOWERED = {
    "admission.admitted": (partial(admission.admitted, width=K), (ints(P), visible(), ints())),
    "bm25.bm25_topk": (partial(bm25.bm25_topk, k=4), (BM25, ints(B, 6), ints(B, R))),
    "cancellation.readmit": (
        cancellation.readmit,
        (floats(J, E, B), bits(E, B), flags(B), moved(E, B), STEPS, floats()),
    ),
    "credit_checks.order_reversals": (
        credit_checks.order_reversals,
        (floats(M), floats(M), bits(M)),
    ),
    "credit_checks.reach": (
        credit_checks.reach,
        (floats(M), ints(M), floats(M), bits(M), bits(M), bits()),
    ),
    "detectors.detect": (detectors.detect, (state(), bits(C), LIMITS)),
    "detectors.nonempty_final": (detectors.nonempty_final, (state(),)),
    "draws.draw_indices": (draws.draw_indices, (words(), words(), words(64), words())),
    "draws.draw_words": (draws.draw_words, (words(), words(), words(64))),
    "draws.replicate_keys": (draws.replicate_keys, (words(2), words(), words())),
    "draws.scale_to_range": (draws.scale_to_range, (words(64), words())),
    "edits.citation_drop": (edits.citation_drop, ONE_ID),
    "edits.citation_laundering": (edits.citation_laundering, ONE_ID),
    "edits.fake_id": (edits.fake_id, ONE_ID),
    "edits.gold_stress": (edits.gold_stress, A_LIST),
    "edits.repeated_query": (edits.repeated_query, ONE_ID),
    "edits.same_final_deletion": (edits.same_final_deletion, ONE_ID),
    "edits.slot_positions": (edits.slot_positions, (state(),)),
    "edits.unsupported_citation": (edits.unsupported_citation, A_LIST),
    "features.featurise": (
        features.featurise,
        (state(), flags(), bits(C), ints(), floats(), WEIGHTS),
    ),
    "features.grounding": (features.grounding, (state(), bits(C), ints(), WEIGHTS)),
    "features.hacking_rate": (features.hacking_rate, (flags(), WEIGHTS)),
    "groups.batch_advantages": (
        partial(groups.batch_advantages, scale="batch"),
        (floats(G, M), bits(G, M)),
    ),
    "groups.combine_rewards": (groups.combine_rewards, (floats(J, B), floats(J))),
    "groups.group_advantages": (groups.group_advantages, (floats(M), bits(M))),
    "groups.is_flat": (groups.is_flat, (floats(M), bits(M))),
    "groups.signal": (partial(groups.signal, weight=1.2), (floats(M), bits(M), bits(M))),
    "groups.signals": (
        partial(groups.signals, scale="batch"),
        (floats(D, G, M), bits(D, G, M), bits(G, M), floats(D)),
    ),
    "groups.usable": (groups.usable, (floats(B), ints(B))),
    "lexical.lexical_topk": (
        partial(lexical.lexical_topk, k=4),
        (LEXICAL, ints(B, 6), ints(B, R)),
    ),
    "margins.first": (margins.first, (floats(E, B), bits(E, B))),
    "margins.worst": (margins.worst, (floats(J, E, B), bits(E, B))),
    "membership.describe_labels": (membership.describe_labels, (ints(C), ints(K), oracle())),
    "membership.describe_offer": (membership.describe_offer, (ints(K), visible(), ints())),
    "membership.describe_state": (membership.describe_state, (visible(), ints())),
    "membership.first_occurrence": (membership.first_occurrence, (ints(C),)),
    "membership.is_real": (membership.is_real, (ints(C), ints())),
    "membership.look": (membership.look, (ints(C), ints(R))),
    "membership.looked_up": (partial(membership.looked_up, count=C), (array(jnp.uint8, C),)),
    "membership.member": (membership.member, (ints(C), ints(R))),
    "membership.size": (membership.size, (ints(C),)),
    "multinomial.category_counts": (
        multinomial.category_counts,
        (multinomial.batches(np.array([3, 500])), words(2), words(32)),
    ),
    "offers.compact": (partial(offers.compact, width=C), (ints(R), bits(R))),
    "offers.one_of_each_class": (partial(offers.one_of_each_class, width=2), OFFERED),
    "offers.support": (partial(offers.support, width=C), OFFERED),
    "offers.unretrieved_support": (partial(offers.unretrieved_support, width=K), OFFERED),
    "offers.unsupported": (partial(offers.unsupported, width=C), OFFERED),
    "pairs.judge_pair": (pairs.judge_pair, (bits(), flags(), moved(), RULE)),
    "policy_loss.kl": (policy_loss.kl, (floats(T), floats(T), bits(T))),
    "policy_loss.objective": (
        partial(policy_loss.objective, clip_low=0.2, clip_high=0.28),
        (floats(T), floats(T), floats(T), bits(T)),
    ),
    "policy_loss.token_advantages": (
        policy_loss.token_advantages,
        (floats(), bits(T), floats(Q), ints(T)),
    ),
    "policy_loss.token_weights": (
        partial(policy_loss.token_weights, aggregation="row_mean"),
        (bits(B, T),),
    ),
    "postings.sum_postings": (postings.sum_postings, (BM25.postings, ints(B, 6))),
    "programs.admit": (
        partial(programs.admit, admit=admission.admitted, width=K),
        (ints(P, B), visible(B), ints()),
    ),
    "programs.apply": (
        partial(programs.apply, edit=edits.citation_laundering, each=True),
        (state(B), offer(K, B), labels((K,), B)),
    ),
    "programs.count_nonfinite": (programs.count_nonfinite, (floats(J, E, B), bits(E, B))),
    "programs.count_readmitted": (
        programs.count_readmitted,
        (floats(J, E, B), bits(E, B), measured(B), moved(E, B), STEPS, floats()),
    ),
    "programs.describe": (programs.describe, (visible(B), ints())),
    "programs.describe_offer": (
        programs.describe_offer,
        (ints(K, B), visible(B), oracle(B), ints()),
    ),
    "programs.judge": (programs.judge, (bits(E, B), measured(B), moved(E, B), RULE)),
    "programs.measure_edits": (
        partial(
            programs.measure_edits,
            edit=edits.unsupported_citation,
            each=False,
            columns=rewards.COLUMNS,
        ),
        (state(B), offer(C, B), labels((C,), B), RULES),
    ),
    "programs.measure_originals": (programs.measure_originals, (state(B), oracle(B), RULES)),
    "programs.oracle_offers": (
        partial(programs.oracle_offers, offers=offers.unsupported, width=C),
        (visible(B), oracle(B), ints()),
    ),
    "programs.pair_margins": (
        programs.pair_margins,
        (measured(B), moved(E, B), CONTRACTS, floats(E, B)),
    ),
    "programs.pick": (
        programs.pick,
        (measured(B), moved(E, B), CONTRACTS, floats(E, B), bits(E, B)),
    ),
    "programs.rewards": (programs.rewards, (CONTRACTS, measured(B), floats(B))),
    "programs.sum_questions": (
        partial(programs.sum_questions, width=M),
        (floats(J, B), bits(B), floats(), floats()),
    ),
    "resample.counted_sums": (
        resample.counted_sums,
        (array(jnp.int8, 16, 128), array(jnp.int8, 32, 128), ints(32, 64)),
    ),
    "resample.missing_draws": (
        partial(resample.missing_draws, wide=128, most=64),
        (array(jnp.int8, 32, 128), ints(32), words(), ints(), words(32), words(32)),
    ),
    "resample.poisson_counts": (
        partial(resample.poisson_counts, wide=128),
        (words(32), words(32), words(resample.COUNTS), words()),
    ),
    "resample.stage_keys": (resample.stage_keys, (words(2), words(32), words())),
    "retrieval_credit.answer_match": (retrieval_credit.answer_match, (bits(Q), bits(Q))),
    "retrieval_credit.coverage": (
        retrieval_credit.coverage,
        (ints(Q, R), ints(N, S), bits(N, N), bits(N)),
    ),
    "retrieval_credit.events": (retrieval_credit.events, (floats(Q), bits(Q))),
    "retrieval_credit.kept": (partial(retrieval_credit.kept, "no_flat"), (bits(G),)),
    "retrieval_credit.local_credit": (
        retrieval_credit.local_credit,
        (floats(M, Q), bits(M, Q), ints(M, Q), ints(M, Q), bits(M)),
    ),
    "retrieval_credit.permute": (
        retrieval_credit.permute,
        (floats(M, Q), bits(M, Q), KEY),
    ),
    "retrieval_credit.scalar_bonus": (retrieval_credit.scalar_bonus, (floats(Q),)),
    "rewards.column": (partial(rewards.column, name="grounding"), (measured(B),)),
    "rewards.margin": (
        rewards.margin,
        (CONTRACTS, measured(B), moved(E, B), floats(E, B)),
    ),
    "rewards.measure": (
        rewards.measure,
        (state(), bits(C), ints(), floats(), LIMITS, WEIGHTS),
    ),
    "rewards.reward": (rewards.reward, (CONTRACTS, measured(B), floats(B))),
    "sums.question_sums": (
        lambda margins, rows, scale, tolerance: sums.question_sums(
            margins, rows, scale=scale, tie_tolerance=tolerance
        ),
        (floats(J, M), bits(M), floats(), floats()),
    ),
    "topk.exclude_codes": (topk.exclude_codes, (ints(B, 256), ints(B, R))),
    "topk.topk": (partial(topk.topk, k=4), (ints(B, 256),)),
}


def takes_arrays(hint) -> bool:
    """Whether a type is, or holds, an array of the device."""
    if hint is jax.Array:
        return True
    if dataclasses.is_dataclass(hint):
        fields = typing.get_type_hints(hint).values()
        return any(takes_arrays(field) for field in fields)
    return any(takes_arrays(part) for part in typing.get_args(hint))


def device_functions(module):
    """The public functions of a module that take arrays of the device, by name."""
    found = {}
    for name, value in vars(module).items():
        if name.startswith("_") or not callable(value) or inspect.isclass(value):
            continue
        function = inspect.unwrap(value)
        if getattr(function, "__module__", None) != module.__name__:
            continue
        hints = typing.get_type_hints(function)
        named = inspect.signature(function).parameters
        assert set(named) <= set(hints), f"{module.__name__}.{name} has untyped parameters"
        jitted = hasattr(value, "lower")
        if jitted or any(takes_arrays(hints[parameter]) for parameter in named):
            found[name] = value
    return found


def every_kernel():
    return {
        f"{info.name}.{name}"
        for info in pkgutil.iter_modules(kernels.__path__)
        for name in device_functions(importlib.import_module(f"herald_jax.kernels.{info.name}"))
    }


def test_none_is_left_out():
    assert every_kernel() == set(LOWERED)


def test_what_counts_as_a_kernel():
    # Jitted or not, arrays inside a pytree or not; what takes NumPy or numbers alone is the host's.
    assert {"bm25_topk"} == set(device_functions(bm25))
    assert {"first", "worst"} == set(device_functions(margins))
    assert {"question_sums"} == set(device_functions(sums))
    assert takes_arrays(bm25.Bm25Index) and takes_arrays(rewards.Moved)
    assert takes_arrays(jax.Array | None) and not takes_arrays(np.ndarray)


@pytest.mark.parametrize("name", LOWERED)
def test_lowers(name):
    function, arguments = LOWERED[name]
    program = jax.jit(function)
    for platform in PLATFORMS:
        exported = jax.export.export(program, platforms=[platform])(*arguments)
        assert exported.platforms == (platform,)
        # x64 stays off: nothing wide on any device.
        assert "f64" not in exported.mlir_module()
