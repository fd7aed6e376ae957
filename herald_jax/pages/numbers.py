"""How numbers are written, the same everywhere: in pages, in Markdown and in the terminal.

Rounding never crosses a line that matters: `0%` is exactly zero, `100.0%` exactly all, an
upper bound is rounded up, and what is not known is not a number.
"""

import math

MINUS = "\u2212"
RANGE = "\u2013"
UNKNOWN = "not measured"


def count(value: int | None) -> str:
    """A whole number with thousands separators, `12,345`."""
    return UNKNOWN if value is None else f"{value:,}".replace("-", MINUS)


def out_of(part: int, whole: int) -> str:
    """A share with its denominator, `79 of 100`."""
    return f"{count(part)} of {count(whole)}"


def percent(share: float | None, digits: int = 1) -> str:
    """A share as percent, `40.3%`; `<0.1%` and `>99.9%` where rounding would reach 0 or 100."""
    if share is None or math.isnan(share):
        return UNKNOWN
    if share == 0.0:
        return "0%"
    step = 10.0**-digits
    hundredths = 100.0 * share
    if hundredths > 0.0 and round(hundredths, digits) <= 0.0:
        return f"<{step:.{digits}f}%"
    if hundredths < 100.0 and round(hundredths, digits) >= 100.0:
        return f">{100.0 - step:.{digits}f}%"
    return f"{hundredths:.{digits}f}%".replace("-", MINUS)


def upper_bound(share: float | None, digits: int = 1) -> str:
    """An upper bound as percent, rounded up: what is printed still bounds."""
    if share is None or math.isnan(share):
        return UNKNOWN
    scale = 10.0**digits
    # The subtraction keeps a bound that is exactly on a printed digit from climbing to the next.
    return percent(math.ceil(100.0 * share * scale - 1e-9) / (100.0 * scale), digits)


def signed(value: float | None, digits: int = 3) -> str:
    """A margin with its sign, `+0.414`; a value too small for the digits keeps its exponent."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if value == 0.0:
        return "0"
    text = f"{value:+.{digits}f}" if round(value, digits) else f"{value:+.0e}"
    return text.replace("-", MINUS)


def plain(value: float | None, digits: int = 3) -> str:
    """A number without a plus sign, trailing zeros dropped, `1.6`, `\u22120.55`."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if value and not round(value, digits):
        return f"{value:.0e}".replace("-", MINUS)
    text = f"{value:.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "0") else text.replace("-", MINUS)


def weight(value: float | None) -> str:
    """A weight or a λ, with at least one decimal, `1.0`, `−0.004`."""
    text = plain(value, 4)
    return f"{text}.0" if text.lstrip(MINUS).isdigit() else text


def percent_range(interval: tuple[float, float], digits: int = 1) -> str:
    """An interval of shares, `36.1\u201344.7%`."""
    low, high = (percent(end, digits) for end in interval)
    return f"{low.removesuffix('%')}{RANGE}{high}"


def signed_range(interval: tuple[float, float], digits: int = 3) -> str:
    """An interval of margins, `\u22120.523 to \u22120.448`."""
    low, high = (signed(end, digits) for end in interval)
    return f"{low} to {high}"


def quantity(number: int, singular: str, plural: str | None = None) -> str:
    """A count with its noun, `1 question`, `2 questions`."""
    return f"{count(number)} {singular if number == 1 else plural or singular + 's'}"


def figure(value: float | None, unit: str, *, up: bool = False) -> str:
    """A measured figure with its unit, `12.3x`, `9.5%`, `1,234 rows/s`.

    Rounded down, or `up` where less is better, so that a goal that was missed never looks met.
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    digits = 0 if abs(value) >= 100 or value == 0 else 1 if abs(value) >= 10 else 2
    scaled = value * 10**digits
    # A value that is on a printed digit but for float rounding stays there.
    whole = math.ceil(scaled - 1e-9) if up else math.floor(scaled + 1e-9)
    text = f"{whole / 10**digits:,.{digits}f}".replace("-", MINUS)
    return f"{text}{unit}" if unit in ("x", "%") else f"{text} {unit}"


def duration(seconds: float | None) -> str:
    """A time, `0.41 ms`, `3.20 s`, `2 min 05 s`."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    if seconds >= 119.5:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes:,} min {rest:02d} s"
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{1000 * seconds:.3g} ms"


def gigabytes(size: float | None) -> str:
    """An amount of memory, `1.04 GB`."""
    return UNKNOWN if size is None else f"{size / 1e9:.3g} GB"
