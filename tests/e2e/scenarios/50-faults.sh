# SPDX-License-Identifier: Apache-2.0
# A worker and the operator are killed while a job trains.
k -n "$ns" apply -f "$here/manifests/long.yaml" >/dev/null || bad 'the long job is accepted'
eventually 60 'a job trains' past_step long 100 || return # nothing below can pass
uid=$(field pod/long-worker-1 '{.metadata.uid}')
replaced() { local u; u=$(field pod/long-worker-1 '{.metadata.uid}'); [ -n "$u" ] && [ "$u" != "$uid" ] && running long-worker-1; }
k -n "$ns" delete pod long-worker-1 --wait=false >/dev/null
eventually 60 'a deleted worker is made again' replaced
from=$(field dtj/long '{.status.progress.step}')
eventually 20 'training went on' past_step long $((from + 100))
uids() { k -n "$ns" get pods -l muster.dev/job=long -o 'jsonpath={range .items[*]}{.metadata.uid} {end}'; }
before=$(uids)
k -n "$system" delete pod -l app.kubernetes.io/name=muster-operator --wait=false >/dev/null
eventually 60 'the operator is back' operator_ready
from=$(field dtj/long '{.status.progress.step}')
eventually 45 'it follows the job again' past_step long $((${from:-0} + 100))
is 'the restart of the operator touched no task' "$before" "$(uids)"
k -n "$ns" delete dtj long --timeout=20s >/dev/null
eventually 40 'a deleted job leaves no pod' none pods -l muster.dev/job=long
