# SPDX-License-Identifier: Apache-2.0
# Sourced by run.sh: gangs with the CRDs of scheduler-plugins and Kueue, whose Go modules are pinned like the
# programs of tests/k8s.  Neither scheduler runs here: the tests check the objects that the schedulers would read.

module() { # PATH@VERSION SUM: sets $sources to the sources of the module; fails if they cannot be fetched
  local said
  if ! said=$(cd / && GOFLAGS=-mod=mod GOWORK=off timeout 120 go mod download -json "$1" 2>&1); then
    echo "    LEFT OUT: $1 cannot be fetched: $(tr -d '\n' <<<"$said" | tail -c 160)"
    return 1
  fi
  sources=$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' <<<"$said")
  grep -qF "\"Sum\": \"$2\"" <<<"$said" || sources=/not/the/one/that/was/pinned
}
define() { # FILE...: applies CRDs and waits until the API server serves them
  local f
  # kubectl wait fails while the condition does not exist
  for f in "$@"; do kubectl apply --server-side -f "$f" >/dev/null && eventually established "$f"; done
}
established() { kubectl wait --for=condition=Established -f "$1" --timeout=5s >/dev/null; }
gang() { # NAME RUN: a job of two ps and two workers with this spec.run
  sed "s/name: life/name: $1/; s/^spec:/spec:\n  run: {$2}/" $here/job.yaml | kubectl apply -f - >/dev/null
}
member() { kubectl get pod "$1" -o "jsonpath={.metadata.$2}"; } # POD PATH
named() { # CONSTANT FOLDER: the value of a constant in their Go source
  grep -rhoE --include=*.go "\b$1 += +\"[^\"]+\"" "$2" | head -1 | cut -d'"' -f2
}
unplaced() { # POD REASON: sets the condition as a scheduler does
  kubectl patch pod "$1" --subresource=status --type=merge \
    -p '{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"'"$2"'"}]}}' >/dev/null
}
waits_for() { kubectl get dtj "$1" -o jsonpath='{.status.conditions[?(@.type=="Ready")].reason}' | grep -x "$2" >/dev/null; }
escaped() { sed 's#\.#\\.#g' <<<"$1"; }

test_a_gang_of_scheduler_plugins_by_their_own_definition() {
  local plugins label started
  module sigs.k8s.io/scheduler-plugins@v0.33.5 h1:9u4QAYbuoxa59aStrJKP4Bii2EQrZmGPN2tzvfs2gL0= || return 0
  plugins=$sources
  define "$plugins/config/crd/bases/scheduling.x-k8s.io_podgroups.yaml"
  start_operator
  started=${EPOCHREALTIME/./}
  gang plugged 'gang: scheduler-plugins'
  eventually pods_are plugged 'plugged-ps-0 plugged-ps-1 plugged-worker-0 plugged-worker-1'
  echo "    group and pods in $(((${EPOCHREALTIME/./} - started) / 1000)) ms"
  [ "$(kubectl get podgroups.scheduling.x-k8s.io plugged -o jsonpath='{.spec.minMember}')" = 4 ]
  label=$(named GroupName "$plugins/apis/scheduling")/pod-group
  grep -rqF 'PodGroupLabel = scheduling.GroupName + "/pod-group"' "$plugins/apis"
  [ "$(member plugged-worker-1 "labels.$(escaped "$label")")" = plugged ]
  [ "$(kubectl get pod plugged-ps-0 -o jsonpath='{.spec.schedulerName}')" = scheduler-plugins-scheduler ]
  kubectl patch podgroups.scheduling.x-k8s.io plugged --subresource=status --type=merge -p '{"status":{"phase":"Scheduling"}}' >/dev/null
  unplaced plugged-ps-0 Unschedulable
  eventually waits_for plugged GangWaiting
  kubectl delete dtj plugged >/dev/null
  clean plugged
  kubectl delete podgroups.scheduling.x-k8s.io plugged >/dev/null 2>&1 || true
  kubectl delete crd podgroups.scheduling.x-k8s.io >/dev/null
}
test_a_gang_in_a_queue_of_kueue() {
  local kueue p name started
  module sigs.k8s.io/kueue@v0.12.3 h1:BwpNe6CSwkP6Y9KiaWPB9eye4cj7RUMs5Q1vbzPNB3I= || return 0
  kueue=$sources
  for p in resourceflavors clusterqueues localqueues workloads; do
    define "$kueue/config/components/crd/bases/kueue.x-k8s.io_$p.yaml"
  done
  kubectl apply --validate=strict -f - >/dev/null <<-END
	{apiVersion: kueue.x-k8s.io/v1beta1, kind: ResourceFlavor, metadata: {name: any}}
	---
	apiVersion: kueue.x-k8s.io/v1beta1
	kind: ClusterQueue
	metadata: {name: all}
	spec:
	  namespaceSelector: {}
	  resourceGroups: [{coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: 4}]}]}]
	---
	{apiVersion: kueue.x-k8s.io/v1beta1, kind: LocalQueue, metadata: {name: training, namespace: default}, spec: {clusterQueue: all}}
	END
  start_operator
  started=${EPOCHREALTIME/./}
  gang queued 'gang: kueue, queue: training'
  # Kueue admits a group as a whole, so all its pods must exist
  eventually pods_are queued 'queued-ps-0 queued-ps-1 queued-worker-0 queued-worker-1'
  echo "    pods in $(((${EPOCHREALTIME/./} - started) / 1000)) ms"
  for p in queued-ps-0 queued-worker-1; do
    name=$(named QueueLabel "$kueue/pkg/controller/constants")
    [ "$(member $p "labels.$(escaped "$name")")" = training ]
    name=$(named GroupNameLabel "$kueue/pkg/controller/jobs/pod/constants")
    [ "$(member $p "labels.$(escaped "$name")")" = queued ]
    name=$(named GroupTotalCountAnnotation "$kueue/pkg/controller/jobs/pod/constants")
    [ "$(member $p "annotations.$(escaped "$name")")" = 4 ]
  done
  unplaced queued-ps-0 SchedulingGated
  eventually waits_for queued SchedulingGated
  kubectl delete dtj queued >/dev/null
  clean queued
  kubectl delete crd {resourceflavors,clusterqueues,localqueues,workloads}.kueue.x-k8s.io >/dev/null
}
