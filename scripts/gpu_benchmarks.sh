#!/usr/bin/env bash
# Runs the benchmarks of kernels, devices, bootstrap, training and BM25 on a GPU or TPU.
#
#   scripts/gpu_benchmarks.sh                    # into benchmarks/results/accelerator
#   scripts/gpu_benchmarks.sh --quick
#   PYTHON=python3 RESULTS=/tmp/out scripts/gpu_benchmarks.sh
#
# The checkout need not be installed. Kernels, devices and bootstrap need JAX with its plugin for the
# device, NumPy, SciPy and chex alone; training needs Flax and Optax besides, BM25 what pyproject.toml
# lists and rank_bm25.
# One that fails stops no other. Two cores of the host are what the kernels are compared with.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
results=${RESULTS:-benchmarks/results/accelerator}
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}

if ! found=$("$python" -c 'import jax; print(jax.default_backend(), jax.devices()[0].device_kind)'); then
  echo "gpu_benchmarks: $python has no JAX; name another: PYTHON=python3 $0" >&2
  exit 2
fi
if [ "${found%% *}" = cpu ]; then
  echo "gpu_benchmarks: JAX finds no accelerator; install its plugin, for example jax[cuda12]" >&2
  exit 2
fi
echo "gpu_benchmarks: on ${found#* }"

failed=()
for name in kernels devices bootstrap train_devices bm25; do
  echo "== $name"
  "$python" "benchmarks/$name.py" "$@" --out "$results/$name.json" || failed+=("$name")
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "gpu_benchmarks: failed: ${failed[*]}" >&2
  exit 1
fi
