# SPDX-License-Identifier: Apache-2.0
# What cannot work says so: at the door, or within seconds as a sentence in the job.
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

image_sentence() {
  field dtj/unpullable '{range .status.conditions[*]}{.reason}: {.message}{"\n"}{end}' | grep -qiE 'image'
}
sed 's/name: long/name: unpullable/; s#worker: {replicas: 2}#worker: {replicas: 1, template: {spec: {containers: [{name: muster, image: "localhost/there-is-none:dev"}]}}}#' \
  "$here/manifests/long.yaml" | k -n "$ns" apply -f - >/dev/null 2>&1
eventually 5 'the ps of a job with a wrong image starts' k -n "$ns" get pod unpullable-ps-0
worker_there() { k -n "$ns" get pod unpullable-worker-0; }
eventually 20 'its worker is made' worker_there
eventually 10 'an image that does not exist is a condition' image_sentence
note "$(field dtj/unpullable '{range .status.conditions[*]}{.reason}: {.message}{"\n"}{end}' | grep -i image | head -1)"
says 'kubectl describe tells it' "$(k -n "$ns" describe dtj unpullable 2>&1)" 'there-is-none'
k -n "$ns" delete dtj unpullable --timeout=20s >/dev/null
eventually 45 'it can be deleted' none pods -l muster.dev/job=unpullable
