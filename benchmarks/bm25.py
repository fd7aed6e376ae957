"""BM25 candidates of a closed corpus: the same ranking as defined, and how long it takes.

A synthetic corpus whose words follow Zipf's law, and queries as long as a question and its answer
(10 to 20 tokens), made of the words of its passages. In one run, for each size of the corpus:

1. the index is built, saved and opened again, and the ranking of the opened one, which audits use,
   is compared with an exact one on a sample of queries: rank_bm25's own contributions, each rounded
   to 1/65536, summed in integers, sorted in full;
2. three ways are timed by turns, so that the load of the machine falls on all: this package from
   query text, 40 passages excluded for each query; rank_bm25 from ready tokens, by get_scores and
   argsort, for a few queries, its time scaled to the same number; bm25s from ready tokens, on all
   processors, with numba where that is installed. The peers exclude nothing, which is less work;
3. bm25s sums floats, so that its order of near ties is its own: how much of its top-16 is in ours
   is counted, both with the idf of Lucene.

`--full` also ranks 100,000 queries against 200,000 passages, by BM25 and by shared tokens.
Ratios are of medians over rounds. Loading reads files that were just written, from memory.
"""

import argparse
import importlib
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from machine import machine
from rank_bm25 import BM25Okapi

from herald_jax.data.ragged import Ragged
from herald_jax.kernels.bm25 import SCALE
from herald_jax.search import CorpusIndex, open_index
from herald_jax.search.batches import padded_calls
from herald_jax.search.searches import distinct_searches

K = 16
LEXICAL_K = 8
QUERY_TOKENS = (10, 20)
EXCLUDED = 40
PASSAGE_TOKENS = 100
GOALS = {20_000: 150, 200_000: 400}
FULL_PASSAGES, FULL_QUERIES = 200_000, 100_000

EXAMPLES = """examples:
  python benchmarks/bm25.py --quick
  python benchmarks/bm25.py --passages 20000 200000 --out benchmarks/results/bm25.json
  python benchmarks/bm25.py --full --out benchmarks/results/bm25.json
"""

Row = dict[str, Any]


def row(
    name: str,
    seconds: float,
    detail: str,
    *,
    against: str = "",
    peer_seconds: float | None = None,
    goal: float | None = None,
) -> Row:
    """One line of the result; `ratio` is how many times as long the peer took."""
    ratio = None if peer_seconds is None else peer_seconds / seconds
    return {
        "name": name,
        "against": against,
        "ratio": ratio,
        "goal": goal,
        "met": None if goal is None or ratio is None else ratio >= goal,
        "seconds": seconds,
        "peer_seconds": peer_seconds,
        "detail": detail,
    }


@dataclass(frozen=True)
class Corpus:
    """Passages as words and as (title, text), and queries with what they exclude."""

    words: list[list[str]]
    passages: list[tuple[str, str]]
    queries: list[list[str]]
    exclude: Ragged

    @property
    def texts(self) -> list[str]:
        return [" ".join(query) for query in self.queries]


def zipf_corpus(n_passages: int, n_queries: int, seed: int) -> Corpus:
    """Word r has a probability proportional to r^-1.05; passages hold about PASSAGE_TOKENS."""
    rng = np.random.default_rng(seed)
    n_words = 2000 + int(30 * n_passages**0.8)
    cumulative = np.cumsum(np.arange(1, n_words + 1) ** -1.05)
    lengths = rng.poisson(PASSAGE_TOKENS, n_passages)
    draws = np.searchsorted(cumulative, rng.random(lengths.sum()) * cumulative[-1])
    vocabulary = [f"w{i}" for i in range(n_words)]
    parts = np.split(draws, np.cumsum(lengths)[:-1])
    words = [[vocabulary[i] for i in part.tolist()] for part in parts]
    chosen = rng.integers(0, n_passages, n_queries).tolist()
    counts = rng.integers(QUERY_TOKENS[0], QUERY_TOKENS[1] + 1, n_queries).tolist()
    queries = [
        rng.choice(words[i] or vocabulary, count).tolist()
        for i, count in zip(chosen, counts, strict=True)
    ]
    codes = rng.integers(0, n_passages, n_queries * EXCLUDED).astype(np.int32)
    return Corpus(
        words,
        [("", " ".join(passage)) for passage in words],
        queries,
        Ragged.of_lengths(codes, np.full(n_queries, EXCLUDED)),
    )


