"""Every setting of an audit, typed, checked when it is made, with the defaults of docs/SPEC.md.

Each section is a frozen dataclass whose fields carry their rule and the line that explains them in
`herald manifest`. A section that breaks a rule cannot be constructed: `SettingError` lists all that
is wrong with it, whether it came from a TOML file or from Python.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from herald_jax.manifest.names import (
    BUILT_IN_CONTRACTS,
    GENERATORS,
    OPERATORS,
    PRIMARY_OPERATORS,
    SELECTIONS,
    VISIBLE_GENERATORS,
)
from herald_jax.manifest.rules import (
    Choice,
    Flag,
    Integer,
    Items,
    Number,
    Problem,
    Rule,
    RuleError,
    Table,
    broken,
    listed,
    read_all,
    shown,
)
from herald_jax.types import DETECTORS, FEATURES, ManifestError

# Bounds keep every margin far inside the fixed-point range in which margins are summed.
WEIGHT = Number(low=-1000.0, high=1000.0)
PENALTY = Number(low=0.0, high=1000.0)
SHARE = Number(low=0.0, high=1.0)
COUNT = Integer(low=1, high=1_000_000)
SWITCH = Flag()

CONTRACT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
FEATURE_WEIGHTS = Table(FEATURES, WEIGHT)
DETECTOR_PENALTIES = Table(DETECTORS, PENALTY)


class SettingError(ManifestError):
    """A section that cannot be made; `problems` lists everything that is wrong with it."""

    def __init__(self, owner: str, problems: Sequence[Problem]):
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem.in_file(owner)) for problem in problems))


def setting(default: object, rule: Rule, explanation: str) -> Any:
    """Dataclass field with its rule and the line that explains it to users."""
    return field(default=default, metadata={"rule": rule, "explanation": explanation})


class Section:
    """Base of the sections: applies each field's rule, then the checks across fields."""

    def __post_init__(self) -> None:
        # Every section is a dataclass; the base class, which mypy sees, is none.
        rules = {item.name: item.metadata["rule"] for item in fields(self)}  # type: ignore[arg-type]
        try:
            values = read_all({name: (rules[name], getattr(self, name)) for name in rules})
        except RuleError as error:
            raise SettingError(type(self).__name__, error.problems) from None
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if problems := list(self.conflicts()):
            raise SettingError(type(self).__name__, problems)

    def conflicts(self) -> Iterator[Problem]:
        """What is wrong between fields that are each right."""
        return iter(())


@dataclass(frozen=True, kw_only=True)
class Reward(Section):
    """Weights of the base reward R0, one for each feature (SPEC section 4)."""

    answer: float = setting(1.15, WEIGHT, "a: token F1 of the answer")
    grounding: float = setting(1.05, WEIGHT, "g: precision and recall of the cited ids")
    citation_format: float = setting(0.30, WEIGHT, "c: an answer with readable citations")
    tool_calls: float = setting(-0.04, WEIGHT, "t: executed searches")
    invalid_rate: float = setting(-0.80, WEIGHT, "v: share of actions that were invalid")
    hacking_rate: float = setting(-0.55, WEIGHT, "h: mean of the hacking flags")
    answer_length: float = setting(-0.004, WEIGHT, "l: white-space tokens of the answer")


@dataclass(frozen=True, kw_only=True)
class Features(Section):
    """How two features are composed (SPEC sections 3 and 4)."""

    grounding_precision: float = setting(0.55, SHARE, "weight of citation precision in grounding")
    grounding_recall: float = setting(0.45, SHARE, "weight of support recall in grounding")
    hacking_flags: tuple[str, ...] = setting(
        tuple(name for name in DETECTORS if name != "no_search"),
        Items(item=Choice(DETECTORS), high=len(DETECTORS)),
        "flags whose mean is the hacking rate",
    )


@dataclass(frozen=True, kw_only=True)
class Detectors(Section):
    """Thresholds of the detectors that count searches (SPEC section 3)."""

    min_searches: int = setting(
        1, Integer(low=0, high=10_000), "fewer executed searches are under_retrieval"
    )
    max_searches: int = setting(
        4, Integer(low=0, high=10_000), "more executed searches are over_retrieval"
    )

    def conflicts(self) -> Iterator[Problem]:
        """The two thresholds leave at least one number of searches that trips neither."""
        if self.max_searches < self.min_searches:
            yield Problem(
                "max_searches",
                "out_of_range",
                f"at least min_searches ({self.min_searches})",
                str(self.max_searches),
                "raise it or lower min_searches",
            )


