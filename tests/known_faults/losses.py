"""Faults of the policy's loss: masked tokens that are felt, means of means, clips that do not bind.

Of `masked-loss` and `clip-and-kl`, the losses of the rules are sums of the kernels' tokens with
`token_weights`, as the trainer takes them.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from herald_jax.kernels.policy_loss import Aggregation, kl, objective, token_weights
from known_faults.cases import Case, number

AGGREGATIONS: dict[str, Aggregation] = {
    "token_mean": "token_mean",
    "seq_mean_token_mean": "row_mean",
    "seq_sum_norm": "fixed_length",
}


def masked_tokens_and_means(case: Case, folder: Path) -> None:
    given, expected = case.given, case.expected
    mask = jnp.array(given["policy_mask"]) == 1
    logp, old = (
        jnp.array([[float(x) for x in row] for row in given[key]], jnp.float32)
        for key in ("logp", "old_logp")
    )
    advantage = jnp.array(given["advantages"], jnp.float32)
    assert int(mask.sum()) == expected["n_trainable"]

    def loss(logp, mask, weights, rows=slice(None)):
        each = jnp.broadcast_to(advantage[:, None], logp.shape)[rows]
        # No clip in this rule: one that never binds.
        found = objective(
            logp[rows], old[rows], each, mask[rows], clip_low=1.0, clip_high=float("inf")
        )
        return -jnp.sum(weights[rows] * found.value)

    for name, aggregation in AGGREGATIONS.items():
        weights = token_weights(mask, aggregation, given["L"])
        whole = loss(logp, mask, weights)
        np.testing.assert_allclose(whole, number(expected[name]), rtol=1e-5)
        pieces = [loss(logp, mask, weights, np.array(rows, int)) for rows in given["micro"]]
        np.testing.assert_allclose(sum(pieces), whole, rtol=1e-6)
    gradient = jax.grad(loss)(logp, mask, token_weights(mask, "token_mean"))
    right = [[number(value) for value in row] for row in expected["grad_token_mean_wrt_logp"]]
    np.testing.assert_allclose(gradient, right, rtol=1e-5)
    assert not np.asarray(gradient)[~np.asarray(mask)].any()
    nothing = jnp.zeros_like(mask)
    for aggregation in AGGREGATIONS.values():
        value, gradient = jax.value_and_grad(loss)(
            logp, nothing, token_weights(nothing, aggregation, given["L"])
        )
        assert value == expected["all_masked_batch"]["loss"]
        assert (np.asarray(gradient) == expected["all_masked_batch"]["grad"]).all()


def clips_and_kl(case: Case, folder: Path) -> None:
    given, expected = case.given, case.expected
    logp, old, reference, advantage = (
        jnp.array(given[key], jnp.float32) for key in ("logp", "old_logp", "ref_logp", "advantages")
    )
    mask = np.array(given["policy_mask"]) == 1
    everywhere = np.ones(mask.shape, bool)
    weights = token_weights(mask[None], "token_mean")[0]
    options = {"clip_low": given["eps_low"], "clip_high": given["eps_high"]}
    # The case states tokens outside the policy's mask too; a mean runs over those inside.
    for on in (everywhere, mask):
        found = objective(logp, old, advantage, on, **options)
        right = np.array([number(value) for value in expected["objective"]])
        np.testing.assert_allclose(found.value, np.where(on, right, 0), rtol=1e-5)
        for side in ("clipped_low", "clipped_high"):
            flags = np.array(expected[side]) == 1
            assert np.asarray(getattr(found, side)).tolist() == (flags & on).tolist()
        penalty = kl(logp, reference, on, cap=given["kl_cap"])
        # Beyond the cap the case allows 1e-4.
        np.testing.assert_allclose(penalty, np.where(on, expected["kl"], 0), rtol=1e-4, atol=1e-7)
        slope = jax.grad(lambda x, on=on: jnp.sum(kl(x, reference, on, cap=given["kl_cap"])))(logp)
        right = np.where(on, expected["kl_grad_wrt_logp"], 0)
        np.testing.assert_allclose(slope, right, rtol=1e-5, atol=1e-6)
        assert (np.asarray(slope)[right == 0] == 0).all()
    near = np.array(expected["kl"]) < 1e3
    np.testing.assert_allclose(
        np.asarray(penalty)[near & mask],
        np.array(expected["kl"])[near & mask],
        rtol=1e-5,
        atol=1e-7,
    )
    np.testing.assert_allclose(
        -jnp.sum(weights * found.value), number(expected["mean_loss"]), rtol=1e-5
    )
    np.testing.assert_allclose(jnp.sum(weights * penalty), expected["mean_kl"], rtol=1e-4)
    bound = (found.clipped_low | found.clipped_high).astype(jnp.float32)
    np.testing.assert_allclose(
        jnp.sum(weights * bound), number(expected["clip_fraction"]), rtol=1e-6
    )