def exact_ranking(peer: BM25Okapi, query: Sequence[str], exclude: np.ndarray) -> list[int]:
    """The ranking as defined: contributions as rank_bm25 computes them, rounded and summed."""
    length = np.array(peer.doc_len)
    norm = peer.k1 * (1 - peer.b + peer.b * length / peer.avgdl)
    total = np.zeros(len(length), np.int64)
    for token in query:
        tf = np.array([document.get(token, 0) for document in peer.doc_freqs])
        exact = peer.idf.get(token, 0.0) * (tf * (peer.k1 + 1) / (tf + norm))
        total += np.rint(exact * SCALE).astype(np.int64)
    order = np.argsort(-total, kind="stable")
    return order[~np.isin(order, exclude)][:K].tolist()


def seconds_of(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def indexed(corpus: Corpus, folder: Path) -> tuple[CorpusIndex, list[Row]]:
    """The index, opened from the file it was saved in, and what building and opening took."""
    n = len(corpus.words)
    before = peak_gigabytes()
    start = time.perf_counter()
    built = CorpusIndex(corpus.passages)
    build = time.perf_counter() - start
    peak = peak_gigabytes()
    path = folder / f"{n}.index"
    save = seconds_of(lambda: built.save(path))
    start = time.perf_counter()
    opened = open_index(path, corpus.passages)
    load = time.perf_counter() - start
    return opened, [
        row(
            f"index of {n:,} passages: build",
            build,
            f"peak {peak:.2f} GB, of which {before:.2f} GB before it (the corpus, JAX)",
        ),
        row(f"index of {n:,} passages: save", save, f"{path.stat().st_size / 1e6:.0f} MB"),
        row(
            f"index of {n:,} passages: open",
            load,
            "digest of the passages, checksums, arrays mapped",
            against="build",
            peer_seconds=build,
        ),
    ]


def bm25s_retriever(corpus: Corpus) -> tuple[Callable[[], np.ndarray] | None, str]:
    """A call that answers all queries by bm25s, or None; and what it is."""
    try:
        bm25s = importlib.import_module("bm25s")
    except ImportError:
        return None, "bm25s is not installed; pip install -e '.[bench]'"
    try:
        importlib.import_module("numba")
        backend = "numba"
    except ImportError:
        backend = "numpy"
    retriever = bm25s.BM25(method="lucene", k1=1.5, b=0.75, backend=backend)
    retriever.index(corpus.words, show_progress=False)

    def answer() -> np.ndarray:
        found, _ = retriever.retrieve(corpus.queries, k=K, n_threads=-1, show_progress=False)
        return found

    without = "" if backend == "numba" else "; numba is not installed"
    return answer, f"bm25s {bm25s.__version__}, {backend}, all processors{without}"


def shared(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Mean share of each query's K passages that both found."""
    both = [len(np.intersect1d(a, b)) for a, b in zip(ours, theirs, strict=True)]
    return float(np.mean(both)) / K


def compare(
    corpus: Corpus, index: CorpusIndex, peer_queries: int, rounds: int, checked: int, seed: int
) -> list[Row]:
    """Ours against rank_bm25 and bm25s, by turns."""
    n, m = len(corpus.words), len(corpus.queries)
    texts = corpus.texts
    codes, _ = index.bm25(texts, corpus.exclude, K)  # compiles
    bm25s, about = bm25s_retriever(corpus)
    overlap = ""
    if bm25s is not None:
        lucene, _ = CorpusIndex(corpus.passages, variant="lucene").bm25(texts, None, K)
        overlap = f"{shared(lucene, bm25s()):.2%} of its top {K} in ours"  # compiles
    peer = BM25Okapi(corpus.words)
    for i in range(checked):
        if codes[i].tolist() != exact_ranking(peer, corpus.queries[i], corpus.exclude[i]):
            sys.exit(f"query {i} of seed {seed} is ranked otherwise than defined")

    def by_rank_bm25(first: int) -> None:
        for i in range(first, first + peer_queries):
            np.argsort(peer.get_scores(corpus.queries[i % m]))[::-1][:K]

    ours, theirs, others = [], [], []
    for turn in range(rounds):
        ours.append(seconds_of(lambda: index.bm25(texts, corpus.exclude, K)))
        theirs.append(seconds_of(lambda: by_rank_bm25(turn * peer_queries)) * m / peer_queries)  # noqa: B023
        if bm25s is not None:
            others.append(seconds_of(bm25s))
    name = f"BM25 top-{K} of {n:,} passages, {m:,} queries"
    seconds = statistics.median(ours)
    lowest = min(b / a for a, b in zip(ours, theirs, strict=True))
    return [
        row(
            name,
            seconds,
            f"{m / seconds:,.0f} queries/s; rank_bm25 timed on {peer_queries} queries a round, "
            f"scaled; lowest of {rounds} rounds {lowest:,.0f}x; "
            f"{checked} rankings compared with the exact one: identical",
            against="rank_bm25",
            peer_seconds=statistics.median(theirs),
            goal=GOALS.get(n),
        ),
        row(
            name,
            seconds,
            "; ".join(filter(None, [about, overlap])),
            against="bm25s",
            peer_seconds=statistics.median(others) if others else None,
        ),
    ]


def full(corpus: Corpus, index: CorpusIndex) -> list[Row]:
    """All queries at once, and how much of the time the device waits for."""
    m = len(corpus.queries)
    texts = corpus.texts
    first, few = texts[:64], corpus.exclude.take(range(64))
    rows = []
    for name, rank, k in (("BM25", index.bm25, K), ("shared tokens", index.lexical, LEXICAL_K)):
        rank(first, few, k)  # compiles
        seconds = seconds_of(lambda: rank(texts, corpus.exclude, k))  # noqa: B023
        host = seconds_of(lambda: prepared(index, texts, corpus.exclude))
        rows.append(
            row(
                f"{name}: {index.n_passages:,} passages, {m:,} queries, top-{k}",
                seconds,
                f"{m / seconds:,.0f} queries/s; {host / seconds:.1%} of it to encode, tell apart "
                f"and pad queries; peak {peak_gigabytes():.2f} GB with the corpus",
            )
        )
    return rows


def prepared(index: CorpusIndex, texts: list[str], exclude: Ragged) -> None:
    """What `CorpusIndex.rank` does before the device is asked."""
    terms = index.vocabulary.encode(texts)
    searches, _ = distinct_searches(terms, exclude, index.n_passages)
    for _ in padded_calls(searches):
        pass


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--passages", type=int, nargs="+", help="sizes of the corpus (20000 and 200000)"
    )
    parser.add_argument("--queries", type=int, default=2048, help="queries a round, all distinct")
    parser.add_argument("--peer-queries", type=int, default=4, help="rank_bm25's queries a round")
    parser.add_argument("--rounds", type=int, default=5, help="turns of all")
    parser.add_argument("--check", type=int, default=16, help="rankings compared with exact ones")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="20,000 passages, a few queries")
    parser.add_argument(
        "--full", action="store_true", help="also 100,000 queries against 200,000 passages"
    )
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    if arguments.quick and arguments.full:
        parser.error("--quick and --full exclude each other")
    quick = {"queries": 1024, "peer_queries": 2, "rounds": 3, "check": 6} if arguments.quick else {}
    settings = {**vars(arguments), **quick}
    sizes = arguments.passages or ([20_000] if arguments.quick else [20_000, 200_000])
    for name in ("queries", "peer_queries", "rounds", "check"):
        if settings[name] < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if min(sizes) < 1:
        parser.error("--passages must be at least 1")

    before = machine()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        if arguments.full:
            corpus = zipf_corpus(FULL_PASSAGES, FULL_QUERIES, arguments.seed)
            index, _ = indexed(corpus, Path(folder))
            rows += full(corpus, index)
        for n in sizes:
            corpus = zipf_corpus(n, settings["queries"], arguments.seed)
            index, made = indexed(corpus, Path(folder))
            rows += made
            rows += compare(
                corpus,
                index,
                settings["peer_queries"],
                settings["rounds"],
                min(settings["check"], settings["queries"]),
                arguments.seed,
            )
    for one in rows:
        said = f"{one['ratio']:,.1f}x {one['against']}" if one["ratio"] is not None else ""
        if one["goal"] is not None:
            said += f", goal {one['goal']}x {'met' if one['met'] else 'MISSED'}"
        print(f"{one['name']}: {one['seconds']:.3f} s  {said}\n    {one['detail']}")
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        result = {
            "claim": "BM25 candidates: identical ordered ids, times as fast",
            "machine": before,
            "passage_tokens": PASSAGE_TOKENS,
            "query_tokens": QUERY_TOKENS,
            "excluded_passages": EXCLUDED,
            "rows": rows,
        }
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
