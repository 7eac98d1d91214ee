#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the operator against a real API server (etcd and kube-apiserver, no nodes); this script simulates the kubelet.
#
# run.sh [SCENARIO...]     scenarios are the functions named test_*; all when none is given
#
#   OPERATOR   build/bin/muster-operator
#   WITHOUT=PATTERN  leaves scenarios out of all
#   KILL_CALLS=all   test_killed_at_every_call kills at every call and not only at writes; KILL_SCENARIOS names its scenarios
#   KEEP=1     leave the API server running afterwards
#
# The operator runs as a user with only the chart's ClusterRole and Role.
set -Eeuo pipefail
cd "$(dirname "$0")/../.."
here=tests/cluster-api
OPERATOR=${OPERATOR:-build/bin/muster-operator}
cache=${K8S_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/k8s-node}
# a cluster next to that of the other tests, with the same programs
export K8S_DIR=${K8S_DIR:-${TMPDIR:-/tmp}/muster-cluster-api}
export K8S_PORT=${K8S_PORT:-7443} K8S_ETCD_PORT=${K8S_ETCD_PORT:-24790} K8S_RUN=${K8S_RUN:-/run/k8s-cluster-api}
export K8S_BRIDGE=${K8S_BRIDGE:-k8sapi0} K8S_POD_NET=${K8S_POD_NET:-10.244.7} K8S_SERVICE_NET=${K8S_SERVICE_NET:-10.97.0}
metrics_port=${METRICS_PORT:-7480} probe_port=${PROBE_PORT:-7481}
operator_pid=
passed=0 failed=0
. $here/lib.sh
. $here/chart.sh
. $here/gangs.sh

trap 'rc=$?; stop_operator; [ -n "${KEEP:-}" ] || tests/k8s/up down >/dev/null 2>&1 || true; exit $rc' EXIT

mkdir -p "$K8S_DIR" "$cache/bin"
[ -e "$K8S_DIR/bin" ] || ln -s "$cache/bin" "$K8S_DIR/bin"
tests/k8s/up control-plane
. "$K8S_DIR/env"
log=$K8S_DIR/log/operator.log
: >"$log"
install_rules

explained() { kubectl explain dtj.spec >/dev/null; }

# ---- scenarios ------------------------------------------------------------------------------
test_crd_is_applied_explained_and_small() {
  kubectl apply -f deploy/crd.yaml >/dev/null
  kubectl wait --for=condition=Established crd/distributedtrainingjobs.muster.dev --timeout=20s >/dev/null
  [ "$(wc -c <deploy/crd.yaml)" -lt 262144 ]
  # the server publishes the schema a moment after it has established the resource
  eventually explained
  local n
  n=$(kubectl explain dtj.spec --recursive | grep -c '<')
  [ "$n" -gt 40 ]
  # each field has a description
  kubectl get crd distributedtrainingjobs.muster.dev -o json | python3 $here/crd_descriptions.py
}

test_bad_manifests_are_rejected_by_the_api_server() {
  local name want spec out bad=0 n=0
  while IFS='|' read -r name want spec; do
    case $name in '' | \#*) continue ;; esac
    n=$((n + 1))
    if out=$(printf '{"apiVersion":"muster.dev/v1","kind":"DistributedTrainingJob","metadata":{"name":"%s"},"spec":%s}' \
      "$name" "$spec" | kubectl create --dry-run=server -f - 2>&1); then
      [ "$want" = ok ] || { echo "accepted: $spec"; bad=1; }
    else
      case $out in *"$want"*) ;; *) echo "for $spec expected '$want', got: $out"; bad=1 ;; esac
    fi
  done <$here/manifests.txt
  echo "    $n manifests"
  [ $bad = 0 ]
}

