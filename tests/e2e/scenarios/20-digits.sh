# SPDX-License-Identifier: Apache-2.0
# The digits sample: 1 ps and 2 workers train with the built-in trainer and finish.
workers_and_ps_running() { running digits-ps-0 digits-worker-0 digits-worker-1; }
ps_done() { [ "$(pod_phase digits-ps-0)" = Succeeded ] || gone pod/digits-ps-0; }

start=$(now)
check 'kubectl apply is accepted' k -n "$ns" apply -f deploy/samples/digits.yaml
eventually 10 'the service is there' k -n "$ns" get service digits
workers_and_ps_started() { past_step digits 1 || workers_and_ps_running; }
eventually 30 'the ps and both workers run' workers_and_ps_started || return # the rest depends on it
is 'task pods carry no service account token' '' \
  "$(field pod/digits-worker-0 '{.spec.containers[*].volumeMounts[?(@.mountPath=="/var/run/secrets/kubernetes.io/serviceaccount")].name}')"
eventually 40 'a step is made' past_step digits 1
secret=$(field dtj/digits '{.status.security.secret}')
check 'the tasks have certificates' k -n "$ns" get secret "$secret"
is 'and mount them' "$secret" "$(field pod/digits-ps-0 '{.spec.volumes[?(@.name=="muster-tls")].secret.secretName}')"
note "kubectl get dtj: $(k -n "$ns" get dtj digits --no-headers 2>&1 | tr -s ' ')"
eventually 120 'the job has Succeeded' phase_is digits Succeeded
note "from apply to Succeeded: $(since "$start") s"
says 'kubectl get dtj shows the outcome' "$(k -n "$ns" get dtj digits --no-headers)" Succeeded
target=$(field dtj/digits '{.spec.program.train.steps}')
eventually 10 "the progress says that all $target steps were made" past_step digits "${target:-1}"
eventually 15 'the ps has finished by itself' ps_done
for p in worker-0 worker-1; do
  gone "pod/digits-$p" || is "$p ended with exit code 0" 0 \
    "$(field "pod/digits-$p" '{.status.containerStatuses[0].state.terminated.exitCode}')"
done
if [ -n "$own" ]; then
  # the other worker may be in the middle of a step when the training reaches its target
  last_saved() { [ -n "$(find "$volume" -regextype posix-extended -regex ".*/model\.ckpt-($target|$((target + 1)))\.index")" ]; }
  check "the checkpoint of step $target is on the volume" last_saved
fi
start=$(now)
check 'the job can be deleted' k -n "$ns" delete dtj digits --timeout=20s
eventually 40 'its pods are gone' none pods -l muster.dev/job=digits
eventually 20 'its service is gone' gone service/digits
