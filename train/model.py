"""The policy: a decoder of the Qwen3 family in Flax NNX (arXiv 2505.09388, section 2).

Grouped-query attention with an RMSNorm of every query and key head before rotary positions
(arXiv 2104.09864; the halves of a head are the two coordinates that turn), RMSNorm before each
block, SwiGLU (arXiv 2002.05202), no biases, an output head of its own or the embedding.

One method serves training and decoding: without a cache the keys are those of the chunk itself,
with one they are all its slots. Which keys a query sees is the caller's to say, by a mask; where a
token stands is said by its position. So rows of any length and gaps share one program. Norms,
softmax and logits are float32 whatever the type of the computation.
"""

from typing import Any, TypeAlias

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.typing import DTypeLike

from herald_jax.train.model_config import ModelConfig

# Keys lie with slots last and values with slots before the head: both products of a step then read
# memory in order.
LayerCache: TypeAlias = tuple[jax.Array, jax.Array]  # [B, KV, d, S], [B, KV, S, d]
Cache: TypeAlias = tuple[LayerCache, ...]
Slot: TypeAlias = tuple[LayerCache, jax.Array]  # and int32 [], where in it a chunk is written
State: TypeAlias = nnx.State[Any, Any]
Turn: TypeAlias = tuple[jax.Array, jax.Array]  # cosine and sine, float32 [B, L, 1, d / 2]

# Far below any score, and finite: a query that sees no key gets an even mean and no NaN.
_UNSEEN = -1e30


class Dense(nnx.Module):
    """x @ kernel, no bias; the kernel is [inputs, outputs]."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        rngs: nnx.Rngs,
        dtype: DTypeLike,
        param_dtype: DTypeLike,
        gain: float = 1.0,
    ):
        draw = nnx.initializers.normal(gain * inputs**-0.5)
        self.kernel = nnx.Param(draw(rngs.params(), (inputs, outputs), param_dtype))
        self.dtype = dtype

    def __call__(self, x: jax.Array) -> jax.Array:
        """[..., inputs] to [..., outputs]."""
        kernel = self.kernel[...].astype(self.dtype)
        # One axis of rows: the gradient of the kernel is then a product of two matrices as they
        # lie; with more axes the compiler for CPU first copies one of them, element by element.
        rows = x.astype(self.dtype).reshape(-1, x.shape[-1])
        return (rows @ kernel).reshape(*x.shape[:-1], kernel.shape[-1])


class Norm(nnx.Module):
    """RMSNorm over the last axis: x / sqrt(mean x^2 + eps) * scale."""

    def __init__(self, width: int, eps: float, *, dtype: DTypeLike, param_dtype: DTypeLike):
        self.scale = nnx.Param(jnp.ones(width, param_dtype))
        self.eps = eps
        self.dtype = dtype

    def __call__(self, x: jax.Array) -> jax.Array:
        """[..., width] to the same."""
        x = x.astype(jnp.float32)
        mean_square = jnp.mean(x**2, axis=-1, keepdims=True)
        scale = self.scale[...].astype(jnp.float32).reshape((1,) * (x.ndim - 1) + (-1,))
        return (x * jax.lax.rsqrt(mean_square + self.eps) * scale).astype(self.dtype)


def rotary(positions: jax.Array, config: ModelConfig) -> Turn:
    """Cosine and sine of position * theta^(-2i / d), i < d / 2.

    Args:
        positions: int32 [B, L].
        config: gives theta and d.
    """
    pair = np.arange(config.head_dim // 2)
    rates = config.rope_theta ** (-2.0 * pair / config.head_dim)
    angles = positions.astype(jnp.float32)[..., None, None] * rates.astype(np.float32).reshape(
        1, 1, 1, -1
    )
    return jnp.cos(angles), jnp.sin(angles)


def turned(x: jax.Array, turn: Turn) -> jax.Array:
    """Heads [B, L, N, d] turned by their positions; coordinates i and i + d / 2 are a pair."""
    cosine, sine = turn
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    halves = (first * cosine - second * sine, second * cosine + first * sine)
    return jnp.concatenate(halves, axis=-1).astype(x.dtype)


class Attention(nnx.Module):
    """Grouped-query attention; query head h reads key head h // (heads / kv_heads)."""

    def __init__(self, config: ModelConfig, *, rngs: nnx.Rngs, **types: Any):
        inner, kv = config.heads * config.head_dim, config.kv_heads * config.head_dim
        self.q = Dense(config.width, inner, rngs=rngs, **types)
        self.k = Dense(config.width, kv, rngs=rngs, **types)
        self.v = Dense(config.width, kv, rngs=rngs, **types)
        self.o = Dense(inner, config.width, rngs=rngs, gain=_residual_gain(config), **types)
        self.q_norm = Norm(config.head_dim, config.norm_eps, **types)
        self.k_norm = Norm(config.head_dim, config.norm_eps, **types)
        self.config = config

    def __call__(
        self,
        x: jax.Array,
        turn: Turn,
        mask: jax.Array,
        into: Slot | None = None,
    ) -> tuple[jax.Array, LayerCache]:
        """[B, L, width] to the same, and the keys and values that were attended to."""
        batch, length, _ = x.shape
        kv, dim = self.config.kv_heads, self.config.head_dim
        queries = turned(self.q_norm(self.q(x).reshape(batch, length, -1, dim)), turn)
        keys = turned(self.k_norm(self.k(x).reshape(batch, length, kv, dim)), turn)
        keys = keys.transpose(0, 2, 3, 1)
        values = self.v(x).reshape(batch, length, kv, dim).transpose(0, 2, 1, 3)
        if into is not None:
            (old_keys, old_values), at = into
            keys = jax.lax.dynamic_update_slice(
                old_keys, keys.astype(old_keys.dtype), (0, 0, 0, at)
            )
            values = jax.lax.dynamic_update_slice(
                old_values, values.astype(old_values.dtype), (0, 0, at, 0)
            )
        grouped = queries.reshape(batch, length, kv, -1, dim)
        if length == 1:
            mixed = _of_one_token(grouped[:, 0], keys, values, mask)
            return self.o(mixed.reshape(batch, 1, -1)), (keys, values)
        scores = jnp.einsum(
            "blkgd,bkds->bklgs",
            grouped,
            keys.astype(grouped.dtype),
            preferred_element_type=jnp.float32,
        )
        scores = jnp.where(mask[:, None, :, None, :], scores * dim**-0.5, _UNSEEN)
        weights = jax.nn.softmax(scores, axis=-1).astype(values.dtype)
        mixed = jnp.einsum("bklgs,bksd->blkgd", weights, values)
        return self.o(mixed.reshape(batch, length, -1)), (keys, values)