@dataclass(frozen=True, kw_only=True)
class Penalties(Section):
    """λ of each detector in R_full, and in R[S] for those of the lattice (SPEC section 4)."""

    no_search: float = setting(1.6, PENALTY, "λ_U")
    cited_not_retrieved: float = setting(1.2, PENALTY, "λ_L")
    fake_citation: float = setting(1.0, PENALTY, "λ_F")
    support_id_mismatch: float = setting(0.8, PENALTY, "λ_M")
    answer_without_citation: float = setting(0.5, PENALTY, "λ_A")
    repeated_query: float = setting(0.3, PENALTY, "λ_Q")
    over_retrieval: float = setting(0.2, PENALTY, "λ_O")
    under_retrieval: float = setting(0.0, PENALTY, "not part of the paper's full reward")


@dataclass(frozen=True, kw_only=True)
class Lattice(Section):
    """Whose subsets R[S] are audited, and the scales of the sensitivity table (SPEC section 8)."""

    detectors: tuple[str, ...] = setting(
        ("no_search", "cited_not_retrieved", "fake_citation"),
        Items(item=Choice(DETECTORS), high=10),
        "2^n contracts are audited for n detectors",
    )
    scales: tuple[float, ...] = setting(
        (0.0, 0.25, 0.5, 1.0, 2.0),
        Items(item=Number(low=0.0, high=100.0), increasing=True),
        "factors on every λ of the lattice",
    )


@dataclass(frozen=True, kw_only=True)
class Operators(Section):
    """Which edits are made (SPEC section 5)."""

    names: tuple[str, ...] = setting(
        OPERATORS, Items(item=Choice(OPERATORS)), "edits that are tried"
    )
    primary: tuple[str, ...] = setting(
        PRIMARY_OPERATORS,
        Items(item=Choice(OPERATORS)),
        "edits that decide whether a contract is sufficient",
    )

    def conflicts(self) -> Iterator[Problem]:
        """A primary operator is one that runs."""
        for name in self.primary:
            if name not in self.names:
                yield Problem(
                    "primary",
                    "not_in_names",
                    f"operators among operators.names, {listed(self.names)}",
                    f"`{name}`",
                    "add it to operators.names or drop it here",
                )


@dataclass(frozen=True, kw_only=True)
class Generators(Section):
    """Where laundering's replacement passages come from (SPEC section 6)."""

    primary: str = setting("lexical", Choice(VISIBLE_GENERATORS), "generator of the primary tables")
    primary_k: int = setting(8, Integer(low=1, high=1024), "its candidates for each row")
    budget_generators: tuple[str, ...] = setting(
        ("bm25", "exhaustive"),
        Items(item=Choice(GENERATORS), low=0, high=len(GENERATORS)),
        "generators of the budget table; exhaustive takes all passages whatever the budget",
    )
    budgets: tuple[int, ...] = setting(
        (1, 2, 4, 8, 16),
        Items(item=Integer(low=1, high=1024), increasing=True),
        "candidates for each row, one line of the table each",
    )
    bm25_k1: float = setting(1.5, Number(low=0.0, high=100.0), "saturation of term frequency")
    bm25_b: float = setting(0.75, SHARE, "normalisation by passage length")
    bm25_epsilon: float = setting(0.25, SHARE, "floor of negative idf, okapi only")
    bm25_variant: str = setting(
        "okapi", Choice(("okapi", "lucene")), "formula of the inverse document frequency"
    )


@dataclass(frozen=True, kw_only=True)
class Statistics(Section):
    """Estimates and intervals (SPEC section 7)."""

    replicates: int = setting(5000, COUNT, "bootstrap replicates over questions")
    seed: int = setting(0, Integer(low=0, high=2**32 - 1), "seed of the bootstrap")
    level: float = setting(
        0.95, Number(low=0.0, high=1.0, open_ended=True), "confidence of intervals and bounds"
    )
    weighting: str = setting(
        "question", Choice(("question", "row")), "whether questions or rows weigh alike"
    )
    tie_tolerance: float = setting(
        1e-6, Number(low=0.0, high=1.0), "an attack succeeds at a margin of at least minus this"
    )


@dataclass(frozen=True, kw_only=True)
class Data(Section):
    """How log files are read (SPEC sections 1, 2 and 9)."""

    rules: str = setting(
        "unicode", Choice(("unicode", "squad")), "normalisation of answers for EM and F1"
    )
    assume_no_citations: bool = setting(
        False, SWITCH, "read citations that were not logged as an empty list"
    )
    selection: str = setting("all", Choice(SELECTIONS), "rows that the audit runs on")