test_life_of_a_job() {
  start_operator
  kubectl apply -f $here/job.yaml >/dev/null
  eventually pods_are life 'life-ps-0 life-ps-1'
  [ "$(kubectl get svc life -o jsonpath='{.spec.clusterIP} {.spec.publishNotReadyAddresses}')" = 'None true' ]
  sleep 1
  pods_are life 'life-ps-0 life-ps-1' # workers wait for every ps
  play life-ps-0 running
  sleep 1
  pods_are life 'life-ps-0 life-ps-1'
  play life-ps-1 running
  eventually pods_are life 'life-ps-0 life-ps-1 life-worker-0 life-worker-1'
  play life-worker-0 running
  play life-worker-1 running
  eventually field_is life .status.phase Running
  eventually field_is life .status.summary.ready 4/4
  kubectl get dtj life --no-headers | grep -q 'Running *4/4'
  play life-worker-1 succeeded
  play life-worker-0 succeeded
  eventually field_is life .status.phase Succeeded
  # no ps answers here, so the operator deletes them
  play_deletions life
  eventually no_ps_runs life
  pods_are life 'life-worker-0 life-worker-1'
  eventually event_about life PodsCreated
  eventually event_about life Succeeded
  quiet 3
  kubectl delete dtj life >/dev/null
  clean life
}

test_workers_are_scaled() {
  start_operator
  sed 's/name: life/name: scaled/' $here/job.yaml | kubectl apply -f - >/dev/null
  eventually pods_are scaled 'scaled-ps-0 scaled-ps-1'
  play scaled-ps-0 running
  play scaled-ps-1 running
  eventually pods_are scaled 'scaled-ps-0 scaled-ps-1 scaled-worker-0 scaled-worker-1'
  play scaled-worker-0 running
  play scaled-worker-1 running
  eventually field_is scaled .status.phase Running
  kubectl scale dtj/scaled --replicas=3 >/dev/null
  eventually pods_are scaled 'scaled-ps-0 scaled-ps-1 scaled-worker-0 scaled-worker-1 scaled-worker-2'
  play scaled-worker-2 running
  eventually field_is scaled .status.tasks.worker.ready 3
  [ "$(kubectl get --raw /apis/muster.dev/v1/namespaces/default/distributedtrainingjobs/scaled/scale |
    python3 -c 'import json, sys; s = json.load(sys.stdin)["status"]; print(s["replicas"], s["selector"])')" = \
    '3 muster.dev/job=scaled,muster.dev/task=worker' ]
  kubectl scale dtj/scaled --replicas=1 >/dev/null
  eventually being_deleted scaled-worker-2
  eventually being_deleted scaled-worker-1
  play_deletions scaled
  eventually pods_are scaled 'scaled-ps-0 scaled-ps-1 scaled-worker-0'
  if kubectl patch dtj scaled --type=merge -p '{"spec":{"tasks":{"ps":{"replicas":1}}}}' >/dev/null 2>&1; then
    echo 'the number of ps could be changed'
    return 1
  fi
  kubectl delete dtj scaled >/dev/null
  clean scaled
}

test_failures_are_restarted_or_fail_the_job() {
  start_operator
  sed 's/name: life/name: failing/' $here/job.yaml | kubectl apply -f - >/dev/null
  eventually pods_are failing 'failing-ps-0 failing-ps-1'
  play failing-ps-0 running
  play failing-ps-1 running
  eventually pods_are failing 'failing-ps-0 failing-ps-1 failing-worker-0 failing-worker-1'
  play failing-worker-0 running
  play failing-worker-1 running
  eventually field_is failing .status.phase Running
  local old
  old=$(kubectl get pod failing-worker-1 -o jsonpath='{.metadata.uid}')
  play failing-worker-1 failed 137
  eventually replaced failing-worker-1 "$old"
  play failing-worker-1 running
  eventually field_is failing .status.phase Running
  play failing-worker-1 failed 2 # restart policy ExitCode: a program error is not retried
  eventually field_is failing .status.phase Failed
  kubectl get dtj failing -o jsonpath='{.status.conditions[?(@.type=="Failed")].message}' | grep -q 'worker/1.*exit code 2'
  kubectl delete dtj failing >/dev/null
  clean failing
}

test_api_server_goes_away_and_comes_back() {
  start_operator
  sed 's/name: life/name: patient/' $here/job.yaml | kubectl apply -f - >/dev/null
  eventually pods_are patient 'patient-ps-0 patient-ps-1'
  local pid
  read -r pid _ <"$K8S_DIR/run/kube-apiserver.pid"
  kill -9 "$pid"
  sleep 3
  operator_lives
  tests/k8s/up control-plane 2>/dev/null
  play patient-ps-0 running
  play patient-ps-1 running
  eventually pods_are patient 'patient-ps-0 patient-ps-1 patient-worker-0 patient-worker-1'
  operator_lives
  kubectl delete dtj patient >/dev/null
  clean patient
}

