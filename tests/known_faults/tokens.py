"""Faults of tokens: an end token taken for padding, text that is encoded a second time.

Rows of `Sequences` are filled with id 0, so each rollout is put to them a second time with ids
renumbered such that the policy's end token is 0. The first token of a row comes after nothing and
is never trained: prompts are not empty.
"""

from pathlib import Path

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from herald_jax.train import chat
from herald_jax.train.environment import Task
from herald_jax.train.rollout import Rollout
from herald_jax.train.sequences import sequences_of
from herald_jax.train.spans import (
    PLAIN,
    POLICY,
    PROMPT,
    TOOL,
    MisalignedError,
    Span,
    author_mask,
    check_aligned,
)
from herald_jax.train.tokens import Tokeniser
from herald_jax.train.update import causal
from herald_jax.types import PAD
from known_faults.cases import Case, Record

AUTHORS = {"prompt": PROMPT, "policy": POLICY, "tool": TOOL}


def masks_and_authors(case: Case, folder: Path) -> None:
    given, end = case.given, case.given["eos_id"]
    assert given["pad_id"] == end
    tokeniser = longest_match(given["vocab"], end)
    for row in given["rollouts"]:
        right = case.expected["by_trajectory"][row["trajectory_id"]]
        swapped = [{end: 0, 0: end}.get(id_, id_) for id_ in row["ids"]]
        for ids in (row["ids"], swapped):
            run = rollout(row, ids)
            if right == "misaligned":
                with pytest.raises(MisalignedError, match="rollout 0: expected one log-prob"):
                    sequences_of([run], given["width"])
                continue
            found = sequences_of([run], given["width"])
            places = np.asarray(found.places[0])
            trained = np.zeros(given["width"], int)
            trained[places[places != PAD]] = 1
            assert trained.tolist() == right["loss_mask"]
            assert found.length.tolist() == [row["length"]]
            # A token attends to itself wherever it is one.
            attended = np.diagonal(np.asarray(causal(found.length, given["width"]))[0])
            assert attended.astype(int).tolist() == right["attention_mask"]
            assert np.asarray(found.tokens[0, : row["length"]]).tolist() == ids
            assert run.truncated == right["truncated"]
        if right == "misaligned":
            with pytest.raises(MisalignedError):
                check_aligned("t", run.spans, row["length"], row["n_logprobs"])
            continue
        assert author_mask(run.spans, POLICY, row["length"]).sum() == row["n_logprobs"]
        # What encoding again would give is a fact to count: it changes no id.
        assert tokeniser.drifts(row["ids"]) == right["drift"]
        assert rollout(row, row["ids"]).tokens == right["ids_kept"]


def rollout(row: Record, ids: list[int]) -> Rollout:
    """A conversation of the case as the sampler keeps it."""
    return Rollout(
        Task("q", "?"),
        0,
        tokens=list(ids),
        logps=[-1.0] * row["n_logprobs"],
        spans=[Span(AUTHORS[name], PLAIN, first, last) for name, first, last in row["spans"]],
        stop="length" if row["stop_reason"] == "length" else "answer",
    )


def longest_match(vocab: dict[str, str], end: int) -> Tokeniser:
    """A tokeniser that takes the longest entry of a vocabulary at each place."""
    alphabet = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)

    def spelled(text: str) -> str:
        return "".join(piece for piece, _ in alphabet.pre_tokenize_str(text))

    special = [vocab[str(end)], chat.START, chat.END, chat.PAD]
    names = {text if int(id_) == end else spelled(text): int(id_) for id_, text in vocab.items()}
    for name in ("[UNK]", *special[1:]):
        names.setdefault(name, max(names.values()) + 1)
    model = models.WordPiece(
        names, unk_token="[UNK]", continuing_subword_prefix="", max_input_chars_per_word=10_000
    )
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = alphabet
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(name, special=True, normalized=False) for name in special]
    )
    return Tokeniser(tokenizer)
