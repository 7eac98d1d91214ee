# SPDX-License-Identifier: Apache-2.0
# Sourced by run.sh: the output of the chart for different values.

rendered() { helm template release charts/muster --namespace somewhere "$@"; }
kinds() { rendered "$@" | sed -n 's/^kind: //p' | sort | uniq -c | awk '{printf "%s%s*%s", (NR > 1 ? " " : ""), $2, $1}'; }
expect_rejected() { # MESSAGE ARGUMENT...
  local want=$1 said
  shift
  if said=$(rendered "$@" 2>&1); then
    echo "accepted: $*"
    return 1
  fi
  case $said in *"$want"*) ;; *) echo "for $* expected '$want', got: $said"; return 1 ;; esac
}

test_the_chart_renders_its_values() {
  command -v helm >/dev/null || tests/k8s/up build helm
  helm lint --strict charts/muster >/dev/null
  deploy/generate --check
  # namespaced mode: a Role in each namespace and nothing cluster-wide
  case $(kinds --set 'watchNamespaces={a,b}' --set crds.enabled=false) in
  *Cluster*) echo 'cluster-wide rights in namespaced mode'; return 1 ;;
  *'Role*3 RoleBinding*3'*) ;;
  *) kinds --set 'watchNamespaces={a,b}' --set crds.enabled=false; return 1 ;;
  esac
  [ "$(rendered --set 'watchNamespaces={a,b}' | grep -c -e '--namespace=[ab]$')" = 2 ]
  # with rbac.nodes: one ClusterRole for nodes only
  rendered --set 'watchNamespaces={a}' --set rbac.nodes=true -s templates/rbac.yaml | python3 -c '
import re, sys
roles = [d for d in sys.stdin.read().split("---") if "\nkind: ClusterRole\n" in d]
assert len(roles) == 1 and re.findall(r"resources: (.*)", roles[0]) == ["[nodes]"], roles'
  # secrets can be written and not read; no pods/exec, and no rule for all resources
  [ "$(rendered -s templates/rbac.yaml | grep -A1 secrets | sort -u)" = $'  resources: [secrets]\n  verbs: [create, patch]' ]
  if rendered -s templates/rbac.yaml | grep -E "pods/exec|'\*'|escalate|impersonate"; then return 1; fi
  rendered --set podDisruptionBudget.enabled=true,podDisruptionBudget.minAvailable=2 | grep -A12 'kind: PodDisruptionBudget' |
    grep -q 'minAvailable: 2'
  # a ServiceMonitor selects the metrics Service and an existing port
  rendered --set metrics.serviceMonitor.enabled=true,metrics.serviceMonitor.interval=7s,metrics.serviceMonitor.labels.team=x \
    -s templates/metrics.yaml | python3 -c '
import re, sys
docs = {re.search(r"\nkind: (\w+)", d)[1]: d for d in sys.stdin.read().split("---") if "kind:" in d}
monitor, service = docs["ServiceMonitor"], docs["Service"]
assert "{port: metrics, interval: 7s}" in monitor and "team: x" in monitor, monitor
assert "name: metrics, port: 8080" in service
chosen = re.search(r"matchLabels:((?:\n +\S+: \S+)+)", monitor)[1].split("\n")[1:]
assert chosen and all(line.strip() in service for line in chosen), chosen'
  [ "$(kinds --set metrics.service.enabled=false,crds.enabled=false,leaderElection.enabled=false,rbac.create=false)" = \
    'Deployment*1 Secret*1 ServiceAccount*1' ]
  [ "$(rendered --set 'networkPolicy.statusFrom={a,b}' | grep -c -e '--status-from=a,b$')" = 1 ]
  # the key of the job tokens is long and random, and is mounted instead of read through the API
  [ "$(rendered -s templates/token-key.yaml | sed -n 's/^  key: //p' | base64 -d | wc -c)" = 64 ]
  [ "$(rendered -s templates/token-key.yaml)" != "$(rendered -s templates/token-key.yaml)" ]
  [ "$(kinds --set tokenKey.create=false,metrics.service.enabled=false,crds.enabled=false,leaderElection.enabled=false,rbac.create=false)" = \
    'Deployment*1 ServiceAccount*1' ]
  rendered -s templates/deployment.yaml | grep -q 'secretName: muster-operator-key, optional: true'
  rendered -s templates/token-key.yaml | grep -q 'helm.sh/resource-policy: keep'
  if rendered --set crds.keep=false -s templates/token-key.yaml | grep 'resource-policy'; then return 1; fi
  rendered --set leaderElection.enabled=false -s templates/deployment.yaml | grep -q 'strategy: {type: Recreate}'
  if rendered -s templates/deployment.yaml | grep 'Recreate'; then return 1; fi
  rendered --set metrics.dashboard.enabled=true -s templates/dashboard.yaml | grep -q 'grafana_dashboard: "1"'
  # the requirements of a namespace with the restricted standard
  kubectl create namespace somewhere --dry-run=client -o yaml | kubectl apply -f - >/dev/null 2>&1
  kubectl label --overwrite namespace somewhere pod-security.kubernetes.io/warn=restricted >/dev/null
  if rendered --set crds.enabled=false | kubectl apply --dry-run=server -f - 2>&1 | grep -i 'would violate'; then return 1; fi
  # the notes describe the next steps for these values
  helm install --dry-run=client release charts/muster --namespace somewhere --set 'watchNamespaces={a,b}' \
    --set crds.enabled=false >"$K8S_DIR/notes"
  grep -q 'for a, b\.' "$K8S_DIR/notes"
  grep -q 'apply deploy/crd.yaml yourself' "$K8S_DIR/notes"
  expect_rejected 'replicas' --set replicas=-1
  expect_rejected 'replicas' --set replicas=many
  expect_rejected 'workers' --set workers=0
  expect_rejected 'port' --set metrics.port=80
  expect_rejected 'leaderElection.enabled' --set replicas=2,leaderElection.enabled=false
  expect_rejected 'metrics.service.enabled' --set metrics.serviceMonitor.enabled=true,metrics.service.enabled=false
  expect_rejected 'pullPolicy' --set taskImage.pullPolicy=Always
  expect_rejected 'level' --set logging.level=loud
  expect_rejected 'pullPolicy' --set image.pullPolicy=Sometimes
  expect_rejected 'unknownValue' --set unknownValue=1
  expect_rejected 'nodes' --set rbac.nodes=perhaps
  expect_rejected 'statusFrom' --set 'networkPolicy.statusFrom={A_b}'
  expect_rejected 'watchNamespaces' --set 'watchNamespaces={a,a}'
}
