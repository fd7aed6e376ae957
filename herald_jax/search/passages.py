"""What of a corpus is searched, its tokens, and what tells one corpus from another."""

import hashlib
import json
import unicodedata
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from herald_jax.search.tokenise import as_column, split
from herald_jax.search.vocabulary import Vocabulary

Passages = Sequence[tuple[str, str]]

# Raised whenever tokens, contributions or what is saved of an index change.
FORMAT = 1

# Characters of text that are tokenised at a time.
_PART = 1 << 23


def index_key(passages: Passages, *, k1: float, b: float, epsilon: float, variant: str) -> str:
    """What an index depends on, in 64 hexadecimal digits.

    Every passage in its place, the settings of BM25, the version of what is saved, and the
    version of Unicode by which this Python tells letters apart.
    """
    digest = hashlib.sha256()
    for texts in _parts(passages):
        # Half of a surrogate pair is no UTF-8, but must tell two corpora apart all the same.
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        digest.update(np.array([len(text) for text in encoded], "<i8").tobytes())
        digest.update(b"".join(encoded))
    settings = [FORMAT, unicodedata.unidata_version, float(k1), float(b), float(epsilon), variant]
    digest.update(json.dumps([len(passages), *settings]).encode())
    return digest.hexdigest()


def read_tokens(
    passages: Passages,
) -> tuple[Vocabulary, npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Tokens of all passages, each (title, text), which is searched with a space between.

    Returns:
        The vocabulary; term ids int32 [total], one passage after another; and offsets int64
        [N + 1], passage i holding ids[offsets[i]:offsets[i + 1]].
    """
    coded, counts = [], [np.zeros(1, np.int64)]
    for texts in _parts(passages):
        lists = split(as_column(texts))
        coded.append(lists.tokens.dictionary_encode())
        counts.append(np.diff(lists.offsets))
    offsets = np.cumsum(np.concatenate(counts))
    if not coded:
        return Vocabulary(pa.array([], pa.large_binary())), np.zeros(0, np.int32), offsets
    chunks = pa.chunked_array(coded).unify_dictionaries().chunks
    del coded
    ids = np.concatenate([chunk.indices.to_numpy() for chunk in chunks])
    return Vocabulary(chunks[0].dictionary), ids, offsets


def _parts(passages: Passages) -> Iterator[list[str]]:
    """What is searched of each passage, in lists of about _PART characters."""
    texts: list[str] = []
    characters = 0
    for title, text in passages:
        texts.append(f"{title} {text}")
        characters += len(texts[-1])
        if characters >= _PART:
            yield texts
            texts, characters = [], 0
    if texts:
        yield texts
