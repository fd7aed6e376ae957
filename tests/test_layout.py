"""The repository and the package it becomes: links, folders, wheel, and what no file may name."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINKS = ("audit", "kernels", "train")
PACKAGE_FILES = (".py", ".typed", ".j2", ".css", ".js")


def tracked(*patterns: str) -> list[str]:
    """Files that git tracks; the test is skipped in an unpacked source distribution."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: tracked files are unknown")
    done = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, capture_output=True, check=True
    )
    names = done.stdout.decode().split("\0")
    return [name for name in names if name and os.path.lexists(ROOT / name)]


def package_files() -> set[str]:
    """Files below `herald_jax`, through the links, as the package should hold them."""
    found = set()
    for folder, names, files in os.walk(ROOT / "herald_jax", followlinks=True):
        names[:] = [name for name in names if name != "__pycache__"]
        for name in files:
            if name.endswith(PACKAGE_FILES):
                found.add((Path(folder) / name).relative_to(ROOT).as_posix())
    return found


@pytest.mark.parametrize("name", LINKS)
def test_the_package_sees_each_top_level_folder_through_a_relative_link(name: str) -> None:
    link = ROOT / "herald_jax" / name
    assert link.is_symlink(), "checkouts need symbolic links (git config core.symlinks true)"
    assert os.readlink(link) == f"../{name}"
    assert (ROOT / name).is_dir()
    assert not (ROOT / name).is_symlink()


def test_git_keeps_the_links_as_links() -> None:
    tracked("herald_jax")
    done = subprocess.run(
        ["git", "ls-files", "--stage", "--", *(f"herald_jax/{name}" for name in LINKS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    modes = {line.split("\t")[1]: line.split()[0] for line in done.stdout.splitlines()}
    assert modes == {f"herald_jax/{name}": "120000" for name in LINKS}


def test_every_code_folder_is_a_package() -> None:
    folders = {Path(name).parent for name in package_files() if name.endswith(".py")}
    assert len(folders) > len(LINKS)
    assert [str(folder) for folder in folders if not (ROOT / folder / "__init__.py").exists()] == []


@pytest.mark.parametrize("name", LINKS)
def test_a_linked_folder_has_no_second_identity(name: str) -> None:
    path = ROOT / name / "__init__.py"
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=[])
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match=rf"import herald_jax\.{name}, not {name}"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_references_import_nothing_of_the_package() -> None:
    files = sorted((ROOT / "tests" / "reference").glob("*.py"))
    assert files
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not [name for name in names if name.split(".")[0] == "herald_jax"], path.name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Names of the files in the wheel, built from the source distribution."""
    target = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", target, ROOT],
        cwd=target,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [path] = target.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def test_the_wheel_holds_every_file_of_the_package_and_no_other(wheel: list[str]) -> None:
    assert {name for name in wheel if ".dist-info/" not in name} == package_files()
    info = {name.split(".dist-info/")[1] for name in wheel if ".dist-info/" in name}
    assert {"entry_points.txt", "licenses/LICENSE"} <= info


# Paths of somebody's machine and settings of somebody's package index. Written in parts, or this
# file would match itself.
PRIVATE = re.compile(
    "|".join(
        [
            r"(?<![\w.])/(?:work|root|home|Users|opt|mnt)/" + r"\w",
            r"[A-Z]:" + r"\\Users",
            r"(?:index|find|extra-index)-" + r"(?:url|links)",
            r"\.py" + "env|site-" + "packages/",
        ]
    )
)
TEXT = (".py", ".md", ".toml", ".txt", ".sh", ".yml", ".yaml", ".json", ".cfg", ".j2", ".css")


def test_no_file_names_a_machine() -> None:
    named = [name for name in tracked() if name.endswith(TEXT) or "." not in Path(name).name]
    assert len(named) > 20
    found = []
    for name in named:
        path = ROOT / name
        if path.is_symlink() or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if match := PRIVATE.search(line):
                found.append(f"{name}:{number}: {match[0]}")
    assert found == []
