# SPDX-License-Identifier: Apache-2.0
# Changes the workers of a running job: kubectl scale to 4 and to 1, and a manifest with 3.  The ps and the chief
# stay, and the global step includes every step that a worker has completed.
# Each worker has a CPU limit below one core, so more workers are faster even on a machine with few cores.
slow='resources: {requests: {cpu: 200m}, limits: {cpu: 200m}}'
apply_workers() { # N
  sed "s/worker: {replicas: 2}/worker: {replicas: $1, $slow}/" "$here/manifests/long.yaml" | k -n "$ns" apply -f - >/dev/null ||
    bad "the manifest with $1 workers is accepted"
}
apply_workers 2
eventually 60 'a job with 2 workers trains' past_step long 100 || return # the rest depends on it
ps_uid=$(field pod/long-ps-0 '{.metadata.uid}')
chief_uid=$(field pod/long-worker-0 '{.metadata.uid}')
ready_workers() { [ "$(field dtj/long '{.status.tasks.worker.ready}')" = "$1" ]; }
epoch() { field dtj/long '{.status.cluster.epoch}'; }
seen_by_all() { [ "$(epoch)" -gt "$1" ] && [ "$(field dtj/long '{.status.cluster.epochSeen}')" = "$(epoch)" ]; } # EPOCH BEFORE
has_epoch() { # POD: the task's own status has the epoch
  curl -fsS -m 5 "http://$(field "pod/long-$1" '{.status.podIP}'):8079/status" | grep -q "\"epoch\":$(epoch),"
}
epoch_is_seen() { # EPOCH BEFORE, POD...: the existing tasks have applied the new membership
  local p
  eventually 25 'the status says that every task has seen the new epoch' seen_by_all "$1"
  shift
  [ -z "$own" ] || for p in "$@"; do check "$p itself says so" has_epoch "$p"; done
}
moves() { # the step increases further
  local from
  from=$(field dtj/long '{.status.progress.step}')
  eventually 20 "$1" past_step long $((${from:-0} + 100))
}
rate() { field dtj/long '{.status.progress.stepsPerSecond}'; }
global_step() { # reads it from the ps
  curl -fsS -m 5 "http://$(field pod/long-ps-0 '{.status.podIP}'):8079/metrics" | awk '$1 == "muster_global_step" {print $2}'
}
pace() { # measures steps/s over 5 seconds
  local from at
  from=$(global_step) at=$(now)
  sleep 5
  echo $((($(global_step) - from) * 1000000 / ($(now) - at)))
}
worker_steps() { grep -qiE 'step' <<<"$(log_of "long-worker-$1")"; }

# the digits job may end before a query could find a loss
has_loss() { grep -q '[0-9]' <<<"$(field dtj/long '{.status.progress.loss}')"; }
eventually 15 'the progress has a loss' has_loss

before=$(epoch)
note "with 2 workers: $(rate) steps/s, epoch $before"
[ -z "$own" ] || pace_of_2=$(pace)
start=$(now)
check 'kubectl scale --replicas=4' k -n "$ns" scale dtj/long --replicas=4
eventually 20 'both new workers run' running long-worker-2 long-worker-3
running_at=$(now)
eventually 10 'both train' worker_steps 3
says 'within 5 s of their pods running' "$(since "$running_at")" '^[0-4]\.'
eventually 10 'the job counts 4 as ready' ready_workers 4
note "from scale to ready: $(since "$start") s; $(rate) steps/s; epoch $before -> $(epoch)"
check 'the epoch has risen' [ "$(epoch)" -gt "$before" ]
epoch_is_seen "$before" ps-0 worker-0 worker-1
note "from scale to the epoch seen by all: $(since "$start") s"
moves 'training goes on with 4 workers'
if [ -n "$own" ]; then
  pace_of_4=$(pace)
  check "steps/s follow: $pace_of_2 with 2 workers, $pace_of_4 with 4" [ "$pace_of_4" -gt $((pace_of_2 * 12 / 10)) ]
fi

# follows the log until the worker has left, since its pod and its log are deleted then
parting=$(mktemp)
timeout 120 kubectl -n "$ns" logs -f long-worker-3 >"$parting" 2>&1 &
listener=$!
before=$(epoch)
start=$(now)
check 'kubectl scale --replicas=1' k -n "$ns" scale dtj/long --replicas=1
for i in 1 2 3; do
  eventually 45 "worker $i is gone" gone "pod/long-worker-$i"
done
note "from scale to gone: $(since "$start") s; epoch $before -> $(epoch)"
epoch_is_seen "$before" ps-0 worker-0
wait "$listener"
told=$(grep -oE '^progress step=[0-9]+' "$parting" | tail -1 | cut -d= -f2)
past_told() { [ -n "$told" ] && past_step long "$told"; }
eventually 20 "the job counts the last step that a removed worker was told of ($told)" past_told
rm -f "$parting"
moves 'training goes on with 1 worker'
if [ -n "$own" ]; then
  pace_of_1=$(pace)
  check "and come down: $pace_of_1 with 1 worker" [ "$pace_of_1" -lt $((pace_of_4 * 8 / 10)) ]
fi

before=$(epoch)
start=$(now)
apply_workers 3
eventually 30 'the manifest edited to 3 workers brings 2 back' running long-worker-1 long-worker-2
epoch_is_seen "$before" ps-0 worker-0 worker-1 worker-2
note "from the edit to the epoch seen by all: $(since "$start") s"
moves 'training goes on with 3 workers'
is 'the ps was never restarted' "$ps_uid" "$(field pod/long-ps-0 '{.metadata.uid}')"
is 'the first worker was never restarted' "$chief_uid" "$(field pod/long-worker-0 '{.metadata.uid}')"
is 'nothing counted as a failure' 0 "$(field dtj/long '{.status.restarts}')"
is 'the job is Running' Running "$(field dtj/long '{.status.phase}')"
says 'scaling the ps in is refused' \
  "$(k -n "$ns" patch dtj long --type=merge -p '{"spec":{"tasks":{"ps":{"replicas":0}}}}' 2>&1)" 'invalid|refused|denied|cannot'
remove long
