#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests of GPU kernels need a C compiler and nothing else: each header that their sources include is the C
# library's or this tree's, and each library that the programs want is the C library's.  So does what measures a GPU,
# which shows on the stand-in that it comes to its end with a figure for everything.
set -euo pipefail
cd "$(dirname "$0")/../.."
trap 'rc=$?; [ $rc = 0 ] && echo "1 passed, 0 failed" || echo "0 passed, 1 failed"; exit $rc' EXIT

# ISO C's, POSIX's, the kernel's and the compiler's
headers=' arm_acle arpa/inet complex ctype dirent dlfcn endian errno fcntl float glob iconv inttypes libgen limits linux/futex
  locale math netdb netinet/in nmmintrin immintrin poll pthread regex sched setjmp signal stdarg stdatomic stdbool stddef
  stdint stdio stdlib string strings sys/auxv sys/epoll sys/eventfd sys/mman sys/random sys/resource sys/socket
  sys/stat sys/syscall sys/time sys/types sys/uio sys/un sys/wait tgmath time ucontext unistd wchar wctype '
headers=" ${headers//$'\n'/ } "
outside() { # FILE...: what they include that is somebody else's; cmocka here is tests/bare's
  grep -hoE '^[[:space:]]*#[[:space:]]*include[[:space:]]*<[^>]*>' "$@" | sed -E 's/.*<(.*)\.h>.*/\1/' | sort -u |
    while read -r h; do case $headers in *" $h "*) ;; *) [ "$h" = cmocka ] || echo "<$h.h>" ;; esac done
}

mode=${MODE:-release}
sources=$(${MAKE:-make} -s --no-print-directory MODE="$mode" gpu-test-sources)
files=$(for s in $sources; do
  d=build/$mode/o/${s%.c}.d
  [ -f "$d" ] || { echo "bare: $d is missing: build the tests first" >&2; exit 1; }
  tr -s ' \\' '\n\n' <"$d" | grep -E '\.(c|h|def|cu)$'
done | sort -u)
[ "$(wc -l <<<"$files")" -gt 200 ] || { echo "bare: only $(wc -l <<<"$files") files are looked at"; exit 1; }
grep -q '^task/kernels/engine/cuda/kernels.cu$' <<<"$files" || { echo "bare: the kernels are not among the files"; exit 1; }

# the check finds a library header where there is one
[ "$(outside lib/io/decompress.c)" = '<zlib.h>' ] || { echo "bare: <zlib.h> is not found in lib/io/decompress.c"; exit 1; }
found=$(outside $files)
[ -z "$found" ] || { echo "bare: tests of GPU kernels include $found"; grep -lF "$found" $files; exit 1; }

if [ "$mode" = release ]; then
  for t in build/release/tests/kernels/gpu_*_test build/release/bench/gpu; do
    wants=$(readelf -d "$t" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libdl|libpthread|libgcc_s|ld-linux.*)\.so' || true)
    [ -z "$wants" ] || { echo "bare: $t wants $wants"; exit 1; }
  done
  figures=$(timeout 100 build/release/bench/gpu "$PWD/build/release/libmuster-fake-cuda.so" 0.01 16 1)
  [ "$(grep -cE ' [0-9]+\.[0-9] (TFLOP/s|GB/s)' <<<"$figures")" = 8 ] || { echo "bare: bench/gpu says"; echo "$figures"; exit 1; }
fi
echo "bare: $(wc -l <<<"$files") files and $(ls build/release/tests/kernels/gpu_*_test | wc -l) programs need a C compiler alone"
