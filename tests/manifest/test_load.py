"""Manifest files: what is read, and what users are told when something is wrong."""

from pathlib import Path

import pytest

from herald_jax.manifest import Contract, Manifest, Reward, load_manifest
from herald_jax.types import ManifestError


def problems(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "bad.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ManifestError) as caught:
        load_manifest(path)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    return [line.removeprefix(f"{path}: ") for line in lines]


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "empty.toml"
    path.write_text("", encoding="utf-8")
    assert load_manifest(str(path)) == Manifest()


def test_what_is_left_out_keeps_its_default(tmp_path: Path) -> None:
    path = tmp_path / "some.toml"
    path.write_text(
        "[reward]\nanswer = 2\n[contracts.mine]\nbase = true\npenalties = {no_search = 1}\n",
        encoding="utf-8",
    )
    assert load_manifest(path) == Manifest(
        reward=Reward(answer=2.0),
        contracts={"mine": Contract(base=True, penalties={"no_search": 1.0})},
    )


def test_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "bom.toml"
    path.write_bytes(b"\xef\xbb\xbf[data]\nselection = 'stored'\n")
    assert load_manifest(path).data.selection == "stored"


def test_unknown_key_suggests_the_nearest(tmp_path: Path) -> None:
    [line] = problems(tmp_path, "[statistics]\nreplicate = 10\n")
    assert line.startswith("statistics.replicate: unknown_key: expected a key among `replicates`")
    assert line.endswith("got `replicate`; did you mean `replicates`?")


def test_unknown_section_suggests_the_nearest(tmp_path: Path) -> None:
    [line] = problems(tmp_path, "[Statistic]\nreplicates = 10\n")
    assert line.endswith("did you mean `statistics`?")


def test_a_key_in_the_wrong_section_names_the_right_one(tmp_path: Path) -> None:
    top, inside = problems(tmp_path, "budgets = [1]\n[reward]\nbm25_k1 = 1.2\n")
    assert top.endswith("move it under `[generators]`, `[sections]`")
    assert inside.endswith("move it under `[generators]`")


def test_every_problem_is_listed_with_its_dotted_key(tmp_path: Path) -> None:
    text = """
    [reward]
    answer = "high"
    grounding = true
    [lattice]
    detectors = ["no_serch", 3]
    [generators]
    budgets = [4, 2]
    [contracts.R_full]
    base = true
    [contracts.mine]
    weights = {answer = nan, anwser = 1.0}
    """
    keys = [line.split(": ")[:2] for line in problems(tmp_path, text)]
    assert sorted(keys) == [
        ["contracts.R_full", "reserved_name"],
        ["contracts.mine.weights.answer", "not_finite"],
        ["contracts.mine.weights.anwser", "unknown_key"],
        ["generators.budgets", "not_increasing"],
        ["lattice.detectors[0]", "unknown_name"],
        ["lattice.detectors[1]", "wrong_type"],
        ["reward.answer", "wrong_type"],
        ["reward.grounding", "wrong_type"],
    ]


@pytest.mark.parametrize("text", ["reward = 3\n", "contracts = 1\n", "[contracts]\nmine = 2\n"])
def test_a_value_where_a_table_belongs(tmp_path: Path, text: str) -> None:
    [line] = problems(tmp_path, text)
    assert "wrong_type" in line


def test_booleans_are_not_numbers_and_floats_are_not_whole(tmp_path: Path) -> None:
    text = "[statistics]\nreplicates = 10.0\nseed = true\n[detectors]\nmax_searches = false\n"
    assert [line.split(": ")[1] for line in problems(tmp_path, text)] == ["wrong_type"] * 3


def test_broken_syntax_names_the_line(tmp_path: Path) -> None:
    [line] = problems(tmp_path, "[reward]\nanswer = \n")
    assert line.startswith("not_toml: ")
    assert "line 2" in line


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes(b"# caf\xe9\n")
    with pytest.raises(ManifestError, match="not_utf8"):
        load_manifest(path)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(ManifestError, match="unreadable"):
            load_manifest(path)
