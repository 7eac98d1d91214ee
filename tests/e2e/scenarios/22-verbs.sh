# SPDX-License-Identifier: Apache-2.0
# muster submit, wait and logs, as a user runs them.
verb() { KUBECONFIG=$KUBECONFIG timeout 150 "$(dirname "${MUSTER:-build/bin/muster}")/muster" "$@" -n "$ns" 2>&1; }
manifest=$(mktemp --suffix=.yaml)
sed 's/name: long/name: verbs/; s/steps: 100000000/steps: 100000/' "$here/manifests/long.yaml" >"$manifest"

says 'submit creates a job' "$(verb submit "$manifest")" "job 'verbs' is created in namespace '$ns'"
following=$(mktemp)
verb logs verbs -f worker/0 >"$following" &
follower=$!
said=$(verb wait "$manifest" --timeout 120s)
is 'wait ends with 0 when the job has succeeded' 0 $?
says '  and prints the progress' "$said" 'verbs  step [0-9]+/100000 .*steps/s .*loss .*ps 1/1  worker [12]/2'
says '  and the outcome' "$said" 'verbs: succeeded in .* s, step 10[0-9]{4}'
says 'submit says that a job has ended' "$(verb submit "$manifest")" "unchanged.*|It has succeeded already"
wait "$follower"
is 'logs -f ends with the job' 0 $?
says '  and has the last line of the task' "$(cat "$following")" '^final step=10[0-9]{4}'
is '  and each of its lines once' '' "$(grep '^progress' "$following" | sort | uniq -d)"
says 'logs of several tasks name them' "$(verb logs verbs --tail 1)" '^worker/0 \| '
says 'logs name a task that is not there' "$(verb logs verbs worker/7)" "has no worker/7: its last is worker/1"
k -n "$ns" scale dtj/verbs --replicas=1 >/dev/null
says 'a field of another manager is a conflict' "$(verb submit "$manifest")" 'conflict.*--force-conflicts'
says '  that --force-conflicts takes over' "$(verb submit --force-conflicts "$manifest")" "job 'verbs' is changed"

sed "s/name: verbs/name: refused/; s#examples/data/digits.csv.gz#/there/is/none.csv#" "$manifest" >"$manifest.2.yaml"
verb submit "$manifest.2.yaml" >/dev/null
said=$(verb wait refused --timeout 60s)
is 'wait ends with 1 when the job has failed' 1 $?
says '  and says why' "$said" 'refused: failed: .*exit code'
says 'the log has the reason' "$(verb logs refused)" '/there/is/none.csv'
verb wait there-is-none >/dev/null
is 'wait for a job that is not there ends with 3' 3 $?
says 'submit refuses what validate refuses' "$(sed 's/replicas: 2/replicas: -1/' "$manifest" >"$manifest.2.yaml" && verb submit "$manifest.2.yaml")" \
  'spec.tasks.worker.replicas'
rm -f "$manifest" "$manifest.2.yaml" "$following"
remove verbs refused
