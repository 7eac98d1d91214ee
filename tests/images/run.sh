#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Dockerfile with buildah on a Debian that is bootstrapped here, without a registry.  Checks of each image
# its labels, its size, its user, the absence of a shell, the start of its programs, and that another build of the
# same files gives the same bytes.
#
#   run.sh [NAME...]   operator, task and cli when none is named; task-tf and task-cuda need much time and space
#   CUDA_ROOT          for task-cuda: a folder with bin/nvcc and lib64, as /usr/local/cuda has them
#   IMAGES_BASE        an image with Debian 12 to build on, instead of bootstrapping one
#   IMAGES_ONCE=1      do not build again to compare
set -uo pipefail
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] || { echo 'images: bootstrapping a Debian needs root' >&2; exit 1; }
passed=0 failed=0
ok() { passed=$((passed + 1)); printf '  ok       %s\n' "$*"; }
bad() { failed=$((failed + 1)); printf '  FAILED   %s\n' "$*"; }
says() { if grep -qE -- "$3" <<<"$2"; then ok "$1"; else bad "$1: '$3' is not in: $(cut -c1-300 <<<"$2")"; fi; }

missing=()
for p in buildah debootstrap; do command -v $p >/dev/null || missing+=($p); done
if [ ${#missing[@]} != 0 ]; then
  echo "images: installing ${missing[*]}"
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } \
    >build/images-apt.log 2>&1 || { tail -3 build/images-apt.log; exit 1; }
fi

export BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot} IMAGE_ENGINE=buildah IMAGE_TAG=${IMAGE_TAG:-test}
out=build/images
mkdir -p "$out"
image_of() { # FOLDER NAME [SETTING...]: an image of one layer
  local c folder=$1 name=$2
  shift 2
  c=$(buildah from scratch) && buildah copy -q "$c" "$folder" / >/dev/null && { [ $# = 0 ] || buildah config "$@" "$c"; } &&
    buildah commit -q "$c" "$name" >/dev/null && buildah rm "$c" >/dev/null
}
base=${IMAGES_BASE:-localhost/debian:bookworm}
if [ -z "${IMAGES_BASE:-}" ] && ! buildah inspect --type image "$base" >/dev/null 2>&1; then
  debian=$(mktemp -d)
  trap 'rm -rf "$debian"' EXIT
  t=$SECONDS
  debootstrap --variant=minbase bookworm "$debian" >build/debootstrap.log 2>&1 || { tail -3 build/debootstrap.log; exit 1; }
  rm -rf "$debian"/var/cache/apt/archives/*.deb "$debian"/var/lib/apt/lists/*
  trust=() # the build trusts the additional certificate authorities of this machine
  if compgen -G '/usr/local/share/ca-certificates/*.crt' >/dev/null; then
    cp -r /usr/local/share/ca-certificates/. "$debian/usr/local/share/ca-certificates/" 2>/dev/null ||
      { mkdir -p "$debian/usr/local/share" && cp -r /usr/local/share/ca-certificates "$debian/usr/local/share/"; }
    trust=(--env PIP_CERT=/etc/ssl/certs/ca-certificates.crt)
  fi
  image_of "$debian" "$base" "${trust[@]}" || { bad 'the base was not made'; exit 1; }
  ok "a Debian bootstrapped as the base: $((SECONDS - t)) s"
fi
args="--build-arg BASE=$base"
[ $# -gt 0 ] || set -- operator task cli
if [[ " $* " == *' task-cuda '* ]]; then
  [ -x "${CUDA_ROOT:-/usr/local/cuda}/bin/nvcc" ] || { echo 'images: task-cuda needs CUDA_ROOT, a folder with bin/nvcc and lib64' >&2; exit 1; }
  cuda=$(mktemp -d)
  mkdir -p "$cuda/usr/local" && cp -a "${CUDA_ROOT:-/usr/local/cuda}/." "$cuda/usr/local/cuda"
  image_of "$cuda" localhost/cuda:local || exit 1
  rm -rf "$cuda"
  args+=" --build-arg CUDA_BASE=localhost/cuda:local"
fi

# The layers of the images, whose names are hashes of their content.  The history that buildah writes with them
# names intermediate images, which differ each time.
layers() {
  local n
  for n in "${names[@]}"; do
    tar -xOf "$out/muster-$n.tar" manifest.json | python3 -c 'import json, sys; print(sys.argv[1], *json.load(sys.stdin)[0]["Layers"])' "$n"
  done
}
build() { IMAGE_ARGS="$args $*" tools/images "${names[@]}" >build/images.log 2>&1; }
names=("$@")
t=$SECONDS
build || { tail -5 build/images.log; bad 'the images are built'; echo "$passed passed, $failed failed"; exit 1; }
ok "${names[*]} built by $(buildah --version | cut -d' ' -f1-3): $((SECONDS - t)) s"
[ -n "${IMAGES_ONCE:-}" ] || before=$(layers)

look_at_cuda() { # ROOT
  local blas list
  says 'its plug-in has kernels in it: megabytes, compressed' "$(stat -c %s "$1/usr/local/lib/libmuster-cuda.so")" '^[0-9]{7,}$'
  says 'its SBOM names cuBLAS and its version' "$(cat "$1/usr/share/doc/muster/sbom.spdx")" 'purl pkg:generic/nvidia/cublas@[0-9]+\.[0-9.]+$'
  blas=$(cd "$1" && compgen -G 'usr/lib/*/libcublas.so.*')
  list=$(chroot --userspec=65532:65532 "$1" "$(cd "$1" && compgen -G '/lib64/ld-linux-*')" --list "/$blas" 2>&1)
  says 'cuBLAS is loaded in it' "$list" 'libc\.so\.6 => /'
  if grep 'not found' <<<"$list"; then bad 'and lacks nothing'; else ok 'and lacks nothing'; fi
}
most() { case $1 in operator) echo 40 ;; task | cli) echo 80 ;; *) echo 4000 ;; esac; } # MB
for n in "${names[@]}"; do
  image=localhost/muster-$n:$IMAGE_TAG
  size=$(stat -c %s "$out/muster-$n.tar")
  if [ "$size" -le $(($(most "$n") * 1000000)) ]; then ok "muster-$n has $((size / 1000)) kB"; else bad "muster-$n has $size bytes, more than $(most "$n") MB"; fi
  # in JSON, which buildah's own templates cannot write before 1.29
  config=$(buildah inspect --type image "$image" | python3 -c '
import json, sys
print(json.dumps(json.load(sys.stdin)["OCIv1"]["config"], separators=(",", ":")))')
  for l in title version revision; do says "muster-$n says its $l" "$config" "\"org.opencontainers.image.$l\":\"[^\"]+\""; done
  says "muster-$n runs as uid 65532" "$config" '"User":"65532:65532"'
  c=$(buildah from --pull-never "$image") && root=$(buildah mount "$c") || { bad "muster-$n can be opened"; continue; }
  says "muster-$n has its SBOM" "$(cat "$root/usr/share/doc/muster/sbom.spdx" 2>&1)" '^PackageName: libc6$'
  case $n in
  task-tf)
    says 'its Python imports TensorFlow and Muster' "$(chroot --userspec=65532:65532 "$root" /usr/bin/env HOME=/tmp /usr/local/bin/python3 -c 'import tensorflow, muster; print(tensorflow.__version__)' 2>&1 | tail -1)" '^2\.15'
    ;;
  *) if compgen -G "$root/bin/*sh" >/dev/null || compgen -G "$root/usr/bin/*sh" >/dev/null; then bad "muster-$n has no shell"; else ok "muster-$n has no shell"; fi ;;
  esac
  program=$(grep -oE '"Entrypoint":\["[^"]+' <<<"$config" | cut -d'"' -f4)
  says "$program starts in it" "$(chroot --userspec=65532:65532 "$root" "$program" --version 2>&1)" '[0-9]+\.[0-9]+\.[0-9]+'
  case $n in task*)
    # as in a pod: /proc is mounted, and no setting has the path of the plug-in
    says 'its task loads the GPU plug-in, which reports what the driver says' "$(buildah run "$c" -- /usr/local/bin/muster-task \
      --kernels=gpu --while-stdin --cluster='{"worker": ["localhost:2222"]}' --job=worker --index=0 --bind=127.0.0.1:0 2>&1 </dev/null)" 'no CUDA here: |kernels cuda-sm'
    ;;
  esac
  [ "$n" != task-cuda ] || look_at_cuda "$root"
  buildah umount "$c" >/dev/null
  buildah rm "$c" >/dev/null
done

if [ -z "${IMAGES_ONCE:-}" ]; then
  t=$SECONDS
  build --no-cache || bad 'the images are built again'
  after=$(layers)
  if [ "$before" = "$after" ]; then ok "built again from nothing, their layers are the same, byte for byte: $((SECONDS - t)) s"; else bad "built again they differ: $before / $after"; fi
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
