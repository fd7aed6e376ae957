"""Synthetic pools as Parquet, of any size, quickly and in little memory.

  python benchmarks/pools.py POOL_DIR --rows 1000000
  python benchmarks/pools.py POOL_DIR --rows 4000000 --questions 125000

Trajectories lie in several files, written batch by batch: 8 rollouts a question unless the number
of questions is given, 4 searches of 10 passages, up to 4 citations, and 8 passages that the log
proposes for laundering (`candidates`). Passages of a question are neighbours, so that what is
retrieved, cited and proposed meets the support now and then; some rows search nothing, cite
nothing, cite what was not retrieved or what is no passage, and some have no answer. Answers of one
question are partly the same, as those of one policy are. Every batch draws from a stream of its
own, so that the cut into files changes no row.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

SEARCHES, RESULTS, CITATIONS, CANDIDATES = 4, 10, 4, 8
RETRIEVED = SEARCHES * RESULTS
SUPPORT = 2
ROLLOUTS = 8
PASSAGES = 20_000
NEIGHBOURS = 400
PASSAGE_WORDS = 60
BATCH = 65_536
FILE_ROWS = 1 << 18
PHRASES = 4096

Ints = NDArray[np.int64]

STEP = pa.struct(
    [("query", pa.string()), ("retrieved", pa.list_(pa.string())), ("valid", pa.bool_())]
)
TRAJECTORY = pa.schema(
    [
        ("trajectory_id", pa.string()),
        ("question_id", pa.string()),
        ("question", pa.string()),
        ("steps", pa.list_(STEP)),
        ("answer", pa.string()),
        ("citations", pa.list_(pa.string())),
        ("candidates", pa.list_(pa.string())),
        ("model", pa.string()),
        ("rollout", pa.int64()),
    ]
)
SYLLABLES = "ba co du el fi gra hu in jo ka lem mo nor os pel qui ra sto tu ul vin wes xa yor zim"


@dataclass(frozen=True)
class Shape:
    """How large a pool is."""

    rows: int
    questions: int
    passages: int = PASSAGES

    @classmethod
    def of(cls, rows: int, questions: int | None = None, passages: int = PASSAGES) -> "Shape":
        """So many rows, 8 a question unless the number of questions is given."""
        return cls(rows, questions or max(rows // ROLLOUTS, 1), passages)


@dataclass(frozen=True)
class Texts:
    """What strings are made of, for taking by number."""

    passage_ids: pa.Array  # of the passages, and behind them as many that no corpus has
    names: pa.Array  # one or two words
    phrases: pa.Array  # one to four words
    sentences: pa.Array  # eight to sixteen


def write_pool(folder: Path, shape: Shape, seed: int = 0) -> None:
    """Write `trajectories-*.parquet`, `corpus.parquet` and `oracle.parquet`."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = _texts(shape, seed)
    _write_corpus(folder / "corpus.parquet", shape, seed)
    _write_oracle(folder / "oracle.parquet", shape, texts)
    write_trajectories(folder, shape, texts, seed)


def write_trajectories(folder: Path, shape: Shape, texts: Texts, seed: int) -> None:
    """Files of `FILE_ROWS` rows, in batches."""
    batches = _batches(shape.rows)
    for number, start in enumerate(range(0, shape.rows, FILE_ROWS)):
        path = folder / f"trajectories-{number:05d}.parquet"
        with pq.ParquetWriter(path, TRAJECTORY, store_schema=False) as writer:
            for _ in range(start, min(start + FILE_ROWS, shape.rows), BATCH):
                writer.write_batch(trajectories(shape, texts, seed, *next(batches)))


def _batches(rows: int) -> Iterator[tuple[int, int]]:
    for start in range(0, rows, BATCH):
        yield start, min(start + BATCH, rows)


