"""A folder as a training run leaves it, made without a policy: scripted rollouts, real formats.

What is logged goes through the trainer's own functions, so that a change of a format or of a name
shows in the tests of whoever reads the folder.
"""

from pathlib import Path

import jax.numpy as jnp
import numpy as np

from herald_jax.data.records import OracleRow, Passage, Step
from herald_jax.kernels.groups import Signal
from herald_jax.train.advantages import Credited
from herald_jax.train.chat import answer_turn, prompt, read_turn, search_turn, shown, tool_message
from herald_jax.train.config import Grpo, Policy, Rollouts, TrainConfig
from herald_jax.train.config_load import config_dict
from herald_jax.train.credit_report import CreditReport
from herald_jax.train.diagnostics import DetectorSignals
from herald_jax.train.environment import Task
from herald_jax.train.evaluate import summarise
from herald_jax.train.evidence import Searched
from herald_jax.train.logs import RunLog, write_json
from herald_jax.train.reward import Rewarded
from herald_jax.train.rollout import Rollout, Search
from herald_jax.train.run import rollout_rows
from herald_jax.train.spans import ANSWER, CITATION, PLAIN, POLICY, PROMPT, QUERY, THINK, TOOL, Span
from herald_jax.train.tokens import Tokeniser
from herald_jax.train.trainer import Update, describe_rollouts, describe_steps
from herald_jax.train.update import Stats
from herald_jax.types import DETECTORS

GROUP, QUESTIONS, TURNS = 4, 3, 4
PENALTY = {"cited_not_retrieved": 0.8, "no_search": 0.4}
HOSTILE = "<script>alert('x')</script>\"&\u202e\x1b"
PASSAGES = [
    Passage(passage_id=f"p{n}", text=f"The river of town {n} is the Ser{n}.", title=f"Town {n}")
    for n in range(QUESTIONS)
]
_KINDS = {"think": THINK, "query": QUERY, "answer": ANSWER, "citation": CITATION}


def tokeniser() -> Tokeniser:
    """A small one."""
    texts = [prompt("Which river flows through town 1?"), *(shown(one) for one in PASSAGES)]
    return Tokeniser.train(texts, 300)


def write_turn(
    run: Rollout, of: Tokeniser, text: str, *, ended: bool = True, raw: tuple[int, ...] = ()
) -> None:
    """A turn of the policy; `raw` are bytes that stand before its text."""
    first = len(run.tokens)
    ids = [of.pieces.index(bytes([byte])) for byte in raw] + of.encode(text)
    decoded, ends = of.places(ids)
    run.tokens += [*ids, of.end] if ended else ids
    run.logps += [-1.0] * (len(run.tokens) - first)
    run.spans.append(Span(POLICY, PLAIN, first, len(run.tokens)))
    turn = read_turn(decoded)
    places = {}
    for piece in turn.pieces:
        begin = next(at for at in range(len(ids)) if ends[at + 1] > piece.first)
        last = next((at for at in range(len(ids), begin, -1) if ends[at - 1] < piece.last), begin)
        places[piece.kind] = (first + begin, first + last)
        run.spans.append(Span(POLICY, _KINDS[piece.kind], *places[piece.kind]))
    if not ended:
        run.stop = "length"
    elif turn.answer is not None:
        run.final, run.stop = turn, "answer"
    else:
        executed = turn.failure is None
        found = [PASSAGES[0].passage_id, PASSAGES[1].passage_id] if executed else []
        run.steps.append(Step(query=turn.query or "", retrieved=found, valid=executed))
        if executed:
            run.searches.append(Search(tuple(found), (first, len(run.tokens)), places["query"]))
            body = "\n".join(shown(one) for one in PASSAGES[:2])
        else:
            body = f"error: {turn.failure}"
        run.read(of.encode(tool_message(body)), TOOL)


