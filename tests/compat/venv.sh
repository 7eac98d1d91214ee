#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# venv.sh DIR [newest|1.15]: a Python environment with the stock TensorFlow that we compare ourselves with: 2.15, the
# newest that PyPI has for this Python, or 1.15, which needs Python 3.7.  Only tests and benchmarks use it; no part of
# Muster needs it.  Does nothing if DIR already has that version.
set -euo pipefail
dir=${1:?"say: venv.sh DIR [newest|1.15]"}
want='tensorflow-cpu==2.15.1 tensorboard' first=9 last=11
case ${2:-} in
  newest) want=tensorflow-cpu last=99 ;;
  1.15) want='tensorflow-cpu==1.15.0 protobuf<3.21 numpy<1.19' first=7 last=7 ;;
esac
[ -x "$dir/bin/python" ] && [ "$(cat "$dir/.complete" 2>/dev/null)" = "$want" ] && exit 0
"${PYTHON:-python3}" -c "import sys; sys.exit(not (3, $first) <= sys.version_info[:2] <= (3, $last))" || {
  echo "compat: $want needs Python 3.$first to 3.$last; say PYTHON=/path/to/python3.$last" >&2
  exit 1
}
echo "compat: installing $want into $dir (once)"
rm -rf "$dir"
mkdir -p "$(dirname "$dir")"
if ! "${PYTHON:-python3}" -m venv "$dir" >"$dir.log" 2>&1; then
  # Debian has venv in a separate package; only root installs it
  [ "$(id -u)" = 0 ] && apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends python3-venv >/dev/null
  rm -rf "$dir"
  "${PYTHON:-python3}" -m venv "$dir" >"$dir.log" 2>&1
fi
# shellcheck disable=SC2086 # splits into words
timeout 600 "$dir/bin/pip" install -q --disable-pip-version-check $want >>"$dir.log" 2>&1 || {
  tail -5 "$dir.log" >&2
  echo "compat: pip could not install TensorFlow; see $dir.log" >&2
  exit 1
}
echo "$want" >"$dir/.complete"
