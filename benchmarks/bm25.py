"""BM25 top-16 against rank_bm25: the same ranking, and how many times as many queries a second.

A synthetic corpus whose words follow Zipf's law, and queries made of the words of its passages.
Three things happen in one run:

1. the ranking of `CorpusIndex.bm25`, which audits call, is compared with an exact one on a sample:
   rank_bm25's own contributions, each rounded to 1/65536, summed in integers, sorted in full;
2. both are timed by turns, so that the load of the machine falls on both: this package from query
   text, with excluded passages; rank_bm25 from ready tokens, by get_scores and argsort;
3. the ratio of the medians is printed, and written as JSON when asked for.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from machine import compared, machine
from rank_bm25 import BM25Okapi

from herald_jax.kernels.bm25 import SCALE
from herald_jax.search import CorpusIndex

K = 16
QUERY_TOKENS = 16
EXCLUDED = 40
PASSAGE_TOKENS = 60

EXAMPLES = """examples:
  python benchmarks/bm25.py
  python benchmarks/bm25.py --passages 200000 --queries 512 --peer-queries 2
  python benchmarks/bm25.py --out benchmarks/results/bm25.json
"""


def zipf_passages(n: int, seed: int) -> list[list[str]]:
    """Passages of about PASSAGE_TOKENS words, word r with probability proportional to r^-1.05."""
    rng = np.random.default_rng(seed)
    n_words = 2000 + int(30 * n**0.8)
    cumulative = np.cumsum(np.arange(1, n_words + 1) ** -1.05)
    lengths = rng.poisson(PASSAGE_TOKENS, n)
    draws = np.searchsorted(cumulative, rng.random(lengths.sum()) * cumulative[-1])
    words = [f"w{i}" for i in range(n_words)]
    return [[words[i] for i in part.tolist()] for part in np.split(draws, np.cumsum(lengths)[:-1])]


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


def measure(
    n_passages: int, n_queries: int, peer_queries: int, rounds: int, checked: int, seed: int
) -> dict[str, Any]:
    before = machine()
    passages = zipf_passages(n_passages, seed)
    rng = np.random.default_rng(seed + 1)
    non_empty = [passage for passage in passages if passage]
    queries = [
        rng.choice(non_empty[i], QUERY_TOKENS).tolist()
        for i in rng.integers(0, len(non_empty), n_queries)
    ]
    texts = [" ".join(query) for query in queries]
    exclude = [rng.integers(0, n_passages, EXCLUDED) for _ in queries]

    start = time.perf_counter()
    index = CorpusIndex([("", " ".join(passage)) for passage in passages])
    index_seconds = time.perf_counter() - start
    peer = BM25Okapi(passages)

    codes, _ = index.bm25(texts, exclude, K)  # compiles
    for i in range(checked):
        if codes[i].tolist() != exact_ranking(peer, queries[i], exclude[i]):
            sys.exit(f"query {i} of seed {seed} is ranked otherwise than defined")

    ours, theirs = [], []
    for turn in range(rounds):
        start = time.perf_counter()
        index.bm25(texts, exclude, K)
        ours.append((time.perf_counter() - start) / n_queries)
        start = time.perf_counter()
        for i in range(peer_queries):
            scores = peer.get_scores(queries[(turn * peer_queries + i) % n_queries])
            np.argsort(scores)[::-1][:K]
        theirs.append((time.perf_counter() - start) / peer_queries)
    return {
        "claim": "BM25 top-16, identical ordered result",
        "machine": before,
        "passages": n_passages,
        "query_tokens": QUERY_TOKENS,
        "excluded_passages": EXCLUDED,
        "rankings_checked": checked,
        "rounds": rounds,
        "herald_queries_per_second": 1 / statistics.median(ours),
        "rank_bm25_queries_per_second": 1 / statistics.median(theirs),
        **compared(ours, theirs),
        "index_seconds": index_seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--passages", type=int, default=20_000, help="size of the corpus")
    parser.add_argument("--queries", type=int, default=1024, help="queries a round, all distinct")
    parser.add_argument("--peer-queries", type=int, default=6, help="rank_bm25's queries a round")
    parser.add_argument("--rounds", type=int, default=5, help="turns of both")
    parser.add_argument(
        "--check", type=int, default=24, help="rankings compared with the exact one"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    for name in ("passages", "queries", "peer_queries", "rounds", "check"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")

    result = measure(
        arguments.passages,
        arguments.queries,
        arguments.peer_queries,
        arguments.rounds,
        min(arguments.check, arguments.queries),
        arguments.seed,
    )
    print(
        f"{result['passages']} passages, {result['rankings_checked']} rankings checked: identical\n"
        f"herald-jax  {result['herald_queries_per_second']:10.0f} queries/s (from text, "
        f"{EXCLUDED} passages excluded)\n"
        f"rank_bm25   {result['rank_bm25_queries_per_second']:10.1f} queries/s (from tokens)\n"
        f"ratio       {result['ratio']:10.0f}x  (lowest of {result['rounds']} rounds "
        f"{result['lowest_ratio_of_a_round']:.0f}x)"
    )
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
