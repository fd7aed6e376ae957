"""`herald bench` over a small checkout of scripts that measure nothing."""

import json
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import herald_jax

Herald = Callable[..., Any]

SCRIPT = """
import argparse, json, os, sys
parser = argparse.ArgumentParser()
parser.add_argument("--quick", action="store_true")
parser.add_argument("--out")
options = parser.parse_args()
{before}
row = {{"against": "", "unit": "x", "goal": None, "at_most": False, "met": None, "seconds": 2.0,
       "peer_seconds": None, "detail": ""}}
machine = {{"cpu": "A processor", "cores": 2, "usable_cores": 2, "memory_bytes": 1e9,
           "load_before": [0.5, 0, 0], "backend": "cpu", "devices": "1 x cpu", "jax": "1",
           "numpy": "2", "scipy": "1", "python": "3"}}
document = {{"schema": 1, "claim": "c", "quick": options.quick, "machine": machine, "rows": [
    row | {{"name": "{name}", "ratio": {ratio}, "unit": "{unit}", **{fields}}}], "points": []}}
with open(options.out, "w") as file:
    json.dump(document, file)
"""
MISSED = {"goal": 5, "met": False, "against": "plain Python", "peer_seconds": 8.0}


def script(name: str, ratio: float, unit: str = "x", before: str = "", **fields: Any) -> str:
    return SCRIPT.format(name=name, ratio=ratio, unit=unit, before=before, fields=fields)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a benchmark of each kind; the package says that it lies there."""
    folder = tmp_path / "checkout" / "benchmarks"
    folder.mkdir(parents=True)
    (folder / "suite.toml").write_text(
        textwrap.dedent("""
        [[benchmark]]
        name = "memory"
        script = "memory.py"
        about = "Reads memory."
        always = true
        [[benchmark]]
        name = "broken"
        script = "broken.py"
        about = "Fails."
        [[benchmark]]
        name = "kernels"
        script = "kernels.py"
        about = "Runs kernels."
        [[benchmark]]
        name = "slow"
        script = "slow.py"
        about = "Takes long."
        long = true
        """)
    )
    (folder / "memory.py").write_text(script("memory read", 20.0, "GB/s"))
    (folder / "broken.py").write_text("raise SystemExit('no numbers today')")
    (folder / "kernels.py").write_text(script("all kernels", 4.0, **MISSED))
    (folder / "slow.py").write_text(script("slow one", 7.0, goal=5, met=True))
    monkeypatch.setattr(herald_jax, "__file__", str(folder.parent / "herald_jax" / "__init__.py"))
    return folder


def results(folder: Path, name: str = "bench.json") -> dict[str, Any]:
    found = json.loads((folder / name).read_text())
    assert isinstance(found, dict)
    return found


def test_one_that_fails_stops_no_other(herald: Herald, checkout: Path, tmp_path: Path) -> None:
    done = herald("bench", folder=tmp_path)
    assert done.code == 1
    found = results(tmp_path)
    assert {one["name"]: one["status"] for one in found["benchmarks"]} == {
        "memory": "ok",
        "broken": "failed",
        "kernels": "ok",
        "slow": "ok",
    }
    assert (found["complete"], found["quick"], found["read_bandwidth"]) == (True, False, 20e9)
    assert found["machine"]["cpu"] == "A processor"
    assert found["benchmarks"][1]["failure"] == "no numbers today"
    assert all(one["peak_bytes"] > 0 and one["seconds"] > 0 for one in found["benchmarks"])
    for words in ("all kernels", "4.00x", "≥ 5x", "MISSED", "7.00x", "met", "1 of 2 goals met"):
        assert words in done.out
    assert "no numbers today" in done.out and "herald: failed: broken" in done.err
    assert "MISSED" in (tmp_path / "bench.html").read_text()


def test_no_result_names_a_folder_of_this_machine(
    herald: Herald, checkout: Path, tmp_path: Path
) -> None:
    (checkout / "broken.py").write_text("import json\njson.loads('nothing')")
    herald("bench", "--only", "broken", folder=tmp_path)
    for name in ("bench.json", "bench.html"):
        text = (tmp_path / name).read_text()
        assert "JSONDecodeError" in text and "benchmarks/broken.py" in text
        for folder in (checkout.parent, sys.prefix, sys.base_prefix, Path.home()):
            assert str(folder) not in text


def test_a_quick_run_leaves_out_what_is_long(
    herald: Herald, checkout: Path, tmp_path: Path
) -> None:
    done = herald("bench", "--quick", "--out", "deep/quick.json", folder=tmp_path)
    found = results(tmp_path / "deep", "quick.json")
    assert [one["name"] for one in found["benchmarks"]] == ["memory", "broken", "kernels"]
    assert found["quick"]
    assert (tmp_path / "deep" / "quick.html").exists()
    assert "quick run" in done.out


def test_a_goal_that_is_missed_is_no_error(herald: Herald, checkout: Path, tmp_path: Path) -> None:
    done = herald("bench", "--only", "kernels", folder=tmp_path)
    assert done.code == 0
    # The memory is measured whatever was chosen.
    assert [one["name"] for one in results(tmp_path)["benchmarks"]] == ["memory", "kernels"]


def test_it_says_what_there_is(herald: Herald, checkout: Path, tmp_path: Path) -> None:
    done = herald("bench", "--list", folder=tmp_path)
    assert [line.split()[0] for line in done.out.splitlines()] == [
        "memory",
        "broken",
        "kernels",
        "slow",
    ]
    assert not (tmp_path / "bench.json").exists()


def test_a_name_that_is_none(herald: Herald, checkout: Path, tmp_path: Path) -> None:
    done = herald("bench", "--only", "kernel", folder=tmp_path)
    assert done.code == 2
    assert "there are memory, broken, kernels, slow" in " ".join(done.err.split())


def test_without_a_checkout_it_says_what_to_do(
    herald: Herald, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(herald_jax, "__file__", str(tmp_path / "herald_jax" / "__init__.py"))
    done = herald("bench", folder=tmp_path)
    assert done.code == 2
    assert "needs the checkout" in done.err and "make setup" in done.err
    assert done.out == ""


def test_two_results_side_by_side(herald: Herald, checkout: Path, tmp_path: Path) -> None:
    herald("bench", "--only", "kernels", "--out", "one.json", folder=tmp_path)
    (checkout / "kernels.py").write_text(script("all kernels", 6.0, **MISSED | {"met": True}))
    herald("bench", "--quick", "--out", "two.json", folder=tmp_path)
    done = herald("bench", "--compare", "one.json", "two.json", folder=tmp_path)
    assert done.code == 0
    [line] = [line for line in done.out.splitlines() if "all kernels" in line]
    assert " ".join(line.split()) == "all kernels plain Python 4.00x MISSED 6.00x met"
    assert done.out.count("A processor, 2 cores") == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "no JSON"),
        ("[]", "another kind"),
        ('{"kind": "herald-jax benchmarks", "schema": 9}', "schema 9, this version reads 1"),
        (None, "No such file"),
    ],
)
def test_what_is_no_result_is_refused(
    herald: Herald, tmp_path: Path, text: str | None, reason: str
) -> None:
    if text is not None:
        (tmp_path / "a.json").write_text(text)
    done = herald("bench", "--compare", "a.json", "a.json", folder=tmp_path)
    assert done.code == 2
    assert "a.json: expected a bench.json" in done.err and reason in done.err


def test_a_row_that_lacks_something_is_refused(
    herald: Herald, checkout: Path, tmp_path: Path
) -> None:
    herald("bench", "--only", "kernels", folder=tmp_path)
    found = results(tmp_path)
    del found["benchmarks"][1]["rows"][0]["goal"]
    (tmp_path / "bench.json").write_text(json.dumps(found))
    done = herald("bench", "--compare", "bench.json", "bench.json", folder=tmp_path)
    assert done.code == 2 and "a row of kernels without goal" in done.err


def test_ctrl_c_keeps_what_was_measured(checkout: Path, tmp_path: Path) -> None:
    # The second starts a process of its own, and leaves a file where temporary files go.
    waits = (
        "import subprocess, tempfile, time\n"
        "tempfile.NamedTemporaryFile(delete=False)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"begun = open({str(tmp_path / 'begun')!r}, 'w')\n"
        "print(child.pid, tempfile.gettempdir(), file=begun, flush=True)\n"
        "time.sleep(600)"
    )
    (checkout / "broken.py").write_text(script("never", 1.0, before=waits))
    package = str(checkout.parent / "herald_jax" / "__init__.py")
    program = (
        "import herald_jax, sys\n"
        f"herald_jax.__file__ = {package!r}\n"
        "sys.argv = ['herald', 'bench']\n"
        "from herald_jax.cli import main\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    begun = tmp_path / "begun"
    while not (begun.exists() and begun.read_text()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "kept bench.json" in said and "interrupted" in said
    found = results(tmp_path)
    assert [one["name"] for one in found["benchmarks"]] == ["memory"]
    assert not found["complete"]
    child, temporary = begun.read_text().split()
    assert not Path(temporary).exists()
    assert ended(int(child))


def ended(process: int) -> bool:
    """Whether a process is gone, or only waits for whoever started it to hear of its end."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False
