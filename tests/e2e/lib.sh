# SPDX-License-Identifier: Apache-2.0
# Functions of the scenarios.  Sourced by run.sh.

passed=0 failed=0
now() { echo "${EPOCHREALTIME/./}"; } # microseconds
since() { # START: seconds with one decimal
  local us=$(($(now) - $1))
  printf '%d.%d' $((us / 1000000)) $((us / 100000 % 10))
}
ok() {
  passed=$((passed + 1))
  printf '  ok       %s\n' "$*"
}
bad() {
  failed=$((failed + 1))
  printf '  FAILED   %s\n' "$*"
}
note() { printf '           %s\n' "$*"; }

# kubectl with a time-out, so that a hanging server ends one call and not the test
k() { timeout 20 kubectl --request-timeout=15s "$@"; }
field() { k -n "$ns" get "$1" -o "jsonpath=$2" 2>/dev/null; } # OBJECT JSONPATH

# eventually SECONDS WORDS COMMAND...: waits until the command succeeds, and reports the duration
eventually() {
  local limit=$1 words=$2 start
  shift 2
  start=$(now)
  until "$@" >/dev/null 2>&1; do
    if [ $(($(now) - start)) -gt $((limit * 1000000)) ]; then
      bad "$words: not within $limit s"
      return 1
    fi
    sleep 0.2
  done
  ok "$words: $(since "$start") s"
}

# check WORDS COMMAND...: the command succeeds now
check() {
  local words=$1
  shift
  if "$@" >/dev/null 2>&1; then ok "$words"; else bad "$words"; fi
}
is() { # WORDS WANTED GOT
  if [ "$2" = "$3" ]; then ok "$1"; else bad "$1: wanted '$2', got '$3'"; fi
}
says() { # WORDS TEXT PATTERN
  if grep -qiE -- "$3" <<<"$2"; then ok "$1"; else bad "$1: '$3' is not in: $(tail -c 400 <<<"${2:-nothing}")"; fi
}

# claim NAME: a volume for a job; on our own cluster a new empty folder of the node
claim() {
  if [ -n "$own" ]; then
    rm -rf "${volume:?}/$1"
    install -d -m 777 "$volume/$1"
    sed "s#VOLUME#$volume#; s#NAMESPACE#$ns#; s#NAME#$1#g" "$here/manifests/volume.yaml" | k apply -f - >/dev/null
  fi
  sed "s#name: digits#name: $1#" deploy/samples/claim.yaml | k -n "$ns" apply -f - >/dev/null
}
# submit NAME: applies the job of manifests/NAME.yaml with the images of this run
submit() {
  sed "s#IMAGE_TASK_TF#$IMAGE_TASK_TF#; s#IMAGE_C#$IMAGE_C#" "$here/manifests/$1.yaml" | k -n "$ns" apply -f - >/dev/null ||
    bad "$1 is accepted"
}
remove() { # JOB...: deletes the jobs and waits until no pod is left
  k -n "$ns" delete dtj "$@" --timeout=20s >/dev/null
  local j
  for j in "$@"; do eventually 45 "$j is deleted and leaves no pod" none pods -l "muster.dev/job=$j"; done
}
log_of() { k -n "$ns" logs "$1" 2>&1; }
ended_well() { phase_is "$1" Succeeded; }

phase_is() { [ "$(field "dtj/$1" '{.status.phase}')" = "$2" ]; } # JOB PHASE
task_pid() { # POD: prints the pid of the first process of its container, on our own node
  local id
  id=$(field "pod/$1" '{.status.containerStatuses[0].containerID}')
  ctr task ls | awk -v id="${id#containerd://}" '$1 == id {print $2}'
}
pod_phase() { field "pod/$1" '{.status.phase}'; }
running() { # POD...
  local p
  for p in "$@"; do [ "$(pod_phase "$p")" = Running ] || return 1; done
}
gone() { ! k -n "$ns" get "$1" --no-headers >/dev/null 2>&1; } # OBJECT
none() { [ -z "$(k -n "$ns" get "$@" -o name 2>&1)" ]; }       # KIND [-l SELECTOR]
has_condition() { # JOB TYPE PATTERN: the condition is True and its message matches
  grep -qiE -- "$3" <<<"$(field "dtj/$1" "{.status.conditions[?(@.type==\"$2\")].status} {.status.conditions[?(@.type==\"$2\")].message}")"
}
past_step() { # JOB STEP
  local step
  step=$(field "dtj/$1" '{.status.progress.step}')
  [ "${step:-0}" -ge "$2" ]
}

# prints status, logs and events after a failure
autopsy() {
  echo "  ---- the job, its pods and the operator's last words"
  k -n "$ns" get dtj,pods,svc -o wide 2>&1 | sed 's/^/    /'
  k -n "$ns" get dtj -o jsonpath='{range .items[*]}{.metadata.name}: {.status}{"\n"}{end}' 2>&1 | cut -c1-1500 | sed 's/^/    /'
  k -n "$ns" get pods -o name 2>/dev/null | head -8 | while read -r p; do
    echo "    -- $p"
    k -n "$ns" logs "$p" --tail=12 2>&1 | cut -c1-300 | sed 's/^/    /'
  done
  k -n "$ns" get events --sort-by=.lastTimestamp 2>&1 | tail -12 | cut -c1-220 | sed 's/^/    /'
  k -n "$system" logs deploy/muster-operator --tail=25 2>&1 | cut -c1-300 | sed 's/^/    /'
}
