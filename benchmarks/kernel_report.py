"""What the kernel benchmark found, as rows with their goals."""

from machine import usable_cores
from measured import Row, lowest, medians
from mismatch import Mismatch

GOALS = {"reference": 350, "numpy staged": 6, "numpy idiomatic": 15, "described": 2}
BANDWIDTH_GOAL = 10.0
NAMES = {
    "reference": "the plain reference",
    "numpy staged": "NumPy, the same algorithm",
    "numpy idiomatic": "idiomatic NumPy",
}


def report(
    n: int,
    spent: dict[str, list[float]],
    equal: dict[str, Mismatch],
    chunks: dict[str, int],
    bandwidth: float,
    nbytes: int,
    programs: dict[str, float],
) -> list[Row]:
    """The rows of the result.

    Args:
        n: trajectories.
        spent: seconds of the rounds of every way, for all of them.
        equal: what was compared with each.
        chunks: rows at once of the ways that have chunks.
        bandwidth: bytes a second at which memory is read at best.
        nbytes: of all blocks.
        programs: seconds of every program.
    """
    took, rounds = medians(spent), spent["herald"]
    name = f"audit kernels, {n:,} trajectories"
    rows = [
        Row(
            name=name,
            against=words,
            seconds=took["herald"],
            peer_seconds=took[peer],
            goal=GOALS[peer],
            detail=f"{n / took['herald']:,.0f} rows/s against {n / took[peer]:,.0f}; lowest of "
            f"{len(rounds)} rounds {lowest(rounds, spent[peer]):,.1f}x; {equal[peer]}"
            + (f"; chunks of {chunks[peer]:,}" if peer in chunks else ""),
        )
        for peer, words in NAMES.items()
    ]
    everywhere = took["numpy staged, all cores"]
    rows.append(
        Row(
            name=name,
            against=f"NumPy, the same algorithm, {usable_cores()} threads",
            seconds=took["herald"],
            peer_seconds=everywhere,
            detail=f"{n / everywhere:,.0f} rows/s",
        )
    )
    memory = "host" if "on the device" not in took else "device"
    pass_ = took.get("on the device", took["herald"])
    rows.append(
        Row(
            name=f"share of the {memory} memory's read bandwidth",
            seconds=pass_,
            measured=100 * nbytes / pass_ / bandwidth,
            unit="%",
            goal=BANDWIDTH_GOAL,
            detail=f"{nbytes / n:.0f} bytes a row (retrieved, cited, offered and support ids as "
            f"int32, a few numbers), {nbytes / pass_ / 1e9:.2f} of {bandwidth / 1e9:.1f} GB/s; "
            f"the time goes to {shares(programs)}",
        )
    )
    rows.append(
        Row(
            name="audit of described ids",
            against="the first audit",
            seconds=took["described"],
            peer_seconds=took["herald"],
            goal=GOALS["described"],
            detail=f"{n / took['described']:,.0f} rows/s from what is known of every id "
            "(a passage, retrieved, support); the same sums to the byte",
        )
    )
    if "on the device" in took:
        rows.append(
            Row(
                name=f"{name}, blocks on the device",
                against="blocks in host memory",
                seconds=took["on the device"],
                peer_seconds=took["herald"],
                detail=f"{n / took['on the device']:,.0f} rows/s",
            )
        )
    return rows


def shares(programs: dict[str, float]) -> str:
    """Where the time goes: `pick 18%, ...`, the longest first."""
    total = sum(programs.values())
    ordered = sorted(programs.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {spent / total:.0%}" for name, spent in ordered)
