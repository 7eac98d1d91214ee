#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# User actions on a real Kubernetes node with real containers: helm install, kubectl apply, kubectl scale.
#
#   run.sh [SCENARIO...]   all when none is named; they are the files of scenarios/
#   KUBECONFIG             an existing cluster to use instead of starting one; it must be able to pull
#   IMAGE_OPERATOR         the two images, and needs a default storage class.  For the cluster that this
#   IMAGE_TASK             script starts, the images are built here and imported.
#   IMAGE_TASK_TF          the task image with Python TensorFlow.  The scenarios skip the tests that need it if this is empty,
#                          or if there is no TensorFlow here to build it from (MUSTER_TF_VENV, or build/venv-tf)
#   IMAGE_C                an image with examples/softmax.c as the program "softmax"; likewise
#   E2E_GRAFANA=1          build Grafana from its sources, once, for the scenario "observe"
#   E2E_KEEP=1             keep the cluster and its pods; the next run continues with them
#   K8S_DIR, K8S_PORT …    settings of tests/k8s/up
set -uo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

here=tests/e2e
system=muster-system # namespace of the operator
ns=muster-e2e        # namespace of the jobs, with the restricted pod security standard
own=               # not empty if this script has started the cluster
volume=/var/lib/muster-e2e
export ns system
IMAGE_OPERATOR=${IMAGE_OPERATOR:-localhost/muster-operator:dev}
IMAGE_TASK=${IMAGE_TASK:-localhost/muster-task:dev}
IMAGE_TASK_TF=${IMAGE_TASK_TF:-}
IMAGE_C=${IMAGE_C:-}
started=$(now)

finish() {
  local rc=$?
  trap - EXIT INT TERM
  if [ -z "${E2E_KEEP:-}" ]; then
    if [ -n "$own" ]; then
      timeout --foreground 120 tests/k8s/up down >/dev/null 2>&1 || echo "  the cluster did not go down; try: tests/k8s/up down"
      rm -rf "$volume"
    else
      timeout 60 helm -n "$system" uninstall muster >/dev/null 2>&1
      timeout 60 kubectl delete namespace "$ns" "$system" --ignore-not-found >/dev/null 2>&1
    fi
  fi
  echo "$passed passed, $failed failed"
  [ "$rc" != 0 ] || [ "$failed" = 0 ] || rc=1
  exit "$rc" # a bare exit would return the status from before this trap
}
trap finish EXIT
trap 'exit 130' INT TERM
take() { # TAR IMAGE: imports an image into the node, unless it has that image already
  local kept=$K8S_DIR/imported sum
  sum=$(sha256sum <"$1")
  mkdir -p "$kept"
  if [ "$(cat "$kept/${2##*/}" 2>/dev/null)" = "$sum" ] && ctr images ls -q | grep -qx "$2"; then return; fi
  timeout --foreground 240 ctr images import "$1" >/dev/null || stop "containerd did not take $1"
  echo "$sum" >"$kept/${2##*/}"
}
stop() { # WORDS: ends the run
  bad "$*"
  exit 1
}

# ---- a cluster ----------------------------------------------------------------------------------
if [ -z "${KUBECONFIG:-}" ]; then
  K8S_DIR=${K8S_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/k8s-node}
  export K8S_DIR
  warm=cold
  [ -x "$K8S_DIR/bin/kubelet" ] && warm=warm
  own=yes
  t=$(now)
  timeout --foreground 2200 tests/k8s/up node || stop "the node did not come up"
  ok "a node from $warm caches: $(since "$t") s"
  . "$K8S_DIR/env"
  t=$(now)
  IMAGE_ENGINE=${IMAGE_ENGINE:-none} tools/images operator task || stop "the images were not made"
  for i in operator task; do take "build/images/muster-$i.tar" "localhost/muster-$i:dev"; done
  ok "images made and imported: $(since "$t") s"
  if [ -x "${MUSTER_TF_VENV:-build/venv-tf}/bin/python" ]; then
    t=$(now)
    IMAGE_ENGINE=none IMAGE_VENV=${MUSTER_TF_VENV:-build/venv-tf} tools/images task-tf || stop "task-tf was not made"
    take build/images/muster-task-tf.tar localhost/muster-task-tf:dev
    IMAGE_TASK_TF=localhost/muster-task-tf:dev
    ok "task-tf made and imported: $(since "$t") s"
  fi
  work_c=build/images/c-program
  rm -rf "$work_c" && mkdir -p "$work_c/root/usr/local/bin"
  make -s build/release/examples/softmax >/dev/null || stop "the C example was not built"
  strip -o "$work_c/root/usr/local/bin/softmax" build/release/examples/softmax
  # a user program on top of the task image, as with FROM muster-task
  tar -xOf build/images/muster-task.tar layer0.tar >"$work_c/task.tar"
  tools/mkimage -u 65532:65532 -w /usr/share/muster -b "$work_c/task.tar" localhost/softmax:dev "$work_c/root" \
    "$work_c/image.tar" /usr/local/bin/softmax
  take "$work_c/image.tar" localhost/softmax:dev
  IMAGE_C=localhost/softmax:dev
  install -d -m 777 "$volume"
fi
for p in kubectl helm; do command -v $p >/dev/null || stop "there is no $p on the PATH"; done
k get --raw=/readyz >/dev/null || stop "the API server does not answer"

export IMAGE_TASK_TF IMAGE_C
split() { [ "$1" = repo ] && echo "${2%:*}" || echo "${2##*:}"; }
export IMAGE_TASK
helm_args_tf=()
[ -z "$IMAGE_TASK_TF" ] || helm_args_tf=(--set "tensorboardImage.repository=$(split repo "$IMAGE_TASK_TF")"
  --set "tensorboardImage.tag=$(split tag "$IMAGE_TASK_TF")")
helm_args=(--set "image.repository=$(split repo "$IMAGE_OPERATOR")" --set "image.tag=$(split tag "$IMAGE_OPERATOR")"
  --set "taskImage.repository=$(split repo "$IMAGE_TASK")" --set "taskImage.tag=$(split tag "$IMAGE_TASK")"
  "${helm_args_tf[@]}")

# ---- scenarios ----------------------------------------------------------------------------------
wanted=("$@")
chosen() { [ ${#wanted[@]} = 0 ] || [[ " ${wanted[*]} " == *" $1 "* ]]; }
for file in "$here"/scenarios/*.sh; do
  name=$(basename "$file" .sh)
  name=${name#*-}
  case $name in
  install) ;;
  uninstall) [ -z "${E2E_KEEP:-}" ] || continue ;;
  *) chosen "$name" || continue ;;
  esac
  echo "== $name"
  failed_before=$failed
  # shellcheck disable=SC1090 # each is a file of this folder
  . "$file"
  if [ "$failed" != "$failed_before" ]; then
    autopsy
    [ "$name" != install ] || exit 1
  fi
done
echo "  all in $(since "$started") s"
