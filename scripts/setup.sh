#!/usr/bin/env bash
# Makes the virtual environment VENV with the pinned dependencies and this checkout, editable.
#
#   scripts/setup.sh VENV [PYTHON]
#
# Needs a Python of at least 3.11 with venv and pip. Does nothing when neither the Python nor
# pyproject.toml nor constraints.txt has changed since the last time.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
python=${2:-}

for link in audit kernels train; do
  if [ ! -d "herald_jax/$link" ]; then
    echo "setup: herald_jax/$link is not a link to ../$link: this checkout lost its symbolic links;" >&2
    echo "       run: git config core.symlinks true && git checkout -- herald_jax" >&2
    exit 2
  fi
done

new_enough() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

if [ -n "$python" ]; then
  if ! found=$("$python" -c 'import platform; print(platform.python_version())' 2>&1); then
    echo "setup: $python does not run as a Python: $(tail -n 1 <<<"$found")" >&2
    echo "       name another: make PYTHON=/path/to/python3.12" >&2
    exit 2
  fi
  if ! new_enough "$python"; then
    echo "setup: $python is Python $found, at least 3.11 is needed; name another:" >&2
    echo "       make PYTHON=/path/to/python3.12" >&2
    exit 2
  fi
else
  for candidate in "$venv/bin/python" python3 python3.13 python3.12 python3.11 python; do
    if new_enough "$candidate"; then
      python=$candidate
      break
    fi
  done
  if [ -z "$python" ]; then
    echo "setup: no Python of at least 3.11 on the PATH; install one, or name it:" >&2
    echo "       make PYTHON=/path/to/python3.12" >&2
    exit 2
  fi
fi

fingerprint=$("$python" - pyproject.toml constraints.txt scripts/setup.sh <<'PY'
import hashlib, os, pathlib, sys
text = b"\0".join(pathlib.Path(name).read_bytes() for name in sys.argv[1:])
print(*sys.version_info[:3], os.getcwd(), hashlib.sha256(text).hexdigest())
PY
)
stamp=$venv/herald-setup.txt
if new_enough "$venv/bin/python" && [ "$(cat "$stamp" 2>/dev/null)" = "$fingerprint" ]; then
  exit 0
fi

rm -f "$stamp"
version() { "$1" -c 'import sys; print(sys.version)' 2>/dev/null || true; }
if [ "$(version "$venv/bin/python")" != "$(version "$python")" ]; then
  echo "setup: making $venv with $("$python" --version)"
  if ! "$python" -m venv --clear "$venv"; then
    echo "setup: $python cannot make a virtual environment; install its venv module" >&2
    echo "       (on Debian and Ubuntu: apt-get install python3-venv)" >&2
    exit 2
  fi
fi
echo "setup: installing the pinned dependencies into $venv"
install=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt)
"${install[@]}" setuptools
"${install[@]}" --no-build-isolation --editable ".[dev]"
printf '%s\n' "$fingerprint" >"$stamp"
