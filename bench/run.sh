#!/usr/bin/env bash
# Benchmarks against stock TensorFlow: its servers and ours on this machine, alternating in one run.
# The first argument may name another program of this folder; the rest go to it, or to compare.py.
set -eu
cd "$(dirname "$0")/.."
venv=${MUSTER_TF_VENV:-build/venv-tf}
[ -x "$venv/bin/python" ] || tests/compat/venv.sh "$venv"
program=compare.py
case ${1:-} in *.py) program=$1; shift ;; esac
exec "$venv/bin/python" "bench/$program" "$@"
