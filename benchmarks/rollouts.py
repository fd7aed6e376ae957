"""Logs of rollouts for the benchmarks of ingest: about 1.2 kB a line of JSON.

Eight rollouts a question, four searches of ten passages each, four citations, 20,000 passages.
Answers of one question are partly the same, as those of one policy are.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from herald_jax.data.ids import IdTable
from herald_jax.data.parquet import arrow_schema
from herald_jax.data.questions import Questions, questions_of
from herald_jax.data.records import OracleRow, Trajectory

PASSAGES = 20_000
ROLLOUTS = 8
SEARCHES = 4
RESULTS = 10
CITATIONS = 4
ROW_GROUP = 65_536

_WORDS = [
    "river",
    "castle",
    "Austrian",
    "painter",
    "founded",
    "second",
    "album",
    "the",
    "of",
    "in",
    "a",
    "north",
    "railway",
    "station",
    "born",
    "director",
    "film",
    "county",
    "Oslo",
    "bridge",
    "university",
    "novel",
    "species",
    "mountain",
    "company",
    "1934",
    "league",
    "Saint-Denis",
    "championship",
    "orchestra",
    "minister",
    "Brontë",
    "valley",
    "museum",
    "award",
    "was",
    "an",
    "during",
    "island",
    "theatre",
    "composer",
    "battle",
    "tower",
    "historic",
    "village",
    "singer",
    "actress",
    "best",
    "known",
    "for",
    "his",
    "role",
    "as",
    "captain",
    "royal",
    "navy",
    "forest",
    "garden",
    "market",
    "street",
    "bishop",
    "cathedral",
    "language",
    "dialect",
    "professor",
    "physics",
    "prize",
    "winner",
    "team",
    "season",
    "stadium",
    "capacity",
    "opened",
    "bought",
    "by",
    "group",
    "band",
    "single",
    "released",
    "producer",
    "writer",
    "play",
    "poem",
    "king",
    "queen",
    "dynasty",
    "treaty",
    "border",
    "canal",
    "harbour",
]


def passage_ids() -> list[str]:
    """The ids of the corpus."""
    return [f"passage-{n:05d}" for n in range(PASSAGES)]


def oracle(questions: int, seed: int = 0) -> list[OracleRow]:
    """One or two gold answers and two supporting passages a question."""
    rng = random.Random(f"oracle {seed}")
    ids = passage_ids()
    rows = []
    for number in range(questions):
        first = _phrase(rng, 2, 3)
        golds = [first, f"the {first}"] if number % 2 else [first]
        rows.append(OracleRow(f"question-{number:06d}", golds, rng.sample(ids, 2)))
    return rows


def lines(golds: list[OracleRow], seed: int = 0) -> Iterator[dict[str, Any]]:
    """One object a rollout, those of a question one after the other."""
    rng = random.Random(f"rollouts {seed}")
    ids = passage_ids()
    for gold in golds:
        question = f"Which {_phrase(rng, 9, 13)}?"
        first = gold.answers[0]
        answers = [first, f"It is {first}.", _phrase(rng, 1, 3), _phrase(rng, 6, 19)]
        for rollout in range(ROLLOUTS):
            steps = [
                {"query": _phrase(rng, 4, 8), "retrieved": rng.choices(ids, k=RESULTS)}
                for _ in range(SEARCHES)
            ]
            yield {
                "trajectory_id": f"{gold.question_id}-{rollout}",
                "question_id": gold.question_id,
                "question": question,
                "model": "agent-a",
                "rollout": rollout,
                "steps": steps,
                "answer": rng.choice(answers),
                "citations": [rng.choice(rng.choice(steps)["retrieved"]) for _ in range(CITATIONS)],
            }


def write(folder: Path, rows: int, seed: int = 0) -> tuple[Path, Path, IdTable, Questions]:
    """Write the same rows as JSON Lines and as Parquet; the table of ids and the questions."""
    golds = oracle(max(rows // ROLLOUTS, 1), seed)
    jsonl, parquet = folder / "trajectories.jsonl", folder / "trajectories.parquet"
    schema = arrow_schema(Trajectory)
    schema = pa.schema([field.with_nullable(True) for field in schema])
    waiting: list[dict[str, Any]] = []
    with jsonl.open("w", encoding="utf-8") as file, pq.ParquetWriter(parquet, schema) as writer:

        def flush() -> None:
            writer.write_batch(pa.RecordBatch.from_pylist(waiting, schema))
            waiting.clear()

        for row in lines(golds, seed):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            for step in row["steps"]:
                step["valid"] = True
            waiting.append(row)
            if len(waiting) == ROW_GROUP:
                flush()
        if waiting:
            flush()
    ids = IdTable(passage_ids())
    return jsonl, parquet, ids, questions_of(golds, ids, "unicode")


def _phrase(rng: random.Random, least: int, most: int) -> str:
    return " ".join(rng.choices(_WORDS, k=rng.randint(least, most)))
