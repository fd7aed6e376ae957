"""What the documentation shows is run, so that it cannot drift from the code."""

import json
import re
from pathlib import Path

import pytest

from herald_jax.data.validate import validate_files
from herald_jax.manifest import Manifest, load_manifest
from herald_jax.manifest.load import SECTIONS

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: str, language: str) -> list[str]:
    """Fenced blocks of one language."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_manifest_example_is_valid(tmp_path: Path) -> None:
    [example] = blocks("docs/manifest.md", "toml")
    path = tmp_path / "audit.toml"
    path.write_text(example, encoding="utf-8")
    manifest = load_manifest(path)
    assert manifest.penalties.cited_not_retrieved == 0.6
    assert set(manifest.contracts) == {"grounded_only"}


def test_the_manifest_in_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "audit.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    [example] = blocks("docs/manifest.md", "python")
    names: dict[str, object] = {}
    exec(compile(example, "docs/manifest.md", "exec"), names)
    manifest = names["manifest"]
    assert isinstance(manifest, Manifest)
    assert manifest.statistics.seed == 7


def test_every_section_of_the_manifest_is_described() -> None:
    text = (ROOT / "docs" / "manifest.md").read_text(encoding="utf-8")
    assert [name for name in SECTIONS if f"`[{name}]`" not in text] == []


def test_the_record_examples_are_valid(tmp_path: Path) -> None:
    trajectory, others = blocks("docs/formats.md", "json")
    passage, gold = others.splitlines()
    lines = {
        "trajectories.jsonl": json.dumps(json.loads(trajectory)),
        "corpus.jsonl": passage,
        "oracle.jsonl": gold,
    }
    for name, line in lines.items():
        (tmp_path / name).write_text(line + "\n", encoding="utf-8")
    assert list(validate_files([tmp_path / name for name in lines])) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:]+)\)", text)
    assert [target for target in targets if not (page.parent / target).exists()] == []