# One connection for each watch, worker and other thread, independent of the number of calls.
test_operator_keeps_its_connections() {
  local i
  start_operator
  for i in 1 2 3 4 5 6; do
    sed "s/name: life/name: busy$i/" $here/job.yaml | kubectl apply -f - >/dev/null
  done
  for i in 1 2 3 4 5 6; do
    eventually pods_are busy$i "busy$i-ps-0 busy$i-ps-1"
  done
  [ "$(connections_of_operator)" -gt 4 ]
  [ "$(connections_of_operator)" -le 16 ]
  for i in 1 2 3 4 5 6; do
    kubectl delete dtj busy$i >/dev/null
    clean busy$i
  done
}

test_a_killed_operator_leaves_nothing_half_done() {
  local i
  sed 's/name: life/name: reborn/' $here/job.yaml | kubectl apply -f - >/dev/null
  for i in 1 2 3 4 5 6; do
    start_operator
    sleep 0.$((i * 15))
    kill -9 "$operator_pid"
    stop_operator
  done
  start_operator
  eventually pods_are reborn 'reborn-ps-0 reborn-ps-1'
  kubectl delete dtj reborn >/dev/null
  clean reborn
}

test_leadership_passes_on_and_never_doubles() {
  local first second
  LEADER_ELECT=true start_operator
  first=$operator_pid
  eventually leader_is "_$first"
  operator_pid=
  metrics_port=$((metrics_port + 2)) probe_port=$((probe_port + 2)) LEADER_ELECT=true start_operator
  second=$operator_pid
  sleep 3
  leader_is "_$first"
  kill -STOP "$first" # beyond the end of its lease
  WITHIN=40 eventually leader_is "_$second"
  sed 's/name: life/name: led/' $here/job.yaml | kubectl apply -f - >/dev/null
  eventually pods_are led 'led-ps-0 led-ps-1'
  kill -CONT "$first" # it must detect the lost lease and exit
  WITHIN=10 eventually ended "$first"
  leader_is "_$second"
  operator_lives
  kubectl delete dtj led >/dev/null
  clean led
}

test_samples_are_accepted() {
  local f
  for f in deploy/samples/*.yaml examples/*.yaml; do
    grep -q DistributedTrainingJob "$f" || continue
    kubectl create --dry-run=server -f "$f" >/dev/null
    "${OPERATOR%-operator}" validate --plan "$f" >"$K8S_DIR/plan"
    grep -q 'suspend: true' "$f" || grep -q 'create pod' "$K8S_DIR/plan"
  done
  kubectl get crd distributedtrainingjobs.muster.dev -o json | python3 $here/crd_samples.py
}

test_a_pod_on_a_lost_node_is_given_up() {
  start_operator
  kubectl apply -f - >/dev/null <<-END
	apiVersion: v1
	kind: Node
	metadata: {name: lost-node}
	END
  kubectl patch node lost-node --subresource=status --type=merge \
    -p '{"status":{"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown","lastHeartbeatTime":"2024-01-01T00:00:00Z","lastTransitionTime":"2024-01-01T00:00:00Z"}]}}' >/dev/null
  sed 's/name: life/name: stranded/; s/worker: {.*/worker: {replicas: 1, template: {spec: {terminationGracePeriodSeconds: 1}}}/; /ps:/d' $here/job.yaml |
    kubectl apply -f - >/dev/null
  eventually pods_are stranded stranded-worker-0
  local old
  old=$(kubectl get pod stranded-worker-0 -o jsonpath='{.metadata.uid}')
  play_binding stranded-worker-0 lost-node
  play stranded-worker-0 running
  kubectl delete pod stranded-worker-0 --wait=false >/dev/null # as the node controller does
  sleep 5
  being_deleted stranded-worker-0
  [ "$(kubectl get pod stranded-worker-0 -o jsonpath='{.metadata.uid}')" = "$old" ]
  WITHIN=40 eventually replaced stranded-worker-0 "$old"
  eventually event_about stranded NodeLost
  [ "$(kubectl get dtj stranded -o jsonpath='{.status.restarts}')" = 0 ]
  kubectl delete dtj stranded >/dev/null
  kubectl delete node lost-node >/dev/null
  clean stranded
}

