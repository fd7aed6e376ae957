"""The three pools whose figures are known, where they are at hand."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reference.audit import audit
from reference.records import load_pool

SHARED = Path(__file__).parents[3] / "shared"


@pytest.mark.parametrize("name", ["react_hotpot", "hagrid", "hotpot_agents"])
def test_every_expected_figure(name: str, tmp_path: Path):
    if not SHARED.is_dir():
        pytest.skip(f"no {SHARED}: the pools with known figures are not at hand")
    report = tmp_path / "report.json"
    report.write_text(json.dumps(audit(*load_pool(SHARED / "pools" / name))))
    expected = SHARED / "expected" / f"{name}.json"
    compared = subprocess.run(
        [sys.executable, SHARED / "compare.py", expected, report], capture_output=True, text=True
    )
    assert compared.returncode == 0, compared.stdout + compared.stderr
