#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs TensorFlow programs against stock servers and against ours, and compares the results.
#
#   run.sh [CASE...]     all cases when none is named
#   run.sh --sample COMMIT  a third of the cases, selected by the commit's hash, and those that it changes
#   run.sh --newest [CASE...]  with the newest TensorFlow; when no case is named, those that it can still run
#   run.sh --client-1.15 [CASE...]  with clients of TensorFlow 1.15, if there is a Python 3.7 (PYTHON37, python3.7 or
#                        pyenv's); the stock servers stay those of 2.15, whose results and errors are the reference
#   run.sh --diff ARGUMENTS  tests/compat/diff.py with these arguments; --graph-diff: graph_diff.py
#   MUSTER_TF_VENV       an environment that has TensorFlow 2.15 (default: build/venv-tf, made when missing)
#   MUSTER_TF_NEWEST     one that has the newest (default: build/venv-tf-newest, made when missing)
#   MUSTER_TF_CLIENT     one that has 1.15 (default: build/venv-tf-1.15, made when missing)
#   MUSTER_TASK          build/bin/muster-task; "stock" compares stock with itself, to test the tests
#   COMPAT_PORT          the first of a thousand ports (23000); concurrent runs need different ranges
set -euo pipefail
cd "$(dirname "$0")/../.."
python_3_7() { # prints a working Python 3.7, or nothing
  local p
  for p in "${PYTHON37:-}" python3.7 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.7.*/bin/python3.7; do
    "$p" -c 1 2>/dev/null && echo "$p" && return
  done
  return 0
}
if [ "${1:-}" = --newest ]; then
  shift
  # the newest TensorFlow lacks estimators, tf.layers and Keras 2, and everything built on them
  [ $# != 0 ] || set -- hello placement deterministic lockstep sessions servers python_functions example_three_adds
  venv=${MUSTER_TF_NEWEST:-build/venv-tf-newest}
  [ -n "${MUSTER_TF_NEWEST:-}" ] || tests/compat/venv.sh "$venv" newest
  echo "compat: $("$venv/bin/python" -c 'from importlib.metadata import version; print("TensorFlow", version("tensorflow_cpu"))')," \
    "without estimators, tf.layers and Keras in graph mode, which it has no more"
else
  if [ "${1:-}" = --client-1.15 ]; then
    shift
    [ $# != 0 ] || set -- hello functions datasets readers placement tied_loops lockstep old_models old_style old_input contrib old_answers boosted_trees
    export MUSTER_TF_CLIENT=${MUSTER_TF_CLIENT:-build/venv-tf-1.15}
    python37=$(python_3_7)
    [ -x "$MUSTER_TF_CLIENT/bin/python" ] || [ -n "$python37" ] || {
      echo "compat: SKIPPED: clients of TensorFlow 1.15, which need Python 3.7"
      exit 0
    }
    [ -x "$MUSTER_TF_CLIENT/bin/python" ] || PYTHON=$python37 tests/compat/venv.sh "$MUSTER_TF_CLIENT" 1.15
  fi
  venv=${MUSTER_TF_VENV:-build/venv-tf}
  [ -n "${MUSTER_TF_VENV:-}" ] || tests/compat/venv.sh "$venv"
fi
export TF_CPP_MIN_LOG_LEVEL=3 TF_ENABLE_ONEDNN_OPTS=0 PYTHONDONTWRITEBYTECODE=1
# a proxy from the environment would get loopback calls
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY grpc_proxy
if [ "${1:-}" = --diff ]; then
  shift
  exec "$venv/bin/python" tests/compat/diff.py build/release/tests/kernels/op_driver "$@"
fi
if [ "${1:-}" = --graph-diff ]; then
  shift
  exec "$venv/bin/python" tests/compat/graph_diff.py "$@"
fi
exec timeout -k 10 "${COMPAT_TIMEOUT:-1800}" "$venv/bin/python" tests/compat/compat.py "$@"
