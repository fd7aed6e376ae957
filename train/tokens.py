"""Text to token ids once, ids to text for tools and people, and never back again.

A `Tokeniser` wraps a Hugging Face byte-level BPE: a policy's own, or a small one trained on a
corpus. Every id stands for a piece of bytes, so that the characters of a decoded turn are known to
come from which token, and spans of text become spans of tokens without encoding anything again.
"""

import codecs
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from herald_jax.train import chat
from herald_jax.types import HeraldError


class TokeniserError(HeraldError):
    """A tokeniser that the trainer cannot use."""


class Tokeniser:
    """A byte-level BPE with the tokens that a conversation needs.

    Attributes:
        size: number of ids.
        end: id that ends a turn.
        pad: id that fills rows; what is padding is known from lengths, never from this id.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Wraps a tokeniser.

        Raises:
            TokeniserError: it is not byte-level, or lacks the tokens of the chat template.
        """
        self._tokenizer = tokenizer
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.size = tokenizer.get_vocab_size(with_added_tokens=True)
        names = (chat.START, chat.END, chat.PAD)
        found = {name: id_ for name in names if (id_ := tokenizer.token_to_id(name)) is not None}
        if missing := [name for name in names if name not in found]:
            raise TokeniserError(
                f"tokeniser: expected the tokens {chat.START}, {chat.END} and {chat.PAD}, got none "
                f"for {', '.join(missing)}; use the tokeniser of a Qwen3 checkpoint"
            )
        self.end, self.pad = found[chat.END], found[chat.PAD]

    @classmethod
    def load(cls, path: Path) -> "Tokeniser":
        """Reads a `tokenizer.json`.

        Raises:
            TokeniserError: it cannot be read or used.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise TokeniserError(f"{path}: {error.strerror or error}") from None
        try:
            return cls(Tokenizer.from_str(text))
        except TokeniserError:
            raise
        except Exception as error:  # the library raises a bare Exception
            raise TokeniserError(f"{path}: expected a tokenizer.json, got {error}") from None

    @classmethod
    def train(cls, texts: Iterable[str], size: int) -> "Tokeniser":
        """Trains a byte-level BPE of at most `size` ids; the same texts give the same ids."""
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            special_tokens=[
                AddedToken(name, special=True, normalized=False) for name in chat.SPECIAL
            ],
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        return cls(tokenizer)

    def save(self, path: Path) -> None:
        """Writes a `tokenizer.json`."""
        path.write_text(self._tokenizer.to_str(), encoding="utf-8")

    def to_json(self) -> str:
        """The `tokenizer.json` itself."""
        return self._tokenizer.to_str()

    def encode(self, text: str) -> list[int]:
        """Ids of a text in which tags and roles are single tokens."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(self.pieces[i] for i in ids).decode("utf-8", errors="replace")

    @cached_property
    def pieces(self) -> list[bytes]:
        """The bytes that each id stands for; none for ids of no token."""
        byte_of = _byte_of_character()
        names = self._tokenizer.get_vocab(with_added_tokens=True)
        added = {t.content for t in self._tokenizer.get_added_tokens_decoder().values()}
        pieces = [b""] * (max(names.values()) + 1)
        for name, id_ in names.items():
            if name in added:
                pieces[id_] = name.encode()
                continue
            try:
                pieces[id_] = bytes(byte_of[character] for character in name)
            except KeyError:
                raise TokeniserError(
                    f"tokeniser: expected a byte-level BPE, got the token {name!r}"
                ) from None
        return pieces

    def places(self, ids: Sequence[int]) -> tuple[str, NDArray[np.int64]]:
        """Decoded text, and where the characters of each id end in it.

        Args:
            ids: n ids.

        Returns:
            The text, and int64 [n + 1]: characters that are complete before id 0, 1, ... n. A
            character whose bytes are in several ids belongs to the last of them.
        """
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        parts = [decoder.decode(self.pieces[i]) for i in ids]
        parts.append(decoder.decode(b"", final=True))
        ends = np.cumsum([0, *map(len, parts)])
        # What is left over at the end belongs to the last id.
        ends[-2:] = ends[-1]
        return "".join(parts), ends[:-1] if len(ids) else ends[:1]

    def drifts(self, ids: Sequence[int]) -> bool:
        """Whether encoding the decoded text again gives other ids; a fact to count, no fault."""
        return self.encode(self.decode(ids)) != list(ids)


def _byte_of_character() -> dict[str, int]:
    """The byte for which each character of a byte-level alphabet stands.

    Bytes that are printable in Latin-1 stand for themselves; the others are written as characters
    from U+0100 on, in their order.
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {
        chr(0x100 + at): byte for at, byte in enumerate(others)
    }