test_foreign_objects_are_left_alone() {
  start_operator
  kubectl create service clusterip foreign --tcp=80 >/dev/null
  kubectl run foreign-ps-0 --image=localhost/other:dev >/dev/null
  local before
  before=$(kubectl get pod/foreign-ps-0 svc/foreign -o jsonpath='{.items[*].metadata.resourceVersion}')
  sed 's/name: life/name: foreign/' $here/job.yaml | kubectl apply -f - >/dev/null
  eventually event_about foreign NameTaken
  [ "$(kubectl get pod/foreign-ps-0 svc/foreign -o jsonpath='{.items[*].metadata.resourceVersion}')" = "$before" ]
  kubectl delete dtj foreign >/dev/null
  kubectl delete pod/foreign-ps-0 svc/foreign --force --grace-period=0 >/dev/null 2>&1
  clean foreign
}

test_the_dashboard_uses_existing_metrics() {
  local name said
  start_operator
  eventually writes >/dev/null
  said=$(curl -s "127.0.0.1:$metrics_port/metrics")
  for name in $(grep '"expr"' charts/muster/dashboards/muster.json | grep -oE '[a-z]+(_[a-z]+)+' | grep -v '^by_\|^histogram_quantile$' |
    sed 's/_seconds_\(bucket\|sum\|count\)$/_seconds/' | sort -u); do
    case $said in *"TYPE $name "*) continue ;; esac
    # the task's own metrics have the prefix muster_
    grep -q "\"${name#muster_}\"" task/server_status.c || { echo "nobody has $name"; return 1; }
  done
}

test_policy_and_gang_are_made_once() {
  start_operator
  sed 's/name: life/name: walled/; s/^spec:/spec:\n  security: {networkPolicy: true}\n  run: {gang: volcano, queue: q}/' $here/job.yaml |
    kubectl apply -f - >/dev/null
  eventually event_about walled GangUnavailable
  [ "$(kubectl get networkpolicy walled -o jsonpath='{.metadata.ownerReferences[0].kind}')" = DistributedTrainingJob ]
  pods_are walled '' # no pods, since they could not be scheduled
  kubectl apply -f $here/podgroups.yaml >/dev/null
  # the pods of a gang are created at once
  eventually pods_are walled 'walled-ps-0 walled-ps-1 walled-worker-0 walled-worker-1'
  [ "$(kubectl get podgroups.scheduling.volcano.sh walled -o jsonpath='{.spec.minMember} {.spec.queue}')" = '4 q' ]
  [ "$(kubectl get pod walled-ps-0 -o jsonpath='{.spec.schedulerName}')" = volcano ]
  quiet 3
  stop_operator
  start_operator
  sleep 1
  quiet 2
  [ "$(writes)" = 0 ]
  if kubectl patch dtj walled --type=merge -p '{"spec":{"security":{"networkPolicy":false}}}' >/dev/null 2>&1; then
    echo 'security could be changed'
    return 1
  fi
  kubectl delete dtj walled >/dev/null
  clean walled
  kubectl delete networkpolicy,podgroups.scheduling.volcano.sh walled >/dev/null 2>&1 || true
}

test_a_quota_is_reported_and_the_deadline_holds() {
  start_operator
  kubectl create quota small --hard=pods=1 >/dev/null
  # there is no quota controller here, so the test sets its status
  kubectl patch quota small --subresource=status --type=merge -p '{"status":{"hard":{"pods":"1"},"used":{"pods":"1"}}}' >/dev/null
  sed 's/name: life/name: over/; s/^spec:/spec:\n  run: {schedulingDeadlineSeconds: 6}/' $here/job.yaml | kubectl apply -f - >/dev/null
  eventually field_is over '.status.conditions[?(@.type=="PodsRejected")].reason' QuotaExceeded
  kubectl get dtj over -o jsonpath='{.status.conditions[?(@.type=="Ready")].message}' | grep -q 'exceeded quota: small'
  eventually event_about over FailedCreate
  eventually field_is over '.status.conditions[?(@.type=="Failed")].reason' SchedulingDeadlineExceeded
  pods_are over ''
  kubectl delete dtj over >/dev/null
  kubectl delete quota small >/dev/null
  clean over
}

