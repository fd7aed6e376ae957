#!/usr/bin/env bash
# Prints constraints.txt for the newest versions that pyproject.toml allows.
#
#   scripts/pin.sh PYTHON_3_11 PYTHON_NEWER >constraints.txt
#
# Versions on which the two Pythons differ get a marker. Needs a network.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for place in old new; do
  python=$1
  shift
  "$python" -m venv "$work/$place"
  "$work/$place/bin/python" -m pip install --quiet ".[bench,dev]" "setuptools>=77" >&2
  "$work/$place/bin/python" -m pip freeze --all --exclude pip --exclude herald-jax \
    >"$work/$place.txt"
done

echo "# Exact versions that \`make audit\` and \`make test\` install. Python 3.11 gets the last JAX that"
echo "# supports it, later Pythons the newest. Made by scripts/pin.sh."
python3 - "$work/old.txt" "$work/new.txt" <<'PY'
import sys

old, new = ({line.strip() for line in open(path)} for path in sys.argv[1:])
marked = {f'{pin} ; python_version < "3.12"' for pin in old - new}
marked |= {f'{pin} ; python_version >= "3.12"' for pin in new - old}
print(*sorted(marked | old & new, key=str.lower), sep="\n")
PY
