#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the operator with Kubeflow's training-operator and with a bare loop of creates, all on the same kind of
# API server (etcd on a tmpfs and kube-apiserver, fresh for each run), in one run.
#
#   run.sh [KIND...]     bare, lifted (peer without its client limits), ours, restart; only when named: stock (the
#                        peer with its defaults: minutes), crowd (ours with 10,000 pods, which only start to run), table
#                        (measures nothing: prints the existing figures and their targets)
#
#   JOBS=100    jobs of 2 ps + 4 workers          REST=10   measured seconds without load
#   ROUNDS=1    rounds, with alternating kinds    OUT=file  appends the figures to it, one line of JSON per run
#
# A complete run in parts of minutes, with one OUT:
#   run.sh bare lifted ours; JOBS=1000 run.sh ours; JOBS=1000 run.sh lifted; run.sh restart; run.sh crowd; run.sh table
#
#   OPERATOR=build/bin/muster-operator  LOAD=build/release/bench/operator/load
#
# The peer is a Go module; without go or without the module, its rows are left out with a message.
set -Eeuo pipefail
cd "$(dirname "$0")/../.."
here=bench/operator
JOBS=${JOBS:-100} REST=${REST:-10} ROUNDS=${ROUNDS:-1}
OPERATOR=$(realpath "${OPERATOR:-build/bin/muster-operator}") LOAD=${LOAD:-build/release/bench/operator/load}
cache=${K8S_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/k8s-node}
export K8S_DIR=${K8S_DIR:-${TMPDIR:-/tmp}/muster-bench-operator}
export K8S_PORT=${K8S_PORT:-23400} K8S_ETCD_PORT=${K8S_ETCD_PORT:-23410} K8S_RUN=${K8S_RUN:-$K8S_DIR/sockets}
export K8S_ETCD_DIR=${K8S_ETCD_DIR:-/dev/shm/muster-bench-etcd-$K8S_PORT}
export K8S_BRIDGE=${K8S_BRIDGE:-k8sbench0} K8S_POD_NET=${K8S_POD_NET:-10.244.9} K8S_SERVICE_NET=${K8S_SERVICE_NET:-10.99.0}
metrics_port=${METRICS_PORT:-23420} probe_port=${PROBE_PORT:-23421}
out=${OUT:-$K8S_DIR/figures.jsonl}
own=$K8S_DIR/metrics.kubeconfig # for the operator's metrics
peer_module=github.com/kubeflow/trainer peer_version=v1.9.4
peer=$cache/bin/training-operator-$peer_version
ours=/apis/muster.dev/v1/namespaces/default/distributedtrainingjobs
theirs=/apis/kubeflow.org/v1/namespaces/default/tfjobs
operator_pid=
. tests/cluster-api/lib.sh

say() { echo "bench-operator: $*" >&2; }
stop_all() {
  stop_operator
  tests/k8s/up down >/dev/null 2>&1 || true
  rm -rf "$K8S_ETCD_DIR"
}
trap 'rc=$?; stop_all; exit $rc' EXIT
mkdir -p "$K8S_DIR" "$cache/bin" "$(dirname "$out")"
[ -e "$K8S_DIR/bin" ] || ln -s "$cache/bin" "$K8S_DIR/bin"
[ -n "${OUT:-}" ] || : >"$out"
cat >"$own" <<-END
	{"current-context": "m", "contexts": [{"name": "m", "context": {"cluster": "m"}}],
	 "clusters": [{"name": "m", "cluster": {"server": "http://127.0.0.1:$metrics_port"}}]}
END

fresh() {
  stop_all
  K8S_SERVICE_ACCOUNTS=yes tests/k8s/up control-plane # with the default admission plug-ins
  . "$K8S_DIR/env"
  # the API server creates its namespaces a moment after it reports ready
  eventually kubectl get namespace default >/dev/null
  kubectl -n default create serviceaccount default >/dev/null # no controller creates it here
}
pid_of() { cut -d' ' -f1 "$K8S_DIR/run/$1.pid"; }
load() { # VERB ARGUMENT...
  timeout "${LIMIT:-900}" "$LOAD" "$1" --kubeconfig="$K8S_DIR/etc/admin.kubeconfig" --rest="$REST" \
    --pid="apiserver=$(pid_of kube-apiserver)" --pid="etcd=$(pid_of etcd)" \
    ${operator_pid:+--pid="operator=$operator_pid" --operator="$own"} "${@:2}" | tee -a "$out" >/dev/null
}
start() { # COMMAND...
  local i
  KUBECONFIG=$K8S_DIR/etc/operator.kubeconfig POD_NAMESPACE=muster-system "$@" >"$K8S_DIR/log/operator.log" 2>&1 &
  operator_pid=$!
  for ((i = 0; i < 300; i++)); do
    curl -sf "http://127.0.0.1:$probe_port/readyz" >/dev/null && return 0
    sleep 0.1
  done
  tail -5 "$K8S_DIR/log/operator.log" >&2
  return 1
}
our_command=("$OPERATOR" --image=localhost/trainer:1 --metrics-port="$metrics_port" --probe-port="$probe_port")