def trajectories(shape: Shape, texts: Texts, seed: int, start: int, stop: int) -> pa.RecordBatch:
    """Rows start .. stop - 1, those of one question one after the other."""
    rng = np.random.default_rng([seed, 3, start])
    row = np.arange(start, stop)
    question = row * shape.questions // shape.rows
    n = len(row)

    retrieved = (_home(shape, question)[:, None] + _offsets(rng, n, RETRIEVED)) % shape.passages
    support = _support(shape, question)
    for s in range(SUPPORT):  # more than half of the support is found, in a search of its own
        place = RESULTS * s + rng.integers(0, RESULTS, n)
        found = rng.random(n) < 0.55
        retrieved[found, place[found]] = support[found, s]
    searched = rng.random(n) >= 0.03

    kind = rng.random((n, CITATIONS))
    cited = np.take_along_axis(retrieved, rng.integers(0, RETRIEVED, (n, CITATIONS)), axis=1)
    anywhere = (_home(shape, question)[:, None] + _offsets(rng, n, CITATIONS)) % shape.passages
    cited = np.where(kind > 0.7, support[:, rng.integers(0, SUPPORT, CITATIONS)], cited)
    cited = np.where(kind > 0.95, anywhere, cited)
    cited = np.where(kind > 0.99, anywhere + shape.passages, cited)  # of no passage
    n_cited = np.where(rng.random(n) < 0.04, 0, rng.integers(1, CITATIONS + 1, n))
    proposed = (_home(shape, question)[:, None] + _offsets(rng, n, CANDIDATES)) % shape.passages

    return pa.record_batch(
        [
            _joined("t", row),
            _joined("q", question),
            _questions(texts, question),
            _steps(texts, rng, retrieved, searched),
            _answers(texts, rng, question, _golds(texts, question)),
            _lists(texts.passage_ids, cited, n_cited),
            _lists(texts.passage_ids, proposed, np.full(n, CANDIDATES)),
            pa.array(["agent-a", "agent-b"]).take(pa.array(row % 2)),
            pa.array(row - _first_row(shape, question)),
        ],
        schema=TRAJECTORY,
    )


def _texts(shape: Shape, seed: int) -> Texts:
    rng = np.random.default_rng([seed, 0])
    words = _words()

    def phrases(least: int, most: int) -> pa.Array:
        lengths = rng.integers(least, most + 1, PHRASES)
        return pa.array([" ".join(rng.choice(words, length)) for length in lengths.tolist()])

    ids = pa.array([f"passage-{number:06d}" for number in range(2 * shape.passages)])
    names, short, long = ((1, 2), (1, 4), (8, 16))
    return Texts(ids, *(phrases(*lengths) for lengths in (names, short, long)))


def _words() -> list[str]:
    parts = SYLLABLES.split()
    return [a + b for a in parts for b in parts] + [a + b + "er" for a in parts for b in parts]


def _home(shape: Shape, question: Ints) -> Ints:
    """Where the passages of a question lie: scattered, the same whatever is asked beside it."""
    return question * 7919 % shape.passages


def _support(shape: Shape, question: Ints) -> Ints:
    """int [n, 2] passages near the home."""
    steps = np.stack([question * 31 % 97, 100 + question * 17 % 89], axis=1)
    return (_home(shape, question)[:, None] + steps) % shape.passages


def _offsets(rng: np.random.Generator, n: int, width: int) -> Ints:
    """Distinct places near a home, in no order: the same walk from another start for every row."""
    walk = rng.permutation(NEIGHBOURS)
    start = rng.integers(0, NEIGHBOURS, (n, 1))
    return walk[(start + 7 * np.arange(width)) % NEIGHBOURS]