test_a_suspended_job_saves_before_its_servers_go() {
  start_operator
  sed 's/name: life/name: paused/; s/ps: {replicas: 2/ps: {replicas: 1/; s/worker: {replicas: 2/worker: {replicas: 1/' $here/job.yaml |
    kubectl apply -f - >/dev/null
  eventually pods_are paused paused-ps-0
  play paused-ps-0 running
  eventually pods_are paused 'paused-ps-0 paused-worker-0'
  play_binding paused-worker-0 some-node # the API server would delete a pod without a node at once
  play paused-worker-0 running
  eventually field_is paused .status.phase Running
  kubectl patch dtj paused --type=merge -p '{"spec":{"run":{"suspend":true}}}' >/dev/null
  eventually field_is paused '.status.conditions[?(@.type=="Suspended")].reason' Saving
  sleep 1
  [ -z "$(kubectl get pod paused-ps-0 -o jsonpath='{.metadata.deletionTimestamp}')" ]
  play_deletions paused # the worker has saved and ended
  eventually being_deleted paused-ps-0
  play_deletions paused
  eventually field_is paused '.status.conditions[?(@.type=="Suspended")].status' True
  kubectl patch dtj paused --type=merge -p '{"spec":{"run":{"suspend":false}}}' >/dev/null
  eventually pods_are paused paused-ps-0
  kubectl delete dtj paused >/dev/null
  clean paused
}

test_a_template_changes_only_while_the_job_is_suspended() {
  local patch said
  start_operator
  sed 's/name: life/name: fixed/; s/ps: {replicas: 2/ps: {replicas: 1/; s/worker: {replicas: 2/worker: {replicas: 1/' $here/job.yaml |
    kubectl apply -f - >/dev/null
  eventually pods_are fixed fixed-ps-0
  play fixed-ps-0 running
  eventually pods_are fixed 'fixed-ps-0 fixed-worker-0'
  play fixed-worker-0 running
  eventually field_is fixed .status.phase Running
  for patch in '"image":"other:1"' '"resources":{"limits":{"cpu":"1"}}' '"template":{"metadata":{"labels":{"a":"b"}}}'; do
    if said=$(kubectl patch dtj fixed --type=merge -p "{\"spec\":{\"tasks\":{\"worker\":{$patch}}}}" 2>&1); then
      echo "    $patch could be changed"
      return 1
    fi
    grep -q 'template, image and resources cannot change while the job runs; set run.suspend to true' <<<"$said"
  done
  kubectl scale dtj fixed --replicas=2 >/dev/null
  kubectl patch dtj fixed --type=merge -p '{"spec":{"run":{"suspend":true}}}' >/dev/null
  suspended() { play_deletions fixed; field_is fixed '.status.conditions[?(@.type=="Suspended")].status' True; }
  eventually suspended
  kubectl patch dtj fixed --type=merge -p '{"spec":{"run":{"suspend":false},"tasks":{"ps":{"image":"other:1"}}}}' >/dev/null
  eventually pods_are fixed fixed-ps-0
  [ "$(kubectl get pod fixed-ps-0 -o jsonpath='{.spec.containers[0].image}')" = other:1 ]
  kubectl delete dtj fixed >/dev/null
  clean fixed
  # the API server has rejected the pod, so the template may still be corrected
  sed 's/name: life/name: fixed/; s/ps: {replicas: 2,/ps: {replicas: 1, template: {spec: {nodeSelectors: {a: b}}},/' $here/job.yaml |
    kubectl apply -f - >/dev/null
  eventually field_is fixed '.status.conditions[?(@.type=="PodsRejected")].status' True
  kubectl patch dtj fixed --type=json -p '[{"op":"remove","path":"/spec/tasks/ps/template"}]' >/dev/null
  eventually pods_are fixed fixed-ps-0
  kubectl delete dtj fixed >/dev/null
  clean fixed
}