@dataclass(frozen=True, kw_only=True)
class Sections(Section):
    """Which further tables the report holds."""

    pools: tuple[str, ...] = setting(
        SELECTIONS,
        Items(item=Choice(SELECTIONS), low=0, high=len(SELECTIONS)),
        "selections of rows that are audited side by side",
    )
    split_by_model: bool = setting(True, SWITCH, "one table for each model")
    split_by_pool: bool = setting(True, SWITCH, "one table for each pool")
    cancellation: bool = setting(True, SWITCH, "why a further penalty can weaken a contract")
    scales: bool = setting(True, SWITCH, "sensitivity to the size of the penalties")
    budgets: bool = setting(True, SWITCH, "attack success against the number of candidates")
    utility: bool = setting(True, SWITCH, "what each contract would select for")
    group_signal: bool = setting(True, SWITCH, "whether a penalty changes group advantages")
    worst_examples: int = setting(
        3, Integer(low=0, high=100), "worst attacks shown for each operator and contract"
    )
    histogram_bins: int = setting(40, Integer(low=2, high=1000), "bins of margin histograms")


@dataclass(frozen=True, kw_only=True)
class Contract(Section):
    """A reward of the user's own: Σ weights·features − Σ penalties·detectors, plus R0 if `base`."""

    weights: Mapping[str, float] = field(
        default_factory=dict,
        metadata={"rule": FEATURE_WEIGHTS, "explanation": "weight of each feature"},
    )
    penalties: Mapping[str, float] = field(
        default_factory=dict,
        metadata={"rule": DETECTOR_PENALTIES, "explanation": "λ of each detector, subtracted"},
    )
    base: bool = setting(False, SWITCH, "add the base reward R0")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "weights", MappingProxyType(dict(self.weights)))
        object.__setattr__(self, "penalties", MappingProxyType(dict(self.penalties)))

    def conflicts(self) -> Iterator[Problem]:
        """A contract that pays for nothing cannot be audited."""
        if not (self.weights or self.penalties or self.base):
            yield Problem(
                "",
                "empty_contract",
                "weights, penalties or base = true",
                "none of them",
                "say what the contract pays for",
            )


class Contracts:
    """Rule of `Manifest.contracts`: names that no built-in contract has."""

    def read(self, value: object) -> Mapping[str, Contract]:
        """Return a read-only mapping in the order given."""
        if not isinstance(value, Mapping):
            raise broken("wrong_type", "a table of contracts", value)
        problems = [problem for name in value for problem in self.name_problems(name)]
        made = read_all({str(name): (Instance(Contract), value[name]) for name in value}, problems)
        return MappingProxyType(made)

    def name_problems(self, name: object) -> Iterator[Problem]:
        """What is wrong with the name of a contract."""
        if name in BUILT_IN_CONTRACTS or str(name).startswith("R["):
            expected = "a name that no built-in contract has"
            yield Problem(str(name), "reserved_name", expected, shown(name), "rename it")
        elif not isinstance(name, str) or not CONTRACT_NAME.fullmatch(name):
            expected = "a name of letters, digits, _ and -, at most 64, not led by a digit"
            yield Problem(str(name), "bad_name", expected, shown(name), "rename it")


@dataclass(frozen=True)
class Instance:
    """Rule of a field that holds a whole section."""

    kind: type[Section]

    def read(self, value: object) -> Section:
        """Return the section as it is."""
        if not isinstance(value, self.kind):
            raise broken("wrong_type", f"a {self.kind.__name__}", value)
        return value


def holding(kind: type[Section]) -> dict[str, Rule]:
    """Metadata of a field that holds a section."""
    return {"rule": Instance(kind)}


@dataclass(frozen=True, kw_only=True)
class Manifest(Section):
    """All settings of an audit."""

    data: Data = field(default_factory=Data, metadata=holding(Data))
    reward: Reward = field(default_factory=Reward, metadata=holding(Reward))
    features: Features = field(default_factory=Features, metadata=holding(Features))
    detectors: Detectors = field(default_factory=Detectors, metadata=holding(Detectors))
    penalties: Penalties = field(default_factory=Penalties, metadata=holding(Penalties))
    lattice: Lattice = field(default_factory=Lattice, metadata=holding(Lattice))
    operators: Operators = field(default_factory=Operators, metadata=holding(Operators))
    generators: Generators = field(default_factory=Generators, metadata=holding(Generators))
    statistics: Statistics = field(default_factory=Statistics, metadata=holding(Statistics))
    sections: Sections = field(default_factory=Sections, metadata=holding(Sections))
    contracts: Mapping[str, Contract] = field(default_factory=dict, metadata={"rule": Contracts()})
