"""The reference is worth something only as long as it shares no code with what it checks."""

import ast
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODULES = sorted(path for path in HERE.glob("*.py") if not path.name.startswith("test_"))


def imported_packages(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or ".").split(".")[0])
    return found


def test_the_check_sees_an_import(tmp_path: Path):
    probe = tmp_path / "probe.py"
    probe.write_text("import math\ndef f():\n    from herald_jax.types import PAD\n")
    assert imported_packages(probe) == {"math", "herald_jax"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_standard_library_and_itself_alone(path: Path):
    assert imported_packages(path) <= set(sys.stdlib_module_names) | {"reference"}