def _first_row(shape: Shape, question: Ints) -> Ints:
    return -(-question * shape.rows // shape.questions)


def _joined(prefix: str, numbers: Ints) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")


def _questions(texts: Texts, question: Ints) -> pa.Array:
    about = _taken(texts.sentences, question * 29 + question // PHRASES)
    return pc.binary_join_element_wise("Which", about, _joined("of ", question), " ")


def _golds(texts: Texts, question: Ints) -> pa.Array:
    """The gold answer of a question: two names, a pair of its own for millions of questions."""
    return _pair(texts.names, question, question // PHRASES + question * 37)


def _answers(texts: Texts, rng: np.random.Generator, question: Ints, golds: pa.Array) -> pa.Array:
    n = len(question)
    said = pc.binary_join_element_wise("It is ", golds, ".", "")
    # Wrong answers come back among the rollouts of a question.
    wrong = _pair(texts.names, question * 3 + rng.integers(0, 4, n), question // PHRASES)
    sentence = _taken(texts.sentences, rng.integers(0, PHRASES, n))
    long = pc.binary_join_element_wise(sentence, golds, " ")
    kind = rng.choice(5, n, p=[0.4, 0.15, 0.25, 0.18, 0.02])
    picked = pc.choose(pa.array(np.minimum(kind, 3)), golds, said, wrong, long)
    return pc.if_else(pa.array(kind == 4), pa.scalar(None, pa.string()), picked)


def _pair(values: pa.Array, first: Ints, second: Ints) -> pa.Array:
    return pc.binary_join_element_wise(_taken(values, first), _taken(values, second), " ")


def _taken(values: pa.Array, numbers: Ints) -> pa.Array:
    return values.take(pa.array(numbers % len(values)))


def _steps(texts: Texts, rng: np.random.Generator, retrieved: Ints, searched: Any) -> pa.Array:
    kept = retrieved[searched].reshape(-1, RESULTS)
    n = len(kept)
    queries = _pair(texts.phrases, *rng.integers(0, PHRASES, (2, n)))
    steps = pa.StructArray.from_arrays(
        [
            queries,
            _lists(texts.passage_ids, kept, np.full(n, RESULTS)),
            pa.array(np.ones(n, bool)),
        ],
        fields=list(STEP),
    )
    return pa.ListArray.from_arrays(_ends(np.where(searched, SEARCHES, 0)), steps)


def _lists(values: pa.Array, numbers: Ints, lengths: Ints) -> pa.Array:
    """The first of each row of numbers, as strings."""
    kept = numbers[np.arange(numbers.shape[1]) < lengths[:, None]]
    return pa.ListArray.from_arrays(_ends(lengths), values.take(pa.array(kept)))


def _ends(lengths: Ints) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def _write_corpus(path: Path, shape: Shape, seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    words = np.array(_words())
    # Word r with a probability proportional to 1 / r, as in a natural text.
    share = np.cumsum(1 / np.arange(1, len(words) + 1))
    schema = pa.schema([(name, pa.string()) for name in ("passage_id", "title", "text")])
    with pq.ParquetWriter(path, schema, store_schema=False) as writer:
        for start in range(0, shape.passages, BATCH):
            n = min(BATCH, shape.passages - start)
            draws = np.searchsorted(share, rng.random((n, PASSAGE_WORDS)) * share[-1])
            texts = [" ".join(line) for line in words[draws].tolist()]
            ids = [f"passage-{number:06d}" for number in range(start, start + n)]
            titles = [" ".join(line) for line in words[draws[:, :2]].tolist()]
            writer.write_batch(pa.record_batch([pa.array(x) for x in (ids, titles, texts)], schema))


def _write_oracle(path: Path, shape: Shape, texts: Texts) -> None:
    lists = pa.list_(pa.string())
    schema = pa.schema([("question_id", pa.string()), ("answers", lists), ("support_ids", lists)])
    with pq.ParquetWriter(path, schema, store_schema=False) as writer:
        for start in range(0, shape.questions, BATCH):
            question = np.arange(start, min(start + BATCH, shape.questions))
            n = len(question)
            golds = _golds(texts, question)
            second = pc.binary_join_element_wise("the", golds, " ")
            both = pa.concat_arrays([golds, second]).take(
                pa.array(np.stack([np.arange(n), np.arange(n) + n], axis=1).ravel())
            )
            answers = pa.ListArray.from_arrays(_ends(np.full(n, 2)), both)
            support = _lists(texts.passage_ids, _support(shape, question), np.full(n, SUPPORT))
            writer.write_batch(pa.record_batch([_joined("q", question), answers, support], schema))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the files go")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--questions", type=int, help="default: an eighth of the rows")
    parser.add_argument("--passages", type=int, default=PASSAGES)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if min(options.rows, options.questions or 1, options.passages) < 1:
        parser.error("--rows, --questions and --passages must be at least 1")
    shape = Shape.of(options.rows, options.questions, options.passages)
    write_pool(options.folder, shape, options.seed)


if __name__ == "__main__":
    main()
