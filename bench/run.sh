#!/usr/bin/env bash
# Benchmarks beside their peer: stock TensorFlow servers and ours on this machine, alternating in one run.
# More arguments go to compare.py.
set -eu
cd "$(dirname "$0")/.."
venv=${MUSTER_TF_VENV:-build/venv-tf}
[ -x "$venv/bin/python" ] || tests/compat/venv.sh "$venv"
exec "$venv/bin/python" bench/compare.py "$@"
