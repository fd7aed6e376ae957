"""Settings: every one in the default file, every fault named with its field and what was meant."""

import tomllib
from dataclasses import fields, replace

import pytest
from train_setups import small_config

from herald_jax.manifest.config import SettingError
from herald_jax.train.config import Credit, Grpo, TrainConfig
from herald_jax.train.config_load import (
    SECTIONS,
    config_dict,
    config_digest,
    default_config_toml,
    load_config,
    parse_config,
    read_config,
)
from herald_jax.types import ManifestError


def test_the_default_file_holds_every_table_and_key_and_is_the_default():
    document = tomllib.loads(default_config_toml())
    expected = {name: {item.name for item in fields(kind)} for name, kind in SECTIONS.items()}
    assert {name: set(table) for name, table in document.items()} == expected
    assert parse_config(document, "defaults") == TrainConfig()


def test_every_setting_of_the_default_file_is_explained():
    lines = [
        line for line in default_config_toml().splitlines() if " = " in line and line[0] != "#"
    ]
    assert len(lines) == sum(len(fields(kind)) for kind in SECTIONS.values())
    assert all(line.partition("  # ")[2].strip() for line in lines)


@pytest.mark.parametrize("name", SECTIONS)
def test_a_table_of_values_that_are_no_defaults_comes_back(name):
    """One table changed at all its keys, written by hand and read again."""
    table = {}
    for item in fields(SECTIONS[name]):
        default = item.default
        if isinstance(default, bool):
            table[item.name] = not default
        elif isinstance(default, int):
            table[item.name] = default + 1 if item.name != "micro_rows" else 32
        elif isinstance(default, float):
            table[item.name] = default / 2 + 0.01
        elif isinstance(default, tuple):
            table[item.name] = [item.metadata["rule"].item.choices[-1]]
        else:
            choices = getattr(item.metadata["rule"], "choices", ())
            table[item.name] = choices[-1] if choices else "x"
    if name == "rollouts":
        table |= {"group": 16, "questions": 16}
    if name == "mesh":
        table = {"data": 2, "fsdp": 4, "tensor": 2}
    # A policy that starts from another's has no warm start of its own.
    document = {name: table} | ({"warm_start": {"steps": 0}} if name == "policy" else {})
    config = parse_config(document, "test")
    found = config_dict(config)
    assert found[name] == table
    assert parse_config(found, "again") == config
    assert all(
        found[other] == config_dict(TrainConfig())[other]
        for other in found.keys() - document.keys()
    )


ROWS = {"rollouts": {"group": 8, "questions": 8}}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"grpo": {"clip_lo": 0.2}}, "grpo.clip_lo: unknown_key: .*did you mean `clip_low`"),
        ({"gpro": {}}, "gpro: unknown_key: .*did you mean `grpo`"),
        ({"grpo": {"budget": 5}}, r"grpo.budget: unknown_key: .*move it under `\[run\]`"),
        ({"credit": {"signal": "covdep"}}, "credit.signal: unknown_name: .*mean `cov_dep`"),
        ({"policy": {"preset": "qwen3-8"}}, "policy.preset: .*did you mean `qwen3-8b`"),
        ({"rollouts": {"top_p": 1.5}}, r"rollouts.top_p: out_of_range: .*\[0.01, 1\], got 1.5"),
        ({"rollouts": {"group": 1}}, "rollouts.group: out_of_range: .*from 2 to 1024, got 1"),
        ({"rollouts": {"group": 8.0}}, "rollouts.group: wrong_type"),
        ({"run": {"seed": True}}, "run.seed: wrong_type"),
        ({"data": {"pool": 3}}, "data.pool: wrong_type: expected a string, got 3"),
        ({"data": {"kinds": ["single", "chain"]}}, r"data.kinds\[1\]: unknown_name"),
        ({"data": 3}, r"data: wrong_type: expected a table \[data\]"),
        (ROWS | {"grpo": {"micro_rows": 7}}, r"grpo.micro_rows: does_not_divide: .*\(64\), got 7"),
        (
            ROWS | {"grpo": {"micro_rows": 16}, "mesh": {"data": 3}},
            r"mesh: does_not_divide: .*\(16\), got 3",
        ),
        ({"policy": {"start": "run"}}, "policy.start: two_starts: .*warm_start.steps = 0"),
        (
            {"credit": {"incorporation": "scalar", "control": "no_flat"}},
            'credit.control: not_local: .*incorporation = "local"',
        ),
    ],
)
def test_a_fault_names_the_field_and_what_is_right(document, said):
    with pytest.raises(ManifestError, match=f"^my.toml: {said}"):
        parse_config(document, "my.toml")


