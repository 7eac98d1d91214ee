# SPDX-License-Identifier: Apache-2.0
# kubectl scale on a running job: workers join and leave, the ps stays.
start=$(now)
k -n "$ns" apply -f "$here/manifests/long.yaml" >/dev/null || bad 'the long job is accepted'
eventually 60 'a job with 2 workers trains' past_step long 100 || return # nothing below can pass
ps_uid=$(field pod/long-ps-0 '{.metadata.uid}')
chief_uid=$(field pod/long-worker-0 '{.metadata.uid}')
epoch=$(field dtj/long '{.status.cluster.epoch}')
ready_workers() { [ "$(field dtj/long '{.status.tasks.worker.ready}')" = "$1" ]; }
moves() { # the step goes on from where it was
  local from
  from=$(field dtj/long '{.status.progress.step}')
  eventually 20 "$1" past_step long $((${from:-0} + 100))
}

start=$(now)
check 'kubectl scale --replicas=3' k -n "$ns" scale dtj/long --replicas=3
eventually 20 'the third worker runs' running long-worker-2
eventually 10 'the job counts it as ready' ready_workers 3
note "from scale to ready: $(since "$start") s; epoch $epoch -> $(field dtj/long '{.status.cluster.epoch}')"
moves 'training goes on with 3 workers'
worker_steps() { k -n "$ns" logs long-worker-2 2>&1 | grep -qiE 'step'; }
eventually 15 'the third worker trains' worker_steps
check 'kubectl scale --replicas=1' k -n "$ns" scale dtj/long --replicas=1
eventually 45 'the second worker is gone' gone pod/long-worker-1
eventually 45 'the third worker is gone' gone pod/long-worker-2
moves 'training goes on with 1 worker'
is 'the ps was never restarted' "$ps_uid" "$(field pod/long-ps-0 '{.metadata.uid}')"
is 'the first worker was never restarted' "$chief_uid" "$(field pod/long-worker-0 '{.metadata.uid}')"
is 'the job is Running' Running "$(field dtj/long '{.status.phase}')"
says 'scaling the ps in is refused' \
  "$(k -n "$ns" patch dtj long --type=merge -p '{"spec":{"tasks":{"ps":{"replicas":0}}}}' 2>&1)" 'invalid|refused|denied|cannot'
k -n "$ns" delete dtj long --timeout=20s >/dev/null
eventually 40 'a deleted job leaves no pod' none pods -l muster.dev/job=long
