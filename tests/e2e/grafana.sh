# SPDX-License-Identifier: Apache-2.0
# Grafana's server from its Go module, for 60-observe.sh: it provisions a dashboard and answers its queries as for a
# browser.  Its web pages are not built, since that needs yarn and a long time.  Sourced by that scenario.

# June 2023, before 10.1: the newest version in Go's module proxy
grafana_pin=v1.9.2-0.20230609164553-81d85ce8028d
grafana_home=$K8S_DIR/grafana
grafana=$grafana_home/bin/grafana

# Builds Grafana once, with E2E_GRAFANA=1: takes minutes of CPU time and 3 GB of Go's caches.
make_grafana() {
  local from
  [ ! -x "$grafana" ] || return 0
  [ -n "${E2E_GRAFANA:-}" ] || return 1
  from=$(timeout 300 go mod download -json "github.com/grafana/grafana@$grafana_pin" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])') || return 1
  rm -rf "$grafana_home"
  cp -r "$from" "$grafana_home" && chmod -R u+w "$grafana_home" || return 1
  (
    cd "$grafana_home" || exit 1
    export GOFLAGS='-mod=mod -buildvcs=false'
    # wire generates the code that connects the components; some of them use internals of Go's packages
    GOBIN=$grafana_home/bin timeout 300 go install github.com/google/wire/cmd/wire@v0.7.0 &&
      timeout 300 bin/wire gen -tags oss ./pkg/server &&
      timeout 2000 go build -tags oss -ldflags '-s -w -checklinkname=0' -o bin/grafana ./pkg/cmd/grafana
  ) >"$K8S_DIR/log/build-grafana.log" 2>&1
}

# serve_grafana FOLDER PROMETHEUS: runs it in the background at $grafana_at, with FOLDER/dashboards and that data source
serve_grafana() {
  local folder=$1
  grafana_at=127.0.0.1:${E2E_GRAFANA_PORT:-19300}
  mkdir -p "$folder"/{data,log,dashboards} "$folder"/provisioning/{dashboards,datasources,plugins,notifiers,alerting}
  cat >"$folder/provisioning/dashboards/muster.yaml" <<END
{apiVersion: 1, providers: [{name: muster, type: file, options: {path: $folder/dashboards}}]}
END
  cat >"$folder/provisioning/datasources/muster.yaml" <<END
{apiVersion: 1, datasources: [{name: Prometheus, uid: here, type: prometheus, access: proxy, url: "http://$2"}]}
END
  env GF_PATHS_DATA="$folder/data" GF_PATHS_LOGS="$folder/log" GF_PATHS_PROVISIONING="$folder/provisioning" \
    GF_SERVER_HTTP_ADDR="${grafana_at%:*}" GF_SERVER_HTTP_PORT="${grafana_at#*:}" \
    GF_ANALYTICS_REPORTING_ENABLED=false GF_ANALYTICS_CHECK_FOR_UPDATES=false GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES=false \
    GF_AUTH_ANONYMOUS_ENABLED=true GF_AUTH_ANONYMOUS_ORG_ROLE=Viewer \
    "$grafana" server --homepath "$grafana_home" >"$folder/log/out" 2>&1 </dev/null &
  grafana_pid=$!
}
