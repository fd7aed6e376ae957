"""Run one `herald audit` or `herald train` as several processes of this machine.

    scripts/launch.py 4 audit logs/ --out nightly
    scripts/launch.py 2 train config.toml --set mesh.data=2

Each process gets `--distributed 127.0.0.1:PORT/INDEX/COUNT`; what they say comes out here, that of
all but the first with their number before it. When one fails the others are stopped, and its exit
code is that of the launcher. On a cluster use `--distributed auto` and the cluster's own launcher.
"""

import argparse
import signal
import socket
import subprocess
import sys
import threading


def main() -> int:
    """Start all, pass on what they say, wait for all."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="example: scripts/launch.py 4 audit logs/ --out nightly",
    )
    parser.add_argument("processes", type=int, help="how many processes")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="audit or train ...")
    options = parser.parse_args()
    if options.processes < 1 or options.command[:1] not in (["audit"], ["train"]):
        parser.error("give a number of processes and an audit or a training: 4 audit logs/")
    address = f"127.0.0.1:{free_port()}"
    running = [
        start(options.command, f"{address}/{index}/{options.processes}", index)
        for index in range(options.processes)
    ]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: stop(running, received))
    return wait(running)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(command: list[str], where: str, index: int) -> subprocess.Popen[str]:
    """One process, its output passed on."""
    process = subprocess.Popen(
        [sys.executable, "-m", "herald_jax.cli", *command, "--distributed", where],
        stdout=None if index == 0 else subprocess.PIPE,
        stderr=None if index == 0 else subprocess.STDOUT,
        text=True,
    )
    if index:
        threading.Thread(target=pass_on, args=(process, index), daemon=True).start()
    return process


def pass_on(process: subprocess.Popen[str], index: int) -> None:
    """Print what a process says, with its number."""
    for line in process.stdout or ():
        print(f"[{index}] {line}", end="", file=sys.stderr)


def wait(running: list[subprocess.Popen[str]]) -> int:
    """The exit code of all: that of the first to fail, whereupon the others are stopped."""
    left = list(running)
    while left:
        for process in list(left):
            try:
                code = process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            left.remove(process)
            if code:
                stop(left, signal.SIGTERM)
                return failed(running.index(process), code)
    return 0


def failed(index: int, code: int) -> int:
    """Say of a process that was killed what a shell would say; the exit code of all."""
    if code > 0:
        return code
    name = signal.Signals(-code).name
    print(
        f"launch: process {index} was ended by {name} and the others were stopped; "
        "the same command goes on with what is in its work folder",
        file=sys.stderr,
    )
    return 128 - code


def stop(running: list[subprocess.Popen[str]], received: int) -> None:
    """Pass a signal on."""
    for process in running:
        process.send_signal(received)


if __name__ == "__main__":
    sys.exit(main())
