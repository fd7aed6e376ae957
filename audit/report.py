"""The result of an audit: `report.json` as SPEC section 12 has it."""

import json
from dataclasses import dataclass
from typing import Any

SCHEMA = 1


@dataclass(frozen=True)
class Report:
    """What an audit found; `data` is the content of `report.json`."""

    data: dict[str, Any]

    def to_json(self) -> bytes:
        """The report as bytes, the same for the same figures.

        Raises:
            ValueError: a figure is not a number; there is no JSON for that, and none is made up.
        """
        text = json.dumps(self.data, ensure_ascii=False, allow_nan=False, indent=1)
        return (text + "\n").encode()