test_managed_by_of_a_job_cannot_change() {
  local job spec patch said
  for job in 'none|{}|{"managedBy":"example.com/other"}' \
    'other|{"managedBy":"example.com/other"}|{"managedBy":"muster.dev/operator"}' \
    'gone|{"managedBy":"example.com/other"}|{"managedBy":null}'; do
    IFS='|' read -r job spec patch <<<"$job"
    sed "s/name: life/name: $job/" $here/job.yaml | kubectl patch --local -f - --type=merge -p "{\"spec\":$spec}" -o json |
      kubectl apply -f - >/dev/null
    if said=$(kubectl patch dtj "$job" --type=merge -p "{\"spec\":$patch}" 2>&1); then
      echo "    $patch was accepted"
      return 1
    fi
    grep -q 'managedBy cannot change; make a new job' <<<"$said"
    kubectl delete dtj "$job" >/dev/null
    clean "$job"
  done
}

test_top_and_explain_show_the_status() {
  local muster=${OPERATOR%-operator} conf=$K8S_DIR/etc/explain.kubeconfig
  start_operator
  sed 's/name: life/name: puzzling/' $here/job.yaml | kubectl apply -f - >/dev/null
  eventually pods_are puzzling 'puzzling-ps-0 puzzling-ps-1'
  eventually field_is puzzling .status.phase Pending
  "$muster" top --once | grep -E '^puzzling +Pending +0/4'
  "$muster" top --once -A | grep -E '^default +puzzling'
  "$muster" explain job/puzzling >"$K8S_DIR/explained"
  grep -q '^puzzling in default: Pending, created .* ago, 0/4 tasks ready' "$K8S_DIR/explained"
  grep -q 'why         Running (Waiting, .*): waiting for chief and parameter servers' "$K8S_DIR/explained"
  grep -q 'pod         puzzling-ps-0: Pending' "$K8S_DIR/explained"
  if "$muster" explain nobody 2>"$K8S_DIR/explained"; then return 1; fi
  grep -q 'nobody.* not found' "$K8S_DIR/explained"
  # with an exec plug-in that has the operator's certificate, which may read jobs and pods but no events
  mkdir -p "$K8S_DIR/etc/plugs"
  cat >"$K8S_DIR/etc/plugs/in" <<-END
	#!/bin/sh
	python3 -c 'import json, sys; print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
	  "status": {"clientCertificateData": open(sys.argv[1]).read(), "clientKeyData": open(sys.argv[2]).read()}}))' \
	  $K8S_DIR/pki/operator.crt $K8S_DIR/pki/operator.key
	END
  chmod +x "$K8S_DIR/etc/plugs/in"
  cp "$KUBECONFIG" "$conf"
  kubectl config --kubeconfig="$conf" set-credentials plugged --exec-api-version=client.authentication.k8s.io/v1 \
    --exec-command=plugs/in >/dev/null
  kubectl config --kubeconfig="$conf" set-context plugged --user=plugged \
    --cluster="$(kubectl config view -o jsonpath='{.clusters[0].name}')" >/dev/null
  "$muster" explain puzzling --kubeconfig="$conf" --context=plugged >"$K8S_DIR/explained"
  grep -q 'pod         puzzling-ps-0: Pending' "$K8S_DIR/explained"
  grep -q 'not read: events pods/proxy' "$K8S_DIR/explained" || grep -q 'not read: events' "$K8S_DIR/explained"
  kubectl delete dtj puzzling >/dev/null
  clean puzzling
}

test_errors_beyond_the_schema_become_conditions() {
  start_operator
  sed 's/name: life/name: odd/; s/worker: {.*/worker: {replicas: 1, template: {spec: {containers: ["no map"]}}}/' $here/job.yaml |
    kubectl apply -f - >/dev/null
  eventually field_is odd .status.phase Failed
  kubectl get dtj odd -o jsonpath='{.status.conditions[?(@.type=="Failed")].reason}' | grep -qx InvalidSpec
  quiet 2
  kubectl delete dtj odd >/dev/null
  clean odd
}

condition_says() { kubectl get dtj "$1" -o jsonpath="{.status.conditions[?(@.type==\"$2\")].message}" | grep -F "$3" >/dev/null; }
pod_creates() { curl -s "127.0.0.1:$metrics_port/metrics" | awk '/^rest_client_requests_total.*code="4/ && /"POST"/ {n += $2} END {print n + 0}'; }