def test_all_faults_come_at_once():
    with pytest.raises(ManifestError) as error:
        parse_config({"run": {"sed": 1}, "grpo": {"eps": -1, "kl": "x"}, "nothing": 1}, "my.toml")
    lines = str(error.value).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["run.sed", "grpo.kl", "grpo.eps", "nothing"]


def test_settings_made_in_python_are_checked_too():
    with pytest.raises(SettingError, match="aggregation"):
        Grpo(aggregation="mean")
    with pytest.raises(SettingError, match="control"):
        Credit(incorporation="scalar", control="flat_only")


def test_single_settings_change_a_file(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('[run]\nseed = 3\nbudget = 10\n[reward]\ncontract = "R0"\n')
    overrides = [
        "run.seed=4",
        "grpo.kl = 0.5",
        "grpo.shuffle_advantages=true",
        "reward.contract=R[U]",
        "data.pool=my pool",
        'data.kinds=["wide", "single"]',
    ]
    config = read_config(path, overrides)
    assert (config.run.seed, config.run.budget) == (4, 10)
    assert (config.grpo.kl, config.grpo.shuffle_advantages) == (0.5, True)
    assert config.reward.contract == "R[U]"
    assert (config.data.pool, config.data.kinds) == ("my pool", ("wide", "single"))
    assert load_config(path).run.seed == 3
    assert read_config(None, []) == TrainConfig()


@pytest.mark.parametrize("override", ["run.seed", "seed=1", "run.=1", "=1", ""])
def test_an_override_that_is_none_is_named(override):
    with pytest.raises(ManifestError, match=r"--set .*: expected table.key=value"):
        read_config(None, [override])


def test_faults_of_overrides_name_their_field(tmp_path):
    with pytest.raises(ManifestError, match=r"the defaults with --set: run.sed: .*`seed`"):
        read_config(None, ["run.sed=1"])
    with pytest.raises(ManifestError, match=r"run.seed: wrong_type: .*got 'one'"):
        read_config(None, ["run.seed=one"])
    path = tmp_path / "config.toml"
    path.write_text("run = 3\n")
    with pytest.raises(ManifestError, match=r"run: wrong_type: expected a table \[run\]"):
        read_config(path, ["run.seed=1"])


def test_a_file_that_is_none_is_named(tmp_path):
    with pytest.raises(ManifestError, match=r"absent.toml: unreadable"):
        load_config(tmp_path / "absent.toml")
    (tmp_path / "bad.toml").write_text("[run\n")
    with pytest.raises(ManifestError, match=r"bad.toml: not_toml"):
        load_config(tmp_path / "bad.toml")


def test_the_digest_is_of_what_a_run_computes():
    base = small_config()
    digest = config_digest(base)
    for longer in (
        {"run": {"budget": 5}},
        {"run": {"updates": 9, "checkpoint_every": 3, "keep": 1}},
        {"evaluation": {"every": 7, "questions": 9, "seed": 3}},
    ):
        assert config_digest(small_config(**longer)) == digest
    others = {
        config_digest(small_config(**change))
        for change in (
            {"grpo": {"clip_low": 0.1}},
            {"run": {"seed": 1}},
            {"reward": {"contract": "R[U]"}},
            {"credit": {"control": "permute"}},
            {"mesh": {"data": 2}},
        )
    }
    assert len(others | {digest}) == 6
    assert config_digest(replace(base)) == digest
