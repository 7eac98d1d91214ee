# SPDX-License-Identifier: Apache-2.0
# Invalid jobs are reported: the API server rejects them, or a condition of the job has a message within seconds.
says 'a job without tasks is refused' "$(k -n "$ns" apply -f - 2>&1 <<END
{apiVersion: muster.dev/v1, kind: DistributedTrainingJob, metadata: {name: empty}, spec: {program: {}}}
END
)" 'tasks'
says 'a negative number of workers is refused' "$(sed 's/name: long/name: less/; s/worker: {replicas: 2}/worker: {replicas: -1}/' \
  "$here/manifests/long.yaml" | k -n "$ns" apply -f - 2>&1)" 'replicas'
says 'two programs at once are refused' "$(sed 's/name: long/name: two/; s/^  program:/&\n    command: [python, x.py]/' \
  "$here/manifests/long.yaml" | k -n "$ns" apply -f - 2>&1)" 'program|command|train'
says 'a misspelt field is named' "$(sed 's/name: long/name: misspelt/; s/batchSize/batchsise/' "$here/manifests/long.yaml" |
  k -n "$ns" apply --validate=strict -f - 2>&1)" 'batchsise'

# The user sees the message within 10 s: in the job's Ready condition, in kubectl get and describe, and in muster explain.
explain() { KUBECONFIG=$KUBECONFIG timeout 20 "$(dirname "${MUSTER:-build/bin/muster}")/muster" explain -n "$ns" "job/$1" 2>&1; }
told() { # JOB PATTERN
  has_condition "$1" Ready "$2" || has_condition "$1" Failed "$2" || has_condition "$1" PodsRejected "$2"
}
sentence() { # JOB WORDS PATTERN
  eventually 10 "$2" told "$1" "$3"
  says '  and kubectl get says so' "$(k -n "$ns" get dtj "$1" --no-headers 2>&1)" "$3"
  says '  and kubectl describe says so' "$(k -n "$ns" describe dtj "$1" 2>&1)" "$3"
  says '  and muster explain too' "$(explain "$1")" "$3"
  note "$(field "dtj/$1" '{range .status.conditions[*]}{.reason}: {.message}{"\n"}{end}' | grep -iE -m1 "$3")"
}
variant() { # NAME SED...: the long job with an error
  local name=$1
  shift
  sed "s/name: long/name: $name/; $*" "$here/manifests/long.yaml" | k -n "$ns" apply -f - >/dev/null 2>&1 || bad "$name is accepted"
}
sed 's/name: long/name: unpullable/; s#worker: {replicas: 2}#worker: {replicas: 1, template: {spec: {containers: [{name: muster, image: "localhost/there-is-none:dev"}]}}}#' \
  "$here/manifests/long.yaml" | k -n "$ns" apply -f - >/dev/null 2>&1
sentence unpullable 'an image that does not exist is said' 'image localhost/there-is-none:dev cannot be pulled; check its name'
remove unpullable

variant no-volume 's/^  tasks:/  checkpoint: {volumeClaim: there-is-none}\n  tasks:/'
sentence no-volume 'a volume claim that does not exist is said' 'volume claim there-is-none does not exist; create it'
remove no-volume

k -n "$ns" create quota e2e-pods --hard=pods=0 >/dev/null
quota_counts() { [ -n "$(field quota/e2e-pods '{.status.hard.pods}')" ]; }
eventually 10 'a quota of no pods holds' quota_counts
variant over-quota
sentence over-quota 'a quota that is exceeded is said' 'raise the quota .*exceeded quota'
k -n "$ns" delete quota e2e-pods >/dev/null
eventually 60 'once the quota is gone the job runs' past_step over-quota 1
remove over-quota

variant no-data 's#examples/data/digits.csv.gz#/there/is/none.csv#'
start=$(now)
worker_failed() { [[ "$(pod_phase no-data-worker-0) $(pod_phase no-data-worker-1)" == *Failed* ]]; }
eventually 60 'a program has ended at its start' worker_failed
sentence no-data 'a program that ends at its start is said' 'worker/[01] ended with exit code .*kubectl.* logs'
note "from apply: $(since "$start") s"
says 'and there is the reason' "$(log_of no-data-worker-0)$(log_of no-data-worker-1)" '/there/is/none.csv'
remove no-data

if [ -n "$own" ]; then
  variant deaf
  eventually 60 'a job runs' past_step deaf 1
  id=$(field pod/deaf-ps-0 '{.status.containerStatuses[0].containerID}')
  ctr task kill -s SIGSTOP "${id#containerd://}"
  sentence deaf 'a ps that does not answer is said' 'ps/0 .*does not answer at its port; see its log'
  ctr task kill -s SIGCONT "${id#containerd://}"
  from=$(field dtj/deaf '{.status.progress.step}')
  eventually 30 'when it answers again, training goes on' past_step deaf $((from + 20))
  remove deaf
fi