def rollout(of: Tokeniser, question: int, row: int, good: bool, hostile: bool) -> Rollout:
    """One conversation: a thought, a search, an answer; good ones cite what was found."""
    words = HOSTILE if hostile else f"Which river flows through town {question}?"
    run = Rollout(Task(f"q{question}", words), row)
    run.read(of.encode(prompt(words)), PROMPT)
    if row % GROUP == 3:
        write_turn(run, of, "<search>river of tow", ended=False)
        return run
    if row % GROUP == 1:
        write_turn(run, of, "<search> </search>")
    raw = (0xFF,) if hostile else ()
    query = f"river {HOSTILE if hostile else 'of town'}"
    write_turn(run, of, f"<think>look</think>{search_turn(query)}", raw=raw)
    write_turn(
        run, of, answer_turn(f"Ser{question}" if good else "no idea", ["p0" if good else "p9"])
    )
    return run


def update_of(of: Tokeniser, number: int, updates: int, hostile: bool) -> tuple[Update, Searched]:
    """The rollouts of an update with rewards, later ones better; the last question's are alike."""
    rollouts = [
        rollout(of, at // GROUP, at, good=at // GROUP == 2 or at % GROUP <= number, hostile=hostile)
        for at in range(GROUP * QUESTIONS)
    ]
    answered = np.array([run.final is not None for run in rollouts])
    em = np.array([bool(run.final and run.final.answer.startswith("Ser")) for run in rollouts])
    bits = {name: np.zeros(len(rollouts), np.bool_) for name in DETECTORS}
    bits["cited_not_retrieved"] = answered & ~em
    alike = np.arange(len(rollouts)) // GROUP == 2
    answer = np.where(alike, 0.25, 1.15 * em).astype(np.float32)
    terms = {
        "answer": answer,
        "tool_calls": np.array([-0.04 * len(run.searches) for run in rollouts], np.float32)
        * ~alike,
        **{name: np.float32(-by) * bits[name] * ~alike for name, by in PENALTY.items()},
    }
    reward = np.sum(list(terms.values()), axis=0).astype(np.float32)
    rewarded = Rewarded(reward, terms, bits, em.astype(np.float32), em.astype(np.float32))
    credit = np.zeros((len(rollouts), TURNS), np.float32)
    credit[::GROUP, 0] = 0.25
    credit[2::GROUP, 0] = -0.25
    executed = np.array([[k < len(run.searches) for k in range(TURNS)] for run in rollouts])
    credited = Credited(
        reward=jnp.asarray(reward),
        bonus=jnp.zeros(len(rollouts), jnp.float32),
        member=jnp.ones(len(rollouts), jnp.bool_),
        advantage=jnp.asarray(reward - reward.mean()),
        credit=jnp.asarray(credit),
        flat=jnp.asarray([False, False, True]),
    )
    nothing = np.zeros_like(credit)
    searched = Searched(
        executed=jnp.asarray(executed),
        events=jnp.asarray(np.where(executed, 0.5, 0).astype(np.float32)),
        call_tokens=jnp.asarray(nothing, jnp.int32),
        query_tokens=jnp.asarray(nothing, jnp.int32),
        coverage=jnp.asarray(executed[:, 0], jnp.float32) * (0.5 + 0.5 * number / updates),
        has_nodes=jnp.ones(len(rollouts), jnp.bool_),
    )
    return Update(number, rollouts, rewarded, credited, {}), searched


def stats_of(number: int) -> Stats:
    """An optimiser step; the gradient of update 2 is not finite."""
    return Stats(
        loss=jnp.float32(0.1 / number),
        tokens=jnp.int32(100),
        entropy=jnp.float32(150 / number),
        kl=jnp.float32(0),
        clipped_low=jnp.int32(1),
        clipped_high=jnp.int32(number % 3),
        ratio_low=jnp.float32(0.9),
        ratio_high=jnp.float32(1.1 + 0.01 * (number % 7)),
        gap=jnp.float32(1e-6),
        credited=jnp.int32(60),
        grad_norm=jnp.float32(np.inf if number == 2 else 1 / number),
        finite=jnp.bool_(number != 2),
    )


def signal_of(update: Update) -> Signal:
    """Counts of the detectors, plainly."""
    bits = np.stack([update.rewarded.detectors[name] for name in DETECTORS])
    bits = bits.reshape(len(DETECTORS), QUESTIONS, GROUP)
    share = bits.mean(axis=2)
    weight = np.array([PENALTY.get(name, 0.0) for name in DETECTORS])
    return Signal(
        groups=np.full(len(DETECTORS), QUESTIONS),
        rows=bits.sum(axis=(1, 2)),
        holding=bits.any(axis=2).sum(axis=1),
        constant=np.isin(share, (0, 1)).sum(axis=1),
        changed=((share > 0) & (share < 1) & (weight[:, None] > 0)).sum(axis=1),
        mean_square=(weight[:, None] ** 2 * share * (1 - share)).sum(axis=1),
    )


def evaluation(seed: int, right: float) -> dict:
    """A summary as `train.evaluate` makes it, of 40 questions."""
    rng = np.random.default_rng(seed)
    names = ("em", "f1", "reward", "citation_precision", "support_recall", "cites", "cited")
    names += ("unsupported", "searches", "invalid", "unanswered", "truncated", "tokens", *DETECTORS)
    values = {name: rng.binomial(5, right, 40) / 5 for name in names}
    figures = summarise(values, replicates=200, seed=0, level=0.95)
    return {
        "questions": 40,
        "rollouts": 200,
        "samples": 4,
        "seed": 0,
        "temperature": 1.0,
        "level": 0.95,
        "figures": {"all": figures},
        "question_ids": [f"held-{n}" for n in range(40)],
        "means": {name: value.tolist() for name, value in values.items()},
    }


def write_run(out: Path, *, updates: int = 3, finished: bool = True, hostile: bool = False) -> Path:
    """Write the folder.

    Args:
        out: the folder.
        updates: how many.
        finished: whether it has a summary and a last evaluation.
        hostile: whether question, query and settings hold what a page must not take for its own.
    """
    of = tokeniser()
    config = TrainConfig(
        rollouts=Rollouts(group=GROUP, questions=QUESTIONS),
        grpo=Grpo(micro_rows=GROUP),
        policy=Policy(folder=HOSTILE if hostile else ""),
    )
    log = RunLog(out, 0)
    log.write_pool(PASSAGES, [OracleRow("q0", ["Ser0"], ["p0"])])
    identity = {"settings": "0123abcd"}
    write_json(
        out / "run.json",
        {"settings": config_dict(config), "identity": identity, "device": "cpu"},
    )
    of.save(out / "tokenizer.json")
    (out / "evaluations").mkdir()
    write_json(out / "evaluations" / "update-00000000.json", evaluation(1, 0.2))
    signals = DetectorSignals(dict.fromkeys(DETECTORS, 0.0) | PENALTY)
    report, spent = CreditReport(), 0
    for number in range(1, updates + 1):
        update, searched = update_of(of, number, updates, hostile)
        spent += sum(len(run.logps) for run in update.rollouts)
        metrics = {"update": number, "tokens/budget": spent}
        metrics |= describe_rollouts(update.rollouts, update.rewarded, update.credited)
        metrics |= describe_steps([stats_of(number)])
        metrics |= signals.add(signal_of(update))
        answered = np.array([run.final is not None for run in update.rollouts])
        metrics |= report.add(update.rewarded.f1, answered, searched, group=GROUP, weight=0.25)
        metrics |= {"seconds/rollout": 3.0, "seconds/reward": 0.05, "seconds/update": 1.0}
        metrics |= {"seconds/step": 4.05, "tokens/second": 1000.0 + number}
        if number in (1, updates):
            log.write_rollouts(number, rollout_rows(update))
        log.write_metrics(metrics)
    log.close()
    if finished:
        write_json(out / "evaluations" / f"update-{updates:08d}.json", evaluation(2, 0.7))
        summary = {"updates": updates, "action_tokens": spent, "detectors": signals.lines()}
        summary |= {"credit": report.summary(), "signals": signals.sums, "evaluations": {}}
        write_json(out / "summary.json", summary)
    return out