def _of_one_token(
    queries: jax.Array, keys: jax.Array, values: jax.Array, mask: jax.Array
) -> jax.Array:
    """Attention of a single query a row, as sums of products that read keys and values in order.

    The products of matrices that it is otherwise are of one or two rows each, and slower.

    Args:
        queries: [B, KV, G, d].
        keys: [B, KV, d, S].
        values: [B, KV, S, d].
        mask: bool [B, 1, S].
    """
    wide = queries[..., None].astype(jnp.float32) * keys[:, :, None].astype(jnp.float32)
    scores = jnp.sum(wide, axis=-2) * queries.shape[-1] ** -0.5
    weights = jax.nn.softmax(jnp.where(mask[:, None], scores, _UNSEEN), axis=-1)
    mixed = jnp.sum(weights[..., None] * values[:, :, None].astype(jnp.float32), axis=-2)
    return mixed.astype(values.dtype)


class Mlp(nnx.Module):
    """SwiGLU: down(silu(gate(x)) * up(x))."""

    def __init__(self, config: ModelConfig, *, rngs: nnx.Rngs, **types: Any):
        self.gate = Dense(config.width, config.hidden, rngs=rngs, **types)
        self.up = Dense(config.width, config.hidden, rngs=rngs, **types)
        self.down = Dense(
            config.hidden, config.width, rngs=rngs, gain=_residual_gain(config), **types
        )

    def __call__(self, x: jax.Array) -> jax.Array:
        """[B, L, width] to the same."""
        return self.down(jax.nn.silu(self.gate(x)) * self.up(x))


class Layer(nnx.Module):
    """x + attention(norm x), then the same with the feed-forward block."""

    def __init__(self, config: ModelConfig, *, rngs: nnx.Rngs, **types: Any):
        self.attention_norm = Norm(config.width, config.norm_eps, **types)
        self.attention = Attention(config, rngs=rngs, **types)
        self.mlp_norm = Norm(config.width, config.norm_eps, **types)
        self.mlp = Mlp(config, rngs=rngs, **types)

    def __call__(
        self,
        x: jax.Array,
        turn: Turn,
        mask: jax.Array,
        into: Slot | None = None,
    ) -> tuple[jax.Array, LayerCache]:
        """As `Attention`."""
        mixed, kept = self.attention(self.attention_norm(x), turn, mask, into)
        x = x + mixed
        return x + self.mlp(self.mlp_norm(x)), kept


class Embedding(nnx.Module):
    """One row of [vocab, width] a token."""

    def __init__(self, config: ModelConfig, *, rngs: nnx.Rngs, param_dtype: DTypeLike):
        draw = nnx.initializers.normal(0.02)
        shape = (config.vocab, config.width)
        self.embedding = nnx.Param(draw(rngs.params(), shape, param_dtype))


