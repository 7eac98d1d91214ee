# SPDX-License-Identifier: Apache-2.0
# A real Prometheus scrapes the tasks and the operator while a job trains, and answers every query of the Grafana dashboard.  It runs on the node itself, where pods can be reached.
[ -n "$own" ] || { note 'left out on a cluster that is not ours'; return; }
prometheus=$K8S_DIR/prometheus/usr/bin/prometheus
fetch_prometheus() { # Debian's package, unpacked and not installed: no service is to start
  [ ! -x "$prometheus" ] || return 0
  mkdir -p "$K8S_DIR/prometheus" && (cd "$K8S_DIR/prometheus" && { timeout 90 apt-get download prometheus ||
    { timeout 120 apt-get update && timeout 90 apt-get download prometheus; }; } && dpkg-deb -x prometheus_*.deb .) >/dev/null 2>&1
}
if ! fetch_prometheus; then
  bad "Debian's package prometheus cannot be fetched"
  return
fi
at=127.0.0.1:${E2E_PROMETHEUS_PORT:-19090} data=$(mktemp -d)
cp "$here/manifests/prometheus.yml" "$data/"
targets() { # NAMESPACE SELECTOR PORT: as Prometheus reads them
  k -n "$1" get pods -l "$2" -o "jsonpath={range .items[*]}{'{\"targets\":[\"'}{.status.podIP}{':$3\"],\"labels\":{\"namespace\":\"'}{.metadata.namespace}{'\",\"pod\":\"'}{.metadata.name}{'\"}}\n'}{end}"
}
(
  cd "$data" && exec "$prometheus" --config.file=prometheus.yml --storage.tsdb.path=tsdb --web.listen-address="$at" \
    --log.level=warn >log 2>&1 </dev/null
) &
prometheus_pid=$!
ask() { curl -fsS -m 5 -G "http://$at/api/v1/query" --data-urlencode "query=$1"; }
answered() { grep -q '"result":\[{' <<<"$(ask "$1")"; }

submit long
eventually 60 'a job trains' past_step long 100
{ targets "$ns" muster.dev/job=long 8079 && targets "$system" app.kubernetes.io/name=muster-operator 8080; } |
  paste -sd, | sed 's/.*/[&]/' >"$data/targets.json.new" && mv "$data/targets.json.new" "$data/targets.json"
eventually 30 'Prometheus sees the global step' answered 'max(muster_global_step{pod=~"long-.*"}) > 100'
eventually 30 'and its chief' answered 'up{pod="long-worker-0"} == 1'
eventually 30 'and its ps' answered 'up{pod="long-ps-0"} == 1'
eventually 30 'and the operator' answered "leader_election_master_status{namespace=\"$system\"} == 1"
dashboard=charts/muster/dashboards/muster.json
check 'the dashboard has queries' grep -q '"expr"' "$dashboard"
while read -r query; do
  eventually 45 "the dashboard's query is answered: $query" answered "$query" || note "$(ask "$query" 2>&1 | cut -c1-200)"
done < <(python3 -c '
import json, sys
def walk(o):
    for v in o.values() if isinstance(o, dict) else o if isinstance(o, list) else []:
        walk(v)
    if isinstance(o, dict) and "expr" in o:
        print(o["expr"])
walk(json.load(open(sys.argv[1])))' "$dashboard")
note "steps/s by Prometheus: $(ask 'sum(rate(muster_client_steps_total{pod=~"long-.*"}[30s]))' | grep -o '"value":.*' | cut -c1-60)"
kill "$prometheus_pid" 2>/dev/null
wait "$prometheus_pid" 2>/dev/null
rm -rf "$data"
remove long
