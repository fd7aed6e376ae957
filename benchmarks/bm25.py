"""BM25 candidates of a closed corpus: the same ranking as defined, and how long it takes.

A synthetic corpus whose words follow Zipf's law, and queries as long as a question and its answer
(10 to 20 tokens), made of the words of its passages. In one run, for each size of the corpus:

1. the index is built, saved and opened again (from files that were just written: from memory), and
   the ranking of the opened one, which audits use, is compared with an exact one on a sample of
   queries: rank_bm25's own contributions, each rounded to 1/65536, summed in integers, sorted;
2. three ways are timed by turns: this package from query text, 40 passages excluded for each query;
   rank_bm25 from ready tokens, by get_scores and argsort, for a few queries, its time scaled to all
   of them; bm25s from ready tokens, on all processors, with numba where that is installed. The
   peers exclude nothing, which is less work;
3. bm25s sums floats, so that its order of near ties is its own: the share of its top 16 that is in
   ours is counted, both with the idf of Lucene.

`--full` also ranks 100,000 queries against 200,000 passages, by BM25 and by shared tokens.

  python benchmarks/bm25.py --quick
  python benchmarks/bm25.py --passages 20000 --rounds 9
  python benchmarks/bm25.py --full --out benchmarks/results/bm25.json
"""

import functools
import importlib
import itertools
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from machine import machine
from measured import Row, arguments, finish, lowest, medians, seconds, turns
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


