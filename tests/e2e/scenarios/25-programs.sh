# SPDX-License-Identifier: Apache-2.0
# Other kinds of jobs: a user's trainer in Python or C, a converted TFJob, synchronous training, with an evaluator,
# with a TensorBoard, with a single step; suspension and resumption, and deletion after the TTL.
over() { k -n "$ns" delete dtj "$@" --wait=false >/dev/null; }

if [ -n "$IMAGE_TASK_TF" ]; then
  start=$(now)
  claim python
  submit python
  if [ -n "$own" ]; then
    by_loopback() { # a connection from 127.0.0.1 to 127.0.0.1, over IPv4 or IPv6 sockets
      cat "/proc/$(task_pid python-worker-0)/net/tcp" "/proc/$(task_pid python-worker-0)/net/tcp6" |
        awk '$4 == "01" && $2 ~ /0100007F:/ && $3 ~ /0100007F:/ {yes = 1} END {exit !yes}'
    }
    eventually 100 'a Python program whose tasks speak TLS meets its own server by the loopback' by_loopback
  fi
  eventually 150 'a Python trainer (replica_device_setter, hooks, MonitoredTrainingSession) has Succeeded' ended_well python
  # a worker that reads the global step before its own increment runs one more step
  says 'its chief ended at the target' "$(log_of python-worker-0)" 'global step (299|30[0-3]), loss'
  [ -z "$own" ] || check 'and TensorFlow saved that step to the volume' compgen -G "$volume/python/model.ckpt-30[0-3].index"
  over python

  start=$(now)
  "${MUSTER:-build/bin/muster}" convert "$here/manifests/tfjob.yaml" | sed "s#IMAGE_TASK_TF#$IMAGE_TASK_TF#" >build/converted.yaml
  check 'a converted TFJob is accepted' k -n "$ns" apply -f build/converted.yaml
  eventually 150 'it has Succeeded' ended_well tf-job
  says 'its program found itself in TF_CONFIG' "$(log_of tf-job-worker-0)" 'worker 0 of 2'
  over tf-job
else
  note 'no image of task-tf: the Python trainer and the TFJob are left out'
fi

if [ -n "$IMAGE_C" ]; then
  # examples/softmax.c in its own pod, with the task servers of a job without a program
  submit c-program
  program_done() { [ "$(pod_phase c-program)" = Succeeded ]; }
  eventually 90 'a C program that trains on the servers of a job ends well' program_done
  says 'it made its steps' "$(log_of c-program)" 'step=3000'
  over c-program
  k -n "$ns" delete pod c-program --wait=false >/dev/null
fi

submit sync
eventually 60 'a synchronous job with a backup worker has Succeeded' ended_well sync
is 'each aggregation is one step' 400 "$(field dtj/sync '{.status.progress.step}')"
over sync

claim evaluator
submit evaluator
eventually 90 'a job with an evaluator has Succeeded' ended_well evaluator
says 'the evaluator scored checkpoints' "$(log_of evaluator-evaluator-0)" 'accuracy'
if [ -n "$IMAGE_TASK_TF" ]; then
  board() { curl -fsS -m 5 "http://$(k -n "$ns" get service evaluator-tensorboard -o 'jsonpath={.spec.clusterIP}')/$1"; }
  if [ -n "$own" ]; then # addresses of services are only reachable from the node
    has_scalars() { grep -q loss <<<"$(board data/plugin/scalars/tags)"; }
    eventually 90 'its TensorBoard shows the loss, at its service' has_scalars
  fi
  is 'it stays when the job is over' Running "$(pod_phase evaluator-tensorboard-0)"
fi
over evaluator

claim suspended
submit suspended
eventually 20 'a job that is suspended from the start has no pod' has_condition suspended Suspended True
is 'none at all' '' "$(k -n "$ns" get pods -l muster.dev/job=suspended -o name)"
suspend() { k -n "$ns" patch dtj/suspended --type=merge -p "{\"spec\":{\"run\":{\"suspend\":$1}}}" >/dev/null; }
suspend false
eventually 60 'resumed, it trains' past_step suspended 100
suspend true
eventually 60 'suspended again, its pods are gone' none pods -l muster.dev/job=suspended
at=$(field dtj/suspended '{.status.progress.step}')
suspend false
eventually 60 "resumed again, it goes on from its checkpoint (step $at)" past_step suspended "$((at + 1))"
says 'not from the beginning' "$(log_of suspended-worker-0)" 'restoring .*model.ckpt-[1-9]'
over suspended

sed 's/name: ttl/name: short/; s/steps: 200/steps: 1/; /ttlSecondsAfterFinished/d' "$here/manifests/ttl.yaml" | k -n "$ns" apply -f - >/dev/null
eventually 60 'a job of one step, over before anybody could ask it, has Succeeded' ended_well short
says 'kubectl get dtj has its step, its percentage and its loss' "$(k -n "$ns" get dtj short --no-headers)" 'Succeeded .* 1 +100% +[0-9]+\.[0-9]'
over short

submit ttl
eventually 60 'a job with ttlSecondsAfterFinished: 3 has Succeeded' ended_well ttl
eventually 15 'and is deleted with its pods' gone dtj/ttl
eventually 60 'no pod of these jobs is left' none pods -l app.kubernetes.io/managed-by=muster-operator
