# SPDX-License-Identifier: Apache-2.0
# Faults on a node while jobs train.  Every job has a target and must end Succeeded with exactly that number of steps.
# Each fault reports how long the step did not increase.
step_of() { field "dtj/$1" '{.status.progress.step}'; }
uid_of() { field "pod/$1" '{.metadata.uid}'; }
replaced() { # POD UID: another pod of that name runs
  local u
  u=$(uid_of "$1")
  [ -n "$u" ] && [ "$u" != "$2" ] && running "$1"
}
operator_uid() { k -n "$system" get pods -l app.kubernetes.io/name=muster -o 'jsonpath={.items[0].metadata.uid}'; }
# fault WORDS POD COMMAND...: another pod of that name runs, if there is one ('-': none), and the step increases
fault() {
  local words=$1 pod=$2 uid from hurt
  shift 2
  uid=$([ "$pod" = - ] || uid_of "$pod")
  hurt=$(now)
  "$@" >/dev/null 2>&1 || bad "$words: it could not be done"
  [ "$pod" = - ] || eventually 60 "$words: its pod is made again" replaced "$pod" "$uid"
  from=$(step_of faulty)
  eventually 90 "$words: the step moves on" past_step faulty $((${from:-0} + 20))
  note "from the fault to new steps: $(since "$hurt") s; the job is $(field dtj/faulty '{.status.phase}'), $(field dtj/faulty '{.status.restarts}') failures counted"
}
# The step in status is some seconds old, so the test reads it from the ps, which holds global_step.
ps_step() { curl -s -m 1 "http://$(field pod/faulty-ps-0 '{.status.podIP}'):8079/status" | grep -oE '"step":[0-9]+' | head -1 | cut -d: -f2; }
names_ps() { grep -q 'ps/0' <<<"$(field dtj/faulty '{.status.conditions[*].message} {.status.summary.message}')"; }
# ps_fault WORDS COMMAND...: the step increases within 5 s of the ps pod's return, and status names the ps meanwhile
ps_fault() {
  local words=$1 uid back first step ms watcher named=build/ps-is-named
  shift
  uid=$(uid_of faulty-ps-0)
  rm -f "$named"
  { until names_ps; do sleep 0.1; done; touch "$named"; } &
  watcher=$!
  "$@" >/dev/null 2>&1 || bad "$words: it could not be done"
  eventually 60 "$words: its pod is made again" replaced faulty-ps-0 "$uid"
  back=$(now) first=
  while [ $(($(now) - back)) -lt 60000000 ]; do
    step=$(ps_step)
    [ -n "$first" ] || first=$step
    [ "${step:-0}" -le "${first:-0}" ] || break
    sleep 0.1
  done
  ms=$((($(now) - back) / 1000))
  if [ "$ms" -le 5000 ]; then ok "$words: new steps $ms ms after its pod runs"; else bad "$words: new steps $ms ms after its pod runs, not within 5 s"; fi
  kill "$watcher" 2>/dev/null
  check "$words: the status named the ps" test -e "$named"
}
kill_pod() { k -n "$ns" delete pod "$1" --wait=false --grace-period="${2:-30}"; }
kill_inside() { # POD: sends SIGKILL to its program, as the kernel's OOM killer would
  local id
  id=$(field "pod/$1" '{.status.containerStatuses[0].containerID}')
  ctr task kill -s SIGKILL "${id#containerd://}"
}

claim faulty
submit faulty
eventually 60 'a job trains' past_step faulty 50 || return # the rest depends on it
ps_uid=$(uid_of faulty-ps-0)
chief=$(uid_of faulty-worker-0)
fault 'a worker pod deleted' faulty-worker-1 kill_pod faulty-worker-1
[ -z "$own" ] || fault 'kill -9 in a worker' faulty-worker-1 kill_inside faulty-worker-1
is 'the chief stayed' "$chief" "$(uid_of faulty-worker-0)"
fault 'the chief deleted' faulty-worker-0 kill_pod faulty-worker-0
[ -z "$own" ] || fault 'kill -9 in the chief' faulty-worker-0 kill_inside faulty-worker-0
is 'the ps stayed all the time' "$ps_uid" "$(uid_of faulty-ps-0)"
ps_fault 'a ps pod deleted' kill_pod faulty-ps-0
[ -z "$own" ] || ps_fault 'kill -9 in a ps' kill_inside faulty-ps-0
uids() { k -n "$ns" get pods -l muster.dev/job=faulty -o 'jsonpath={range .items[*]}{.metadata.uid} {end}'; }
eventually 60 'all tasks are back' running faulty-ps-0 faulty-worker-0 faulty-worker-1
before=$(uids)
fault 'the operator deleted' - k -n "$system" delete pod -l app.kubernetes.io/name=muster-operator --wait=false
is 'that touched no task' "$before" "$(uids)"

if [ -n "$own" ]; then
  # kills a process of the cluster and starts it again with the same command
  restart() {
    local pid
    read -r pid _ <"$K8S_DIR/run/$1.pid"
    kill -9 "$pid"
    timeout 100 tests/k8s/up node
  }
  for p in kubelet kube-apiserver etcd; do
    before=$(uids)
    fault "$p killed and started again" - restart $p
    is 'that touched no task' "$before" "$(uids)"
  done
  node=$(k get nodes -o 'jsonpath={.items[0].metadata.name}')
  taint_briefly() {
    k taint node "$1" muster.dev/test=away:NoExecute
    eventually 45 'its pods are evicted' none pods -l muster.dev/job=faulty --field-selector=status.phase=Running
    k taint node "$1" muster.dev/test-
  }
  check 'the node is drained' k drain "$node" --ignore-daemonsets --delete-emptydir-data --force --timeout=40s \
    --pod-selector=muster.dev/job=faulty
  eventually 30 'the job says that it has no place' has_condition faulty Ready 'no node has room'
  fault 'the node takes pods again' - k uncordon "$node"
  fault 'the node tainted with NoExecute for a moment' - taint_briefly "$node"
fi

eventually 480 'with all that the job has Succeeded' ended_well faulty
# both workers may be in a step when the target is reached, so the second runs one more, as in TensorFlow
target=$(field dtj/faulty '{.spec.program.train.steps}')
says 'with exactly the steps it was to make' "$(step_of faulty)" "^($target|$((target + 1)))$"
if [ -n "$own" ]; then
  note "$(log_of faulty-worker-0 | tail -2 | cut -c1-200)"
  last_kept() { compgen -G "$volume/faulty/model.ckpt-$target*.index" || compgen -G "$volume/faulty/model.ckpt-$((target + 1))*.index"; }
  check 'and the checkpoint of the last step on its volume' last_kept
fi
remove faulty
