#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs into a folder of its own and builds programs from there, as somebody without the tree would:
# each public header alone in a file, and an example that trains on a server within itself.
set -euo pipefail
cd "$(dirname "$0")/../.."
there=$(mktemp -d)
trap 'rc=$?; rm -rf "$there"; [ $rc = 0 ] && echo "1 passed, 0 failed" || echo "0 passed, 1 failed"; exit $rc' EXIT
cc=${CC:-gcc}

${MAKE:-make} -s install PREFIX="$there/usr" >"$there/log" 2>&1 || { cat "$there/log"; exit 1; }
cp tests/install/line.c "$there/"
cd "$there"
export PKG_CONFIG_PATH=$there/usr/lib/pkgconfig
flags="-std=gnu17 -Wall -Wextra -Werror -Wno-unused-parameter $(pkg-config --cflags muster)"
for h in usr/include/muster/*.h; do
  echo "#include \"muster/$(basename "$h")\"" >one.c
  $cc $flags -c -o one.o one.c || { echo "install: muster/$(basename "$h") does not stand alone"; exit 1; }
done
$cc $flags -o line line.c $(pkg-config --libs muster)
said=$(timeout 30 ./line)
[ "$said" = 'y = 2.0 x + 1.0' ] || { echo "install: the program says '$said'"; exit 1; }
timeout 10 usr/bin/muster help >/dev/null
for page in muster muster-run muster-checkpoint; do
  grep -q '^\.SH EXIT STATUS' "usr/share/man/man1/$page.1" || { echo "install: no manual page $page"; exit 1; }
done
# The task loads the GPU plug-in from lib; then the plug-in reports what the driver says (or the task serves, on a GPU).
said=$(env -u MUSTER_CUDA_PLUGIN timeout 30 usr/bin/muster-task --kernels=gpu --while-stdin \
  --cluster='{"worker": ["localhost:2222"]}' --job=worker --index=0 --bind=127.0.0.1:0 2>&1 </dev/null) || true
grep -qE 'no CUDA here: |kernels cuda-sm' <<<"$said" || { echo "install: the task does not load the GPU plug-in: '$said'"; exit 1; }
bash -n usr/share/bash-completion/completions/muster
grep -q '^#compdef muster' usr/share/zsh/site-functions/_muster
grep -q '^complete -c muster' usr/share/fish/vendor_completions.d/muster.fish
echo "install: headers, library and muster.pc serve a program outside the tree"
