"""Every setting of a training run, typed, checked when it is made (SPEC section 10).

One frozen section a subject, read from a TOML file by `train.config_load`. Which reward is paid
is not said here but by a manifest, the file that an audit reads: a run names one of its contracts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from herald_jax.manifest.config import Section, holding, setting
from herald_jax.manifest.rules import Choice, Flag, Integer, Items, Number, Problem, broken
from herald_jax.types import DETECTORS

KINDS = ("single", "chain2", "chain3", "chain4", "conjunction", "wide", "fan_in")
# The scripted agents of `world.habits`; a test holds the lists together.
HABITS = (
    "careful",
    "hasty",
    "rambling",
    "recalling",
    "guessing",
    "fabricating",
    "parroting",
    "uncited",
    "misciting",
)
SIGNALS = ("none", "cov", "cov_dep", "answer_match")
INCORPORATIONS = ("scalar", "local")
CONTROLS = ("none", "permute", "flat_only", "no_flat")
SCALES = ("sd", "none", "batch")
AGGREGATIONS = ("token_mean", "row_mean", "fixed_length")

_COUNT = Integer(low=1, high=1_000_000)
_FEW = Integer(low=1, high=4096)
_SEED = Integer(low=0, high=2**31 - 1)
_RATE = Number(low=0.0, high=1.0)


@dataclass(frozen=True)
class Text:
    """A string."""

    def read(self, value: object) -> str:
        """Return the string."""
        if not isinstance(value, str):
            raise broken("wrong_type", "a string", value)
        return value


@dataclass(frozen=True, kw_only=True)
class Data(Section):
    """Where questions, passages and gold labels come from."""

    pool: str = setting(
        "", Text(), "folder with corpus, oracle and logs; empty: the built-in world"
    )
    world_seed: int = setting(0, _SEED, "seed of the built-in world")
    questions: int = setting(3000, _COUNT, "questions of the built-in world, all splits")
    kinds: tuple[str, ...] = setting(
        ("single",),
        Items(item=Choice(KINDS)),
        "kinds of its questions that are trained on",
    )
    held_out: float = setting(
        0.2, Number(low=0.0, high=0.9), "share of a pool's questions kept for evaluation"
    )


@dataclass(frozen=True, kw_only=True)
class Policy(Section):
    """The model and its tokeniser."""

    preset: str = setting(
        "tiny",
        Choice(("tiny", "small", "qwen3-0.6b", "qwen3-1.7b", "qwen3-8b", "qwen3-14b")),
        "shape of the model; not read where `folder` is given",
    )
    folder: str = setting(
        "", Text(), "Hugging Face checkpoint: config.json, tokenizer.json, weights"
    )
    vocab: int = setting(
        1024, Integer(low=300, high=65536), "tokens of the tokeniser trained on the corpus"
    )
    compute: str = setting(
        "auto",
        Choice(("auto", "float32", "bfloat16")),
        "auto: bfloat16 on an accelerator, float32 on CPU",
    )
    start: str = setting(
        "", Text(), "RUN/checkpoints/STEP whose policy it starts from; with warm_start.steps = 0"
    )
    lora_rank: int = setting(0, Integer(low=0, high=1024), "0 trains all weights")
    lora_alpha: float = setting(16.0, Number(low=0.0, high=4096.0), "scale of the low-rank update")


@dataclass(frozen=True, kw_only=True)
class Environment(Section):
    """What the policy acts in."""

    turns: int = setting(
        4, Integer(low=1, high=64), "most actions of a rollout, the answer included"
    )
    results: int = setting(1, Integer(low=1, high=100), "passages that a search brings back")
    passage_tokens: int = setting(96, _FEW, "a passage is shown up to this many tokens")


@dataclass(frozen=True, kw_only=True)
class Rollouts(Section):
    """How the policy is sampled."""

    group: int = setting(8, Integer(low=2, high=1024), "rollouts of a question")
    questions: int = setting(16, _FEW, "questions of an update")
    temperature: float = setting(1.0, Number(low=0.01, high=10.0), "of sampling")
    top_p: float = setting(1.0, Number(low=0.01, high=1.0), "share of the probability that is kept")
    turn_tokens: int = setting(48, _FEW, "most tokens of one action")
    compose: str = setting(
        "as_drawn",
        Choice(("as_drawn", "mixed")),
        "mixed: draw more rollouts and choose groups in which `detector` differs",
    )
    detector: str = setting("cited_not_retrieved", Choice(DETECTORS), "what a mixed group mixes")
    oversample: int = setting(2, Integer(low=2, high=16), "times as many rollouts drawn for mixing")


@dataclass(frozen=True, kw_only=True)
class Reward(Section):
    """What is paid: a contract of a manifest."""

    manifest: str = setting("", Text(), "the audit's settings file; empty: its defaults")
    contract: str = setting("R0", Text(), "name of the contract, built-in or the user's own")


@dataclass(frozen=True, kw_only=True)
class Grpo(Section):
    """The objective (SPEC section 10): group advantages, clipped ratios, optional KL."""

    clip_low: float = setting(0.2, Number(low=0.0, high=1.0), "ε_low")
    clip_high: float = setting(0.28, Number(low=0.0, high=100.0), "ε_high")
    kl: float = setting(0.0, Number(low=0.0, high=100.0), "β of KL to the policy after warm start")
    scale: str = setting("sd", Choice(SCALES), "what centred rewards are divided by")
    eps: float = setting(1e-6, Number(low=0.0, high=1.0), "added to the sd")
    aggregation: str = setting("token_mean", Choice(AGGREGATIONS), "how tokens weigh in the loss")
    length: int = setting(256, _FEW, "L of fixed_length")
    epochs: int = setting(1, Integer(low=1, high=64), "inner steps on the same rollouts")
    micro_rows: int = setting(8, _FEW, "rollouts of a micro-batch")
    shuffle_advantages: bool = setting(
        False, Flag(), "control: advantages permuted within each group, so that they mean nothing"
    )


@dataclass(frozen=True, kw_only=True)
class Credit(Section):
    """Retrieval credit (arXiv 2610.10179)."""

    signal: str = setting("cov", Choice(SIGNALS), "what a search is credited for")
    incorporation: str = setting(
        "local", Choice(INCORPORATIONS), "scalar: added to the reward; local: to the query's tokens"
    )
    control: str = setting("none", Choice(CONTROLS), "controls of the paper")
    scalar_weight: float = setting(0.25, Number(low=0.0, high=100.0), "weight of the summed events")
    local_weight: float = setting(0.5, Number(low=0.0, high=100.0), "weight at the query's tokens")

    def conflicts(self) -> Iterator[Problem]:
        """Two controls are about local credit alone."""
        if self.control in ("flat_only", "no_flat") and self.incorporation != "local":
            yield Problem(
                "control",
                "not_local",
                'incorporation = "local" with this control',
                f"`{self.incorporation}`",
                'set incorporation = "local" or control = "none" or "permute"',
            )


@dataclass(frozen=True, kw_only=True)
class Optimizer(Section):
    """AdamW with linear warm-up."""

    learning_rate: float = setting(3e-4, _RATE, "after warm-up")
    warmup: int = setting(10, Integer(low=0, high=1_000_000), "updates of linear warm-up")
    clip_norm: float = setting(1.0, Number(low=0.0, high=1e6), "largest norm of a gradient")
    weight_decay: float = setting(0.0, _RATE, "of matrices; norms have none")
    beta1: float = setting(0.9, Number(low=0.0, high=0.9999), "of Adam")
    beta2: float = setting(0.99, Number(low=0.0, high=0.99999), "of Adam")
    skips: int = setting(
        5, Integer(low=1, high=1000), "updates with a gradient that is not finite, before it stops"
    )


@dataclass(frozen=True, kw_only=True)
class WarmStart(Section):
    """Supervised start on scripted traces, so that a policy from nothing learns the format."""

    steps: int = setting(1500, Integer(low=0, high=1_000_000), "0: none")
    rows: int = setting(32, _FEW, "traces of a step")
    learning_rate: float = setting(3e-3, _RATE, "highest; it falls to a tenth")
    tokens: int = setting(256, _FEW, "longer traces are left out")
    traces: str = setting("", Text(), "file of trajectories to imitate; empty: the world's agents")
    rollouts: int = setting(8, Integer(low=1, high=1024), "of the agents, for each question")
    habits: tuple[str, ...] = setting(
        tuple(name for name in HABITS if name not in ("recalling", "guessing")),
        Items(item=Choice(HABITS)),
        "agents that are imitated; those that answer from memory teach nothing but facts",
    )


@dataclass(frozen=True, kw_only=True)
class Mesh(Section):
    """Devices along each axis; their product is the number of devices in use."""

    data: int = setting(1, _FEW, "copies of the policy, each with a share of the rollouts")
    fsdp: int = setting(1, _FEW, "shares of every weight, and of the rollouts")
    tensor: int = setting(1, _FEW, "shares of heads and hidden units")


@dataclass(frozen=True, kw_only=True)
class Evaluation(Section):
    """Held-out questions: one greedy and some sampled rollouts of each."""

    every: int = setting(
        0, Integer(low=0, high=1_000_000), "updates between evaluations; 0: at the ends"
    )
    questions: int = setting(100, _COUNT, "held-out questions")
    samples: int = setting(
        4, Integer(low=0, high=64), "sampled rollouts of each beside the greedy one"
    )
    seed: int = setting(0, _SEED, "of the samples")


@dataclass(frozen=True, kw_only=True)
class Run(Section):
    """Length, seed and what is kept."""

    seed: int = setting(0, _SEED, "of weights, order of questions and sampling")
    budget: int = setting(
        400_000,
        Integer(low=0, high=2**62),
        "generated action tokens; the run stops at the first update at or past it",
    )
    updates: int = setting(
        1_000_000, Integer(low=0, high=2**31 - 1), "it also stops after this many"
    )
    checkpoint_every: int = setting(20, _COUNT, "updates between checkpoints")
    keep: int = setting(2, Integer(low=1, high=1000), "checkpoints that stay")


@dataclass(frozen=True, kw_only=True)
class TrainConfig(Section):
    """All settings of a run."""

    data: Data = field(default_factory=Data, metadata=holding(Data))
    policy: Policy = field(default_factory=Policy, metadata=holding(Policy))
    environment: Environment = field(default_factory=Environment, metadata=holding(Environment))
    rollouts: Rollouts = field(default_factory=Rollouts, metadata=holding(Rollouts))
    reward: Reward = field(default_factory=Reward, metadata=holding(Reward))
    grpo: Grpo = field(default_factory=Grpo, metadata=holding(Grpo))
    credit: Credit = field(default_factory=Credit, metadata=holding(Credit))
    optimizer: Optimizer = field(default_factory=Optimizer, metadata=holding(Optimizer))
    warm_start: WarmStart = field(default_factory=WarmStart, metadata=holding(WarmStart))
    mesh: Mesh = field(default_factory=Mesh, metadata=holding(Mesh))
    evaluation: Evaluation = field(default_factory=Evaluation, metadata=holding(Evaluation))
    run: Run = field(default_factory=Run, metadata=holding(Run))

    def conflicts(self) -> Iterator[Problem]:
        """Rollouts of an update divide into micro-batches and over the devices."""
        if self.policy.start and self.warm_start.steps:
            yield Problem(
                "policy.start",
                "two_starts",
                "warm_start.steps = 0 with it",
                str(self.warm_start.steps),
                "set warm_start.steps = 0 or leave policy.start empty",
            )
        rows = self.rollouts.group * self.rollouts.questions
        share = self.mesh.data * self.mesh.fsdp
        if rows % self.grpo.micro_rows:
            yield Problem(
                "grpo.micro_rows",
                "does_not_divide",
                f"a divisor of rollouts.group * rollouts.questions ({rows})",
                str(self.grpo.micro_rows),
                "choose one that divides it",
            )
        if self.grpo.micro_rows % share:
            yield Problem(
                "mesh",
                "does_not_divide",
                f"data * fsdp that divides grpo.micro_rows ({self.grpo.micro_rows})",
                str(share),
                "use fewer devices on these axes or a larger micro-batch",
            )
