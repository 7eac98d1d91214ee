#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Real TensorFlow programs against stock servers and against ours; the answers have to agree.
#
#   run.sh [CASE...]     all cases when none is named
#   MUSTER_TF_VENV       an environment that has TensorFlow 2.15 (default: build/venv-tf, made when missing)
#   MUSTER_TASK          build/bin/muster-task; "stock" compares stock with itself, which tests the tests
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=${MUSTER_TF_VENV:-build/venv-tf}
[ -n "${MUSTER_TF_VENV:-}" ] || tests/compat/venv.sh "$venv"
export TF_CPP_MIN_LOG_LEVEL=3 TF_ENABLE_ONEDNN_OPTS=0 PYTHONDONTWRITEBYTECODE=1
# a proxy in the environment would send loopback calls away
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY grpc_proxy
exec timeout -k 10 "${COMPAT_TIMEOUT:-1800}" "$venv/bin/python" tests/compat/compat.py "$@"