# Template errors that the schema does not detect: the condition has the API server's message, the pod is not created
# again, and an edit repairs the job.
test_template_mistakes_are_the_jobs_condition() {
  local name template says before
  start_operator
  while IFS='|' read -r name template says; do
    sed "s/name: life/name: $name/; s/ps: {.*/ps: {replicas: 1, template: $template}/" $here/job.yaml | kubectl apply -f - >/dev/null
    eventually condition_says "$name" PodsRejected "$says"
    eventually condition_says "$name" Ready "spec.tasks.ps: "
    eventually event_about "$name" FailedCreate
    quiet 1
    before=$(pod_creates)
    sleep 1
    [ "$(pod_creates)" = "$before" ]
    kubectl patch dtj "$name" --type=json -p '[{"op":"remove","path":"/spec/tasks/ps/template"}]' >/dev/null
    eventually pods_are "$name" "$name-ps-0"
    eventually field_is "$name" '.status.conditions[?(@.type=="PodsRejected")].status' ''
    kubectl delete dtj "$name" >/dev/null
    clean "$name"
  done <<-'END'
	selectors|{spec: {nodeSelectors: {a: b}}}|unknown field "spec.nodeSelectors"
	outside|{container: [{image: x}]}|unknown field "container"
	variables|{spec: {containers: [{env: {A: b}}]}}|cannot unmarshal object into Go struct field
	labelled|{metadata: {labels: {a: "no label"}}}|metadata.labels: Invalid value
	END
}

# No controller aggregates roles here, so the test binds the roles directly.
test_the_clusters_roles_cover_jobs() {
  local role verb allowed
  for role in view:get:yes view:create:no edit:create:yes edit:patch:yes admin:delete:yes; do
    IFS=: read -r role verb allowed <<<"$role"
    [ "$(kubectl get clusterrole "muster-$role" -o jsonpath="{.metadata.labels.rbac\.authorization\.k8s\.io/aggregate-to-$role}")" = true ]
    kubectl create clusterrolebinding "try-$role" --clusterrole="muster-$role" --user="try-$role" --dry-run=client -o yaml | kubectl apply -f - >/dev/null
    said() { [ "$(kubectl auth can-i "$verb" distributedtrainingjobs --as="try-$role" 2>/dev/null)" = "$allowed" ]; }
    eventually said
  done
}

# The Python scenarios run many jobs at once, each in its own namespace, behind a proxy that records every request.
test_killed_at_every_call() { python3 $here/kill_each.py; }
test_every_right_is_needed() { python3 $here/minimal_rbac.py; }
test_two_hundred_bad_manifests_harm_no_other_job() { python3 $here/invalid_manifests.py bad; }
test_every_field_may_change_or_is_rejected() { python3 $here/invalid_manifests.py live; }
test_several_namespaces_and_no_more() { python3 $here/namespaces.py; }
test_a_stale_leader_writes_nothing() { python3 $here/stale_leader.py; }

# ---- main -----------------------------------------------------------------------------------
[ $# -gt 0 ] || set -- $(declare -F | sed -n 's/^declare -f \(test_.*\)/\1/p' | grep -vE "crd_is${WITHOUT:+|$WITHOUT}")
kubectl delete dtj --all -A >/dev/null 2>&1 || true
kubectl delete pods,services -A -l muster.dev/job --force --grace-period=0 >/dev/null 2>&1 || true
for t in test_crd_is_applied_explained_and_small "$@"; do
  t0=$SECONDS
  set +e # "if (...)" would disable errexit and continue a scenario after a failure
  (
    set -eE
    trap 'echo "    line $LINENO: $BASH_COMMAND"' ERR
    stop_on_exit
    "$t"
  )
  rc=$?
  set -e
  if [ $rc = 0 ]; then
    passed=$((passed + 1))
    printf '  ok       %s (%d s)\n' "$t" $((SECONDS - t0))
  else
    printf '  FAILED   %s (%d s); the operator said:\n' "$t" $((SECONDS - t0))
    tail -20 "$log"
    failed=1
    break # later scenarios would start from an undefined state
  fi
done
echo "$passed passed, $failed failed"
exit $failed
