#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The user's gestures on a real Kubernetes node, with real containers: helm install, kubectl apply, kubectl scale.
#
#   run.sh [SCENARIO...]   all when none is named; they are the files of scenarios/
#   KUBECONFIG             a cluster of yours to use instead of bringing one up; it has to be able to get
#   IMAGE_OPERATOR         the two images, and needs a default storage class.  On the cluster that this
#   IMAGE_TASK             script brings up they are made here and imported.
#   E2E_KEEP=1             leave the cluster and what runs on it
#   K8S_DIR, K8S_PORT …    settings of tests/k8s/up
set -uo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

here=tests/e2e
system=muster-system # where the operator lives
ns=muster-e2e        # where the jobs live; restricted
own=               # set: the cluster is ours
volume=/var/lib/muster-e2e
export ns system
IMAGE_OPERATOR=${IMAGE_OPERATOR:-localhost/muster-operator:dev}
IMAGE_TASK=${IMAGE_TASK:-localhost/muster-task:dev}
started=$(now)

finish() {
  local rc=$?
  trap - EXIT INT TERM
  if [ -z "${E2E_KEEP:-}" ]; then
    if [ -n "$own" ]; then
      timeout 120 tests/k8s/up down >/dev/null 2>&1 || echo "  the cluster did not go down; try: tests/k8s/up down"
      rm -rf "$volume"
    else
      timeout 60 helm -n "$system" uninstall muster >/dev/null 2>&1
      timeout 60 kubectl delete namespace "$ns" "$system" --ignore-not-found >/dev/null 2>&1
    fi
  fi
  echo "$passed passed, $failed failed"
  [ "$rc" = 0 ] && [ "$failed" = 0 ]
  exit
}
trap finish EXIT
trap 'exit 130' INT TERM
stop() { # WORDS: nothing after this makes sense
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
  timeout 2200 tests/k8s/up node || stop "the node did not come up"
  ok "a node from $warm caches: $(since "$t") s"
  . "$K8S_DIR/env"
  t=$(now)
  IMAGE_ENGINE=${IMAGE_ENGINE:-none} tools/images operator task || stop "the images were not made"
  for i in operator task; do
    timeout 120 ctr images import "build/images/muster-$i.tar" >/dev/null || stop "containerd did not take muster-$i"
  done
  ok "images made and imported: $(since "$t") s"
  [ "$(stat -c %s build/images/muster-operator.tar)" -le $((20 << 20)) ] || bad 'the operator image is larger than 20 MiB'
  [ "$(stat -c %s build/images/muster-task.tar)" -le $((80 << 20)) ] || bad 'the task image is larger than 80 MiB'
  install -d -m 777 "$volume"
fi
for p in kubectl helm; do command -v $p >/dev/null || stop "there is no $p on the PATH"; done
k get --raw=/readyz >/dev/null || stop "the API server does not answer"

split() { [ "$1" = repo ] && echo "${2%:*}" || echo "${2##*:}"; }
export IMAGE_TASK
helm_args=(--set "image.repository=$(split repo "$IMAGE_OPERATOR")" --set "image.tag=$(split tag "$IMAGE_OPERATOR")"
  --set "taskImage.repository=$(split repo "$IMAGE_TASK")" --set "taskImage.tag=$(split tag "$IMAGE_TASK")")

# ---- scenarios ----------------------------------------------------------------------------------
wanted=("$@")
chosen() { [ ${#wanted[@]} = 0 ] || [[ " ${wanted[*]} " == *" $1 "* ]]; }
for file in "$here"/scenarios/*.sh; do
  name=$(basename "$file" .sh)
  name=${name#*-}
  case $name in install | uninstall) ;; *) chosen "$name" || continue ;; esac
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