class Decoder(nnx.Module):
    """Token ids to hidden states to logits.

    Args:
        config: sizes.
        rngs: the stream `params` draws the initial weights.
        dtype: of the computation; parameters are cast to it as they are used.
        param_dtype: of the parameters.
        remat: layers are computed again in the backward pass, and only what passes between them
            is kept. It changes no value.
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        rngs: nnx.Rngs,
        dtype: DTypeLike = jnp.float32,
        param_dtype: DTypeLike = jnp.float32,
        remat: bool = False,
    ):
        types: dict[str, Any] = {"dtype": dtype, "param_dtype": param_dtype}
        self.config, self.dtype, self.remat = config, dtype, remat
        self.embed = Embedding(config, rngs=rngs, param_dtype=param_dtype)
        self.layers = nnx.List([Layer(config, rngs=rngs, **types) for _ in range(config.layers)])
        self.norm = Norm(config.width, config.norm_eps, **types)
        if not config.tied:
            self.head = Dense(config.width, config.vocab, rngs=rngs, **types)

    def hidden(
        self,
        tokens: jax.Array,
        positions: jax.Array,
        mask: jax.Array,
        cache: Cache | None = None,
        at: jax.Array | None = None,
    ) -> tuple[jax.Array, Cache | None]:
        """Hidden states after the last norm.

        Args:
            tokens: int32 [B, L]; an id outside the vocabulary reads the nearest row, so that
                padding may hold any id.
            positions: int32 [B, L].
            mask: bool [B, L, S], the keys that a query sees; S is L without a cache, else the
                number of slots. A query that sees none gets finite values without meaning.
            cache: keys and values of earlier chunks.
            at: int32 [], the slot that the first token of the chunk is written to; at + L must
                not pass the number of slots.

        Returns:
            dtype [B, L, width], and the cache with this chunk written (None without one).

        Raises:
            ValueError: a cache without `at`, or the reverse.
            AssertionError: shapes or types that do not fit.
        """
        if (cache is None) != (at is None):
            raise ValueError("a cache and the slot to write at go together")
        batch, length = tokens.shape
        slots = length if cache is None else cache[0][0].shape[-1]
        chex.assert_shape(positions, (batch, length))
        chex.assert_shape(mask, (batch, length, slots))
        chex.assert_type([tokens, positions, mask], [jnp.int32, jnp.int32, jnp.bool_])
        x = jnp.take(self.embed.embedding[...], tokens, axis=0, mode="clip").astype(self.dtype)
        turn = rotary(positions, self.config)
        written = []
        for index, layer in enumerate(self.layers):
            if cache is not None and at is not None:
                x, kept = layer(x, turn, mask, (cache[index], at))
                written.append(kept)
            elif self.remat:
                x = _recomputed(layer, x, turn, mask)
            else:
                x, _ = layer(x, turn, mask)
        return self.norm(x), None if cache is None else tuple(written)

    def logits(self, hidden: jax.Array) -> jax.Array:
        """Float32 [B, L, vocab] from the hidden states [B, L, width]."""
        rows = hidden.astype(self.dtype).reshape(-1, hidden.shape[-1])  # as in `Dense`
        if self.config.tied:
            table = self.embed.embedding[...].astype(self.dtype)
            found = jnp.einsum("nw,vw->nv", rows, table, preferred_element_type=jnp.float32)
        else:
            table = self.head.kernel[...].astype(self.dtype)
            found = jnp.einsum("nw,wv->nv", rows, table, preferred_element_type=jnp.float32)
        return found.reshape(*hidden.shape[:-1], -1)


def empty_cache(
    config: ModelConfig, batch: int, length: int, dtype: DTypeLike = jnp.float32
) -> Cache:
    """A cache of zeros with `length` slots; each leaf is a buffer of its own."""
    kv, dim = config.kv_heads, config.head_dim
    return tuple(
        (jnp.zeros((batch, kv, dim, length), dtype), jnp.zeros((batch, kv, length, dim), dtype))
        for _ in range(config.layers)
    )


def grow_cache(cache: Cache, length: int) -> Cache:
    """The same cache with zeros after its slots, `length` in all.

    Raises:
        ValueError: it has more slots already.
    """
    more = length - cache[0][0].shape[-1]
    if more < 0:
        raise ValueError(f"a cache of {length - more} slots cannot shrink to {length}")
    after_last, after_third = ((0, 0),) * 3 + ((0, more),), ((0, 0),) * 2 + ((0, more), (0, 0))
    return tuple((jnp.pad(k, after_last), jnp.pad(v, after_third)) for k, v in cache)


def _residual_gain(config: ModelConfig) -> float:
    """Keeps the residual stream near its first size, whatever the number of layers."""
    return float((2 * config.layers) ** -0.5)


def _recomputed(layer: Layer, x: jax.Array, turn: Turn, mask: jax.Array) -> jax.Array:
    """`layer` without a cache; the backward pass runs it again instead of keeping its values."""
    graph, state = nnx.split(layer)

    def apply(state: State, x: jax.Array, turn: Turn) -> jax.Array:
        return nnx.merge(graph, state)(x, turn, mask)[0]

    return jax.checkpoint(apply)(state, x, turn)
