"""Scripts of `benchmarks/` find their neighbours because Python puts their folder first."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
