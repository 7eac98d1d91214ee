# SPDX-License-Identifier: Apache-2.0
# Isolation of a job from a pod next to it, and the restrictions of a task on its node.  The job of this file
# runs until 65-security.sh, while its certificates are replaced.
claim guarded
submit guarded
sed 's/name: guarded/name: other/; /checkpoint:/d; s/worker: {replicas: 2/worker: {replicas: 1/' "$here/manifests/guarded.yaml" | k -n "$ns" apply -f - >/dev/null
eventually 60 'a job with certificates trains' past_step guarded 50 || return # the rest depends on it
eventually 60 'and another' past_step other 1
guarded_secret=$(field dtj/guarded '{.status.security.secret}')
guarded_uids() { k -n "$ns" get pods -l muster.dev/job=guarded -o 'jsonpath={range .items[*]}{.metadata.name}={.metadata.uid} {end}'; }
guarded_before=$(guarded_uids)
serial() { # serial number of the certificate that is in the Secret now
  k -n "$ns" get secret "$guarded_secret" -o 'jsonpath={.data.tls\.crt}' | base64 -d | openssl x509 -noout -serial
}
guarded_serial=$(serial)
is 'a NetworkPolicy goes with the job' guarded "$(field networkpolicy/guarded '{.spec.podSelector.matchLabels.muster\.dev/job}')"
is 'the port of streams is declared by its pods' 2223 "$(field pod/guarded-ps-0 '{.spec.containers[0].ports[?(@.name=="stream")].containerPort}')"
is 'and by its service' 2223 "$(field service/guarded '{.spec.ports[?(@.name=="stream")].port}')"
says 'tensors go between the pods by a secured stream' "$(log_of guarded-worker-0)" 'stream.*connected to /job:ps'

if [ -n "$own" ]; then
  pid=$(task_pid guarded-worker-0)
  says 'its root file system is read-only' "$(awk '$2 == "/"' "/proc/$pid/mounts")" ' ro,'
  is 'it has no service account token' '' "$(grep -E 'serviceaccount' "/proc/$pid/mounts")"
  status=$(cat "/proc/$pid/status")
  says 'it runs as nobody' "$status" '^Uid:.65532.65532.65532.65532'
  says 'without any capability' "$status" '^CapEff:.0+$'
  says 'and can get none' "$status" '^NoNewPrivs:.1'
  says 'its system calls are filtered' "$status" '^Seccomp:.2'
fi

if [ -n "$IMAGE_TASK_TF" ]; then
  k -n "$ns" create configmap stranger --from-file="$here/programs/stranger.py" --dry-run=client -o yaml | k -n "$ns" apply -f - >/dev/null
  doors=()
  for p in ps-0 worker-0; do
    for port in 2222 2223; do doors+=("guarded-$p.guarded.$ns.svc:$port"); done
  done
  stranger() { # NAME SECRET WHO
    sed "s#NAME#$1#; s#CERTIFICATES#$2#; s#IMAGE_TASK_TF#$IMAGE_TASK_TF#; s#WHO#$3#; s#ADDRESSES#$(tr ' ' ',' <<<"${doors[*]}")#" \
      "$here/manifests/stranger.yaml" | k -n "$ns" apply -f - >/dev/null || bad "the pod $1 is made"
  }
  over() { [[ "$(pod_phase "$1")" =~ Succeeded|Failed ]]; }
  other_secret=$(field dtj/other '{.status.security.secret}')
  stranger stranger-clear "$other_secret" clear
  stranger stranger-other "$other_secret" /certificates
  stranger stranger-own "$guarded_secret" /certificates
  for s in clear other own; do eventually 60 "a stranger has knocked ($s)" over "stranger-$s"; done
  heard=$(log_of stranger-clear)
  is 'without a certificate it hears no byte at any of 4 ports' 4 "$(grep -c 'heard 0 bytes' <<<"$heard")" || note "$heard"
  heard=$(log_of stranger-other)
  is "with another job's certificate neither" 4 "$(grep -c 'heard 0 bytes' <<<"$heard")"
  note "$(head -1 <<<"$heard" | cut -c1-180)"
  heard=$(log_of stranger-own)
  is "only the job's own certificate opens the port of calls" 2 "$(grep -cE ':2222 heard [1-9]' <<<"$heard")"
  note "$(head -1 <<<"$heard" | cut -c1-180)"
  k -n "$ns" delete pod stranger-clear stranger-other stranger-own --wait=false --grace-period=1 >/dev/null
fi
# health and metrics need no credentials; ending a task needs the job's token, or a caller in the pod
ps_url="http://$(field pod/guarded-ps-0 '{.status.podIP}'):8079"
is 'health is open' 200 "$(curl -sS -m 5 -o /dev/null -w '%{http_code}' "$ps_url/healthz")"
for page in finish cluster; do
  is "POST /$page without the token is refused" 401 "$(curl -sS -m 5 -X POST -o /dev/null -w '%{http_code}' "$ps_url/$page")"
  is "so is the digest of the token for it" 401 "$(curl -sS -m 5 -X POST -o /dev/null -w '%{http_code}' \
    -H "Authorization: Bearer $(field pod/guarded-ps-0 '{.spec.containers[0].env[?(@.name=="MUSTER_TOKEN_SHA256")].value}')" "$ps_url/$page")"
done
from=$(field dtj/guarded '{.status.progress.step}')
eventually 30 'the job trains on' past_step guarded $((${from:-0} + 50))
# a user with the port-forward permission can end the training, which is reported with its true step
k -n "$ns" port-forward pod/other-worker-0 18079:8079 >build/port-forward.log 2>&1 &
forward=$!
finished() { [ "$(curl -sS -m 5 -X POST -o /dev/null -w '%{http_code}' http://127.0.0.1:18079/finish 2>/dev/null)" = 202 ]; }
eventually 20 'POST /finish from within the pod is accepted' finished
eventually 60 'the job has Succeeded' phase_is other Succeeded
kill "$forward"
is 'and says why' FinishRequested "$(field dtj/other '{.status.progress.reason}')"
other_step=$(field dtj/other '{.status.progress.step}')
[ "${other_step:-0}" -gt 0 ] && [ "$other_step" -lt 100000000 ] && ok "with its true step, $other_step" || bad "its step is '$other_step'"
k -n "$ns" delete dtj other --wait=false >/dev/null
