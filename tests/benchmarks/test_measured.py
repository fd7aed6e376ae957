"""Rows of results: when a goal is met, what is written; how long and how large a process is."""

import argparse
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from measured import Row, finish, lowest, turns
from processes import CommandError, Run, run

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.parametrize(
    ("fields", "ratio", "met"),
    [
        ({"peer_seconds": 6.0, "goal": 3}, 3.0, True),
        ({"peer_seconds": 5.9, "goal": 3}, 2.95, False),
        ({"peer_seconds": 6.0}, 3.0, None),
        ({"goal": 3}, None, None),
        ({"measured": 2.0, "unit": "GB", "goal": 2, "at_most": True}, 2.0, True),
        ({"measured": 2.1, "unit": "GB", "goal": 2, "at_most": True}, 2.1, False),
        ({"measured": 0.0, "goal": 0, "at_most": True}, 0.0, True),
        ({"met": False}, None, False),
    ],
)
def test_a_goal_is_met_or_missed(fields, ratio, met):
    written = Row(name="a", seconds=2.0, **fields).fields()
    assert (written["ratio"], written["met"]) == (pytest.approx(ratio), met)


def test_the_file_holds_every_row(tmp_path, capsys):
    out = tmp_path / "deep" / "out.json"
    row = Row(name="a", against="b", seconds=1.0, peer_seconds=4.0, goal=5, detail="by turns")
    finish(argparse.Namespace(out=out, quick=True), "a claim", {"cpu": "x"}, [row], more=[1])
    document = json.loads(out.read_text())
    assert document["rows"] == [row.fields()]
    assert (document["claim"], document["quick"], document["more"]) == ("a claim", True, [1])
    assert "a against b: 1.000 s  4.00x, goal at least 5x: MISSED" in capsys.readouterr().out


def test_ways_take_turns():
    called = []
    spent = turns({name: lambda name=name: called.append(name) for name in "ab"}, 3)
    assert called == ["a", "b"] * 3
    assert {name: len(times) for name, times in spent.items()} == {"a": 3, "b": 3}
    assert lowest([1.0, 2.0], [3.0, 4.0]) == 2.0


def test_a_process_is_measured():
    held = b"1" * 400_000_000  # the memory of whoever measures is not that of the process
    small = run([sys.executable, "-c", "pass"])
    assert small.peak_bytes < 100_000_000 < len(held)
    program = "import sys; x = b'1' * 300_000_000; sys.stderr.write('[   0.5 s] read: 1\\n')"
    large = run([sys.executable, "-c", program])
    assert 300_000_000 < large.peak_bytes < 350_000_000
    assert small.seconds > 0
    assert large.said == "[   0.5 s] read: 1\n"


def test_a_process_that_fails_says_why():
    with pytest.raises(CommandError, match="no such thing"):
        run([sys.executable, "-c", "raise SystemExit('no such thing')"])


def test_stages_are_the_time_between_lines():
    said = "noise\n[   1.0 s] read corpus: 5\n[   1.0 s] nothing: 1\n[  12.5 s] auditing: 1,000\n"
    assert Run(13.0, 0, said).stages == "read corpus 1.0 s, auditing 11.5 s"


def test_every_script_of_the_suite_takes_what_it_is_called_with():
    entries = tomllib.loads((BENCHMARKS / "suite.toml").read_text())["benchmark"]
    assert len({entry["name"] for entry in entries}) == len(entries)
    for entry in entries:
        done = subprocess.run(
            [sys.executable, BENCHMARKS / entry["script"], "--help"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "--quick" in done.stdout and "--out" in done.stdout, entry["name"]
