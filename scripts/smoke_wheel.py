"""Builds the wheel and runs it in a fresh virtual environment, away from the checkout.

The wheel is built from the source distribution, so that both are known to be complete; then
`herald sample` and `herald audit` run with nothing of the checkout in reach, and the report that
they write is looked at.
"""

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORT_FILES = ("report.json", "report.html", "report.md")


def run(*command: str | Path, folder: Path) -> str:
    """Run a command in `folder` and return its stdout; its stderr is shown when it fails."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        raise SystemExit(f"smoke_wheel: exit code {done.returncode}: {' '.join(map(str, command))}")
    return done.stdout


def build_wheel(target: Path) -> Path:
    """Source distribution, and from it the wheel."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", target, ROOT, folder=target)
    [wheel] = target.glob("*.whl")
    return wheel


def install(wheel: Path, place: Path) -> Path:
    """A fresh environment with the wheel and its pinned dependencies; the folder of commands."""
    venv.create(place, with_pip=True)
    commands = place / ("Scripts" if os.name == "nt" else "bin")
    pip = (commands / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "-c", ROOT / "constraints.txt", wheel, folder=place)
    return commands


def check_report(folder: Path, version: str) -> str:
    """What the report says, in a line.

    Raises:
        SystemExit: a file is missing, or the report holds no audited question.
    """
    for name in REPORT_FILES:
        if not (folder / name).stat().st_size:
            raise SystemExit(f"smoke_wheel: {name} is empty")
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    questions = report["common"]["questions"]
    if report["schema"] != 1 or report["herald_jax"] != version or questions < 1:
        raise SystemExit(f"smoke_wheel: {folder / 'report.json'} is not an audit of {version}")
    return f"{report['rows']} rows, {questions} questions in the common set"


def main() -> None:
    """Build, install, sample, audit, draw again."""
    with tempfile.TemporaryDirectory(prefix="herald-wheel-") as name:
        work = Path(name)
        wheel = build_wheel(work)
        commands = install(wheel, work / "venv")
        herald = commands / "herald"
        version = run(herald, "--version", folder=work).split()[-1]
        run(herald, "sample", "sample", "--questions", "60", folder=work)
        run(herald, "audit", "sample", "--out", "out", folder=work)
        found = check_report(work / "out", version)
        run(herald, "report", "out/report.json", "--out", "again", folder=work)
        if (work / "again" / "report.html").read_bytes() != (
            work / "out" / "report.html"
        ).read_bytes():
            raise SystemExit("smoke_wheel: `herald report` draws another page than `herald audit`")
        print(f"smoke_wheel: {wheel.name} works outside the checkout ({found})")


if __name__ == "__main__":
    main()
