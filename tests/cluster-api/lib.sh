# SPDX-License-Identifier: Apache-2.0
# Sourced by run.sh: the operator's process, a simulated kubelet, and conditions to wait for.

start_operator() {
  [ -z "$operator_pid" ] || ! kill -0 "$operator_pid" 2>/dev/null || return 0
  KUBECONFIG=$K8S_DIR/etc/operator.kubeconfig POD_NAMESPACE=muster-system MUSTER_LOG=debug "$OPERATOR" --image=localhost/muster-task:dev \
    --leader-elect="${LEADER_ELECT:-false}" --metrics-port="$metrics_port" --probe-port="$probe_port" \
    --progress-seconds=0 >>"$log" 2>&1 &
  operator_pid=$!
}

stop_operator() {
  [ -n "$operator_pid" ] || return 0
  kill "$operator_pid" 2>/dev/null || true
  wait "$operator_pid" 2>/dev/null || true
  operator_pid=
}

connections_of_operator() { ss -Htnp state established "dport = :$K8S_PORT" | grep -c "pid=$operator_pid,"; }

leader_is() { # the end of the holder's name
  local holder
  holder=$(kubectl -n muster-system get lease muster-operator -o jsonpath='{.spec.holderIdentity}')
  [ "${holder%"$1"}" != "$holder" ]
}
ended() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:[[:space:]]*Z' "/proc/$1/status"; }

# called in the subshell of a scenario
stop_on_exit() { trap stop_operator EXIT; }

operator_lives() { kill -0 "$operator_pid"; }

# The operator's user: the chart's rules, bound to a client certificate.
install_rules() {
  local pki=$K8S_DIR/pki
  kubectl create namespace muster-system --dry-run=client -o yaml | kubectl apply -f - >/dev/null 2>&1
  kubectl apply -f deploy/muster.yaml >/dev/null 2>&1
  kubectl apply -f - >/dev/null <<-END
	apiVersion: rbac.authorization.k8s.io/v1
	kind: ClusterRoleBinding
	metadata: {name: operator-under-test}
	roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: muster}
	subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: operator-under-test}]
	---
	apiVersion: rbac.authorization.k8s.io/v1
	kind: RoleBinding
	metadata: {name: operator-under-test, namespace: muster-system}
	roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: muster-lease}
	subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: operator-under-test}]
	END
  openssl req -newkey rsa:2048 -nodes -keyout "$pki/operator.key" -out "$pki/operator.csr" \
    -subj /CN=operator-under-test >/dev/null 2>&1
  openssl x509 -req -in "$pki/operator.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -days 2 \
    -out "$pki/operator.crt" >/dev/null 2>&1
  local conf=$K8S_DIR/etc/operator.kubeconfig
  kubectl config --kubeconfig="$conf" set-cluster test --embed-certs --server="https://127.0.0.1:$K8S_PORT" \
    --certificate-authority="$pki/ca.crt" >/dev/null
  kubectl config --kubeconfig="$conf" set-credentials op --embed-certs --client-certificate="$pki/operator.crt" \
    --client-key="$pki/operator.key" >/dev/null
  kubectl config --kubeconfig="$conf" set-context test --cluster=test --user=op >/dev/null
  kubectl config --kubeconfig="$conf" use-context test >/dev/null
}

# eventually COMMAND...: repeats the command until it succeeds, for at most 20 s
eventually() {
  local limit=$((SECONDS + ${WITHIN:-20}))
  until "$@" 2>/dev/null; do
    if [ $SECONDS -ge $limit ]; then
      echo "    never: $*"
      kubectl get dtj,pods,svc 2>&1 | sed 's/^/    /'
      return 1
    fi
    sleep 0.1
  done
}

# ---- queries ----
pods_of() { kubectl get pods -l "muster.dev/job=$1" --sort-by=.metadata.name -o jsonpath='{.items[*].metadata.name}'; }
pods_are() { [ "$(pods_of "$1")" = "$2" ]; }
field_is() { [ "$(kubectl get dtj "$1" -o jsonpath="{$2}")" = "$3" ]; }
being_deleted() { [ -n "$(kubectl get pod "$1" -o jsonpath='{.metadata.deletionTimestamp}')" ] || gone "$1"; }
gone() { ! kubectl get pod "$1" >/dev/null 2>&1; }
replaced() {
  local uid
  uid=$(kubectl get pod "$1" -o jsonpath='{.metadata.uid}')
  [ -n "$uid" ] && [ "$uid" != "$2" ]
}
no_ps_runs() {
  play_deletions "$1"
  [ -z "$(kubectl get pods -l "muster.dev/job=$1,muster.dev/task=ps" -o name)" ]
}
# grep -q would close the pipe and end kubectl early
event_about() { kubectl get events -o jsonpath="{range .items[?(@.involvedObject.name=='$1')]}{.reason}{'\n'}{end}" | grep -x "$2" >/dev/null; }

writes() { curl -s "127.0.0.1:$metrics_port/metrics" | awk '/^rest_client_requests_total/ && !/"GET"/ {n += $2} END {print n + 0}'; }
still() {
  local before
  before=$(writes)
  sleep "$1"
  [ "$(writes)" = "$before" ]
}
# quiet SECONDS: waits until the operator writes nothing for SECONDS, plus the 5 s by which a status update of pod
# counts may be delayed
quiet() { eventually still $(($1 + 5)); }

# ---- simulated kubelet ----
# play POD running | succeeded | failed [EXIT_CODE]
play() {
  local now body code=${3:-0}
  now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  case $2 in
  running)
    body='{"status":{"phase":"Running","podIP":"127.0.0.9","podIPs":[{"ip":"127.0.0.9"}],"startTime":"'$now'",
      "conditions":[{"type":"Ready","status":"True"}],
      "containerStatuses":[{"name":"muster","ready":true,"restartCount":0,"image":"x","imageID":"x",
        "state":{"running":{"startedAt":"'$now'"}}}]}}'
    ;;
  *)
    body='{"status":{"phase":"'${2^}'","conditions":[{"type":"Ready","status":"False"}],
      "containerStatuses":[{"name":"muster","ready":false,"restartCount":0,"image":"x","imageID":"x",
        "state":{"terminated":{"exitCode":'$code',"finishedAt":"'$now'","reason":"'$([ "$code" = 0 ] && echo Completed || echo Error)'"}}}]}}'
    ;;
  esac
  kubectl patch pod "$1" --subresource=status --type=merge -p "$body" >/dev/null
}

# play_binding POD NODE: acts as the scheduler; the node need not exist
play_binding() {
  echo '{"apiVersion":"v1","kind":"Binding","metadata":{"name":"'"$1"'"},"target":{"kind":"Node","name":"'"$2"'"}}' |
    kubectl create --raw "/api/v1/namespaces/default/pods/$1/binding" -f - >/dev/null
}

# Removes the pods of a job that are being deleted, as a kubelet would.
play_deletions() {
  local p
  for p in $(kubectl get pods -l "muster.dev/job=$1" \
    -o jsonpath="{range .items[?(@.metadata.deletionTimestamp)]}{.metadata.name}{'\n'}{end}"); do
    kubectl delete pod "$p" --force --grace-period=0 >/dev/null 2>&1 || true
  done
}

# Deletes the dependents of a deleted job, since there is no garbage collector here.
clean() {
  kubectl delete pods,services -l "muster.dev/job=$1" --force --grace-period=0 >/dev/null 2>&1 || true
}