# ---- the peer -------------------------------------------------------------------------------
peer_folder() { GOFLAGS=-mod=mod go mod download -json "$peer_module@$peer_version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'; }
build_peer() {
  local copy=$K8S_DIR/peer
  [ -x "$peer" ] && return 0
  say "building $peer_module $peer_version (the first time takes minutes)"
  rm -rf "$copy"
  cp -r "$(peer_folder)" "$copy" && chmod -R u+w "$copy" # the module's path in its go.mod differs from its import path
  (cd "$copy" && CGO_ENABLED=0 GOWORK=off go build -trimpath -ldflags '-s -w' -o "$peer" ./cmd/training-operator.v1)
  rm -rf "$copy"
}
have_peer() {
  command -v go >/dev/null && [ -n "$(cd "$K8S_DIR" && peer_folder 2>/dev/null)" ] && build_peer >&2 && return 0
  say "$1 is left out: the peer needs go and its module $peer_module $peer_version"
  return 1
}
# Installed in every run, so that each API server does the same work: with more CRDs its heap is larger, and its
# garbage collection cheaper.
peer_crds() {
  local folder file
  folder=$(cd "$K8S_DIR" && peer_folder 2>/dev/null)/manifests/base
  for file in "$folder"/crds/kubeflow.org_*.yaml; do # with its default flags the peer starts all its controllers
    [ ! -e "$file" ] || kubectl apply --server-side -f "$file" >/dev/null
  done
}
peer_rules() {
  local folder certs=/tmp/k8s-webhook-server/serving-certs # a constant in its source
  folder=$(cd "$K8S_DIR" && peer_folder)/manifests/base
  install_rules # installs the user; the role below adds the permissions of the peer
  kubectl apply --server-side -f "$folder/rbac/role.yaml" >/dev/null
  peer_crds
  kubectl create namespace kubeflow >/dev/null
  kubectl create clusterrolebinding peer --clusterrole=training-operator --user=operator-under-test >/dev/null
  # a kubelet would mount the Secret that the peer fills; no webhook is registered, so any valid key pair works
  kubectl -n kubeflow create secret generic training-operator-webhook-cert >/dev/null
  mkdir -p $certs
  [ -s $certs/tls.crt ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
    -keyout $certs/tls.key -out $certs/tls.crt -subj /CN=training-operator.kubeflow.svc -days 30 2>/dev/null
  kubectl wait --for=condition=Established crd --all --timeout=30s >/dev/null
}
run_peer() { # NOTE FLAG...
  local note=$1
  shift
  have_peer "$note" || return 0
  fresh
  peer_rules
  start "$peer" --kubeconfig "$K8S_DIR/etc/operator.kubeconfig" --metrics-bind-address=127.0.0.1:$metrics_port \
    --health-probe-bind-address=127.0.0.1:$probe_port --webhook-server-port=23422 "$@"
  sleep 3 # its controllers start after it has checked its certificates
  load jobs --template=$here/peer.json --path=$theirs --count="$JOBS" --note="$note"
}

# ---- the kinds ------------------------------------------------------------------------------
run_stock() { run_peer stock; }
run_lifted() { run_peer lifted --kube-api-qps=10000 --kube-api-burst=10000 --controller-threads=16; }
start_ours() {
  fresh
  install_rules
  peer_crds
  kubectl wait --for=condition=Established crd --all --timeout=30s >/dev/null
  start "${our_command[@]}"
}
run_ours() {
  start_ours
  load jobs --template=$here/ours.json --path=$ours --count="$JOBS" --note=ours
}
run_crowd() {
  start_ours
  load jobs --template=$here/ours.json --path=$ours --count="${CROWD_JOBS:-1667}" --note=crowd --keep
}
run_table() { :; }
# The pod is one that the operator created, without the members that the server added.
run_bare() {
  start_ours
  sed 's/NAME/bare/' $here/ours.json | kubectl create -f - >/dev/null
  until kubectl get pod bare-ps-0 -o json >"$K8S_DIR/created.json" 2>/dev/null; do sleep 0.2; done
  stop_operator
  python3 $here/bare_pod.py <"$K8S_DIR/created.json" >"$K8S_DIR/pod.json"
  fresh
  load bare --template="$K8S_DIR/pod.json" --count=$((JOBS * 6)) --connections="${CONNECTIONS:-8}" --note=bare
}
# A restart with all jobs running: from exec to the first write for a job that was created meanwhile.
run_restart() {
  start_ours
  load jobs --template=$here/ours.json --path=$ours --count="${RESTART_JOBS:-500}" --note=fill --keep
  stop_operator
  load first --template=$here/ours.json --path=$ours --note=restart -- \
    env KUBECONFIG="$K8S_DIR/etc/operator.kubeconfig" POD_NAMESPACE=muster-system "${our_command[@]}" 2>"$K8S_DIR/log/restart.log"
}

[ $# -gt 0 ] || set -- bare lifted ours restart
for ((round = 0; round < ROUNDS; round++)); do
  for kind in "$@"; do
    "run_$kind"
  done
done
python3 $here/table.py "$out" "${IMAGE:-build/images/muster-operator.tar}"