def gigabytes(field: str) -> float:
    """`VmRSS`, what the process holds, or `VmHWM`, the most it held since `forget_peak`."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 2**20
    raise OSError(f"/proc/self/status has no {field}")


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def indexed(corpus: Corpus, folder: Path) -> tuple[CorpusIndex, list[Row]]:
    """The index, opened from the file it was saved in, and what building and opening took."""
    name = f"index of {len(corpus.words):,} passages"
    made: list[CorpusIndex] = []
    forget_peak()
    before = gigabytes("VmRSS")
    build = seconds(lambda: made.append(CorpusIndex(corpus.passages)))
    peak = gigabytes("VmHWM")
    path = folder / f"{len(corpus.words)}.index"
    save = seconds(lambda: made.pop().save(path))
    load = seconds(lambda: made.append(open_index(path, corpus.passages)))
    return made.pop(), [
        Row(
            name=f"{name}: build",
            seconds=build,
            detail=f"peak {peak:.2f} GB, {before:.2f} GB held before (the corpus, JAX)",
        ),
        Row(name=f"{name}: save", seconds=save, detail=f"{path.stat().st_size / 1e6:.0f} MB"),
        Row(
            name=f"{name}: open",
            seconds=load,
            detail="digest of the passages, checksums, arrays mapped",
            against="build",
            peer_seconds=build,
        ),
    ]


def by_bm25s(corpus: Corpus) -> tuple[Callable[[], np.ndarray] | None, str]:
    """A call that answers all queries by bm25s, or None; and what it is."""
    try:
        bm25s = importlib.import_module("bm25s")
    except ImportError:
        return None, "bm25s is not installed: pip install -e '.[bench]'"
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

    without = "" if backend == "numba" else " (numba is not installed)"
    return answer, f"bm25s {bm25s.__version__}, {backend}{without}, all processors"


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
    bm25s, about = by_bm25s(corpus)
    if bm25s is not None:
        lucene, _ = CorpusIndex(corpus.passages, variant="lucene").bm25(texts, None, K)
        about += f"; {shared(lucene, bm25s()):.2%} of its top {K} in ours"  # compiles
    peer = BM25Okapi(corpus.words)
    for i in range(checked):
        if codes[i].tolist() != exact_ranking(peer, corpus.queries[i], corpus.exclude[i]):
            sys.exit(f"query {i} of seed {seed} is ranked otherwise than defined")

    following = itertools.cycle(corpus.queries)

    def by_rank_bm25() -> None:
        for query in itertools.islice(following, peer_queries):
            np.argsort(peer.get_scores(query))[::-1][:K]

    ways: dict[str, Callable[[], Any]] = {
        "ours": lambda: index.bm25(texts, corpus.exclude, K),
        "rank_bm25": by_rank_bm25,
    }
    if bm25s is not None:
        ways["bm25s"] = bm25s
    spent = turns(ways, rounds)
    spent["rank_bm25"] = [second * m / peer_queries for second in spent["rank_bm25"]]
    median = medians(spent)
    name = f"BM25 top-{K} of {n:,} passages, {m:,} queries"
    return [
        Row(
            name=name,
            seconds=median["ours"],
            detail=f"{m / median['ours']:,.0f} queries/s; rank_bm25 timed on {peer_queries} "
            f"queries a round, scaled; lowest of {rounds} rounds "
            f"{lowest(spent['ours'], spent['rank_bm25']):,.0f}x; {checked} rankings compared with "
            "the exact one: identical",
            against="rank_bm25",
            peer_seconds=median["rank_bm25"],
            goal=GOALS.get(n),
        ),
        Row(
            name=name,
            seconds=median["ours"],
            detail=about,
            against="bm25s",
            peer_seconds=median.get("bm25s"),
        ),
    ]


def full(corpus: Corpus, index: CorpusIndex) -> list[Row]:
    """All queries at once, and how much of the time the device waits for."""
    m = len(corpus.queries)
    texts = corpus.texts
    first, few = texts[:64], corpus.exclude.take(range(64))
    host = seconds(lambda: prepare(index, texts, corpus.exclude))
    rows = []
    for name, rank, k in (("BM25", index.bm25, K), ("shared tokens", index.lexical, LEXICAL_K)):
        rank(first, few, k)  # compiles
        forget_peak()
        spent = seconds(functools.partial(rank, texts, corpus.exclude, k))
        rows.append(
            Row(
                name=f"{name}: {index.n_passages:,} passages, {m:,} queries, top-{k}",
                seconds=spent,
                detail=f"{m / spent:,.0f} queries/s; {host / spent:.1%} of it to encode, tell "
                f"apart and pad queries; peak {gigabytes('VmHWM'):.2f} GB with the corpus",
            )
        )
    return rows


def prepare(index: CorpusIndex, texts: list[str], exclude: Ragged) -> None:
    """What `CorpusIndex.rank` does before the device is asked."""
    terms = index.vocabulary.encode(texts)
    searches, _ = distinct_searches(terms, exclude, index.n_passages)
    for _ in padded_calls(searches):
        pass


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--full", action="store_true", help="100,000 queries, 200,000 passages too")
    parser.add_argument("--passages", type=int, nargs="+", help="sizes of the corpus")
    parser.add_argument("--queries", type=int, default=2048, help="queries a round, all distinct")
    parser.add_argument("--peer-queries", type=int, default=4, help="rank_bm25's queries a round")
    parser.add_argument("--rounds", type=int, default=5, help="turns of all")
    parser.add_argument("--check", type=int, default=16, help="rankings compared with exact ones")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.quick:
        options.queries, options.peer_queries, options.rounds, options.check = 1024, 2, 3, 6
    sizes = options.passages or ([20_000] if options.quick else [*GOALS])
    for name in ("queries", "peer_queries", "rounds", "check"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if min(sizes) < 1:
        parser.error("--passages must be at least 1")
    if options.full and FULL_PASSAGES not in sizes:
        parser.error(f"--full needs {FULL_PASSAGES} passages")

    before = machine()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            corpus = zipf_corpus(n, options.queries, options.seed)
            index, made = indexed(corpus, Path(folder))
            rows += made
            if options.full and n == FULL_PASSAGES:
                rows += full(zipf_corpus(n, FULL_QUERIES, options.seed), index)
            checked = min(options.check, options.queries)
            rows += compare(
                corpus, index, options.peer_queries, options.rounds, checked, options.seed
            )
    finish(
        options,
        "BM25 candidates: identical ordered ids, and how long they take",
        before,
        rows,
        passage_tokens=PASSAGE_TOKENS,
        query_tokens=QUERY_TOKENS,
        excluded_passages=EXCLUDED,
    )


if __name__ == "__main__":
    main()
