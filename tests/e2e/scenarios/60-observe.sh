# SPDX-License-Identifier: Apache-2.0
# A real Prometheus scrapes the tasks and the operator while a job trains, and answers every query of the Grafana
# dashboard; a real Grafana loads it.  They run on the node itself, which can reach the pods.
[ -n "$own" ] || { note 'left out on a cluster that is not ours'; return; }
prometheus=$K8S_DIR/prometheus/usr/bin/prometheus
fetch_prometheus() { # unpacks Debian's package without installing it, so that no service starts
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
targets() { # NAMESPACE SELECTOR PORT: in the format of Prometheus' file_sd
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
# ---- the Grafana dashboard: its schema, its queries in Prometheus, and, if available, Grafana itself ----
board=$data/grafana/dashboards/muster.json
mkdir -p "$data/grafana/dashboards"
# as Grafana's sidecar finds it
timeout 20 helm template muster charts/muster --set metrics.dashboard.enabled=true -s templates/dashboard.yaml |
  k create --dry-run=client -o 'jsonpath={.data.muster\.json}' -f - >"$board"
timeout 300 tests/k8s/up build dashboard >/dev/null 2>&1 || bad 'the program that knows the schema of dashboards was not built'
if queries=$("$K8S_DIR/bin/dashboard" "$board" 2>&1); then
  ok "the dashboard of the chart keeps to Grafana's schema: $(cut -f1 <<<"$queries" | sort -u | wc -l) panels, $(wc -l <<<"$queries") queries"
  while IFS=$'\t' read -r panel query; do
    eventually 45 "'$panel' is answered: $query" answered "$query" || note "$(ask "$query" 2>&1 | cut -c1-200)"
  done <<<"$queries"
else
  bad "the dashboard of the chart keeps to Grafana's schema: $queries"
fi
# shellcheck source=tests/e2e/grafana.sh
. "$here/grafana.sh"
if make_grafana; then
  serve_grafana "$data/grafana" "$at"
  loaded() { curl -fsS -m 5 "http://$grafana_at/api/dashboards/uid/muster"; }
  eventually 120 'a Grafana has loaded the dashboard' loaded
  if shown=$(timeout 120 python3 "$here/programs/grafana.py" "http://$grafana_at" here 2>&1); then ok 'and shows something in every panel'; else bad 'and shows something in every panel'; fi
  while read -r line; do note "$line"; done <<<"$shown"
  kill "$grafana_pid" 2>/dev/null
  wait "$grafana_pid" 2>/dev/null
elif [ -n "${E2E_GRAFANA:-}" ]; then
  bad "Grafana was not made: $(tail -1 "$K8S_DIR/log/build-grafana.log" 2>&1)"
else
  note 'without a Grafana: E2E_GRAFANA=1 makes one, once, in some ten minutes'
fi
note "steps/s by Prometheus: $(ask 'sum(rate(muster_client_steps_total{pod=~"long-.*"}[30s]))' | grep -o '"value":.*' | cut -c1-60)"
kill "$prometheus_pid" 2>/dev/null
wait "$prometheus_pid" 2>/dev/null
rm -rf "$data"
remove long
