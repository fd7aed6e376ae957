"""The bytes of a report."""

import json
import math

import pytest

from herald_jax.audit import Report


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        Report({"operators": [{"asr": value}]}).to_json()


def test_the_same_figures_give_the_same_bytes():
    def figures():
        return {"schema": 1, "asr": 0.1 + 0.2, "models": {"Zoë": None}, "steps": [True, 3]}

    first = Report(figures()).to_json()
    assert first == Report(figures()).to_json()
    assert json.loads(first) == figures()
    # Every bit of a float comes back; names are as they are written; keys keep their order.
    assert b"0.30000000000000004" in first
    assert '"Zoë"'.encode() in first
    assert list(json.loads(first)) == ["schema", "asr", "models", "steps"]
    assert first.endswith(b"}\n")


def test_other_figures_give_other_bytes():
    assert Report({"asr": 0.5}).to_json() != Report({"asr": math.nextafter(0.5, 1)}).to_json()
