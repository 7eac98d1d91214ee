# SPDX-License-Identifier: Apache-2.0
# helm uninstall leaves nothing behind.
k delete namespace "$ns" --wait=false >/dev/null
namespace_gone() { ! k get namespace "$1" >/dev/null 2>&1; }
eventually 60 'the namespace of the jobs ends' namespace_gone "$ns"
start=$(now)
[ -z "$own" ] || k delete pv -l muster.dev/test=e2e --wait=false >/dev/null
if timeout 60 helm uninstall muster -n "$system" --wait --timeout 50s >build/helm.log 2>&1; then
  ok "helm uninstall: $(since "$start") s"
else
  sed 's/^/    /' build/helm.log | tail -5
  bad 'helm uninstall'
fi
nothing_left() { [ "$(leftovers | grep -v "persistentvolume")" = "$left_before" ]; }
eventually 30 'nothing is left' nothing_left || leftovers | sed 's/^/    left: /'

# The CRD that a release kept belongs to that release; a release of another name takes it over.
if [ -n "$own" ]; then
  release() { # NAME ARGUMENTS...
    local name=$1
    shift
    timeout 90 helm upgrade --install "$name" charts/muster -n "$system" --create-namespace "${helm_args[@]}" "$@" >build/helm.log 2>&1
  }
  crd=crd/distributedtrainingjobs.muster.dev
  check 'a release keeps the definition' release muster
  helm uninstall muster -n "$system" >/dev/null 2>&1
  check 'uninstall leaves it' k get "$crd"
  refused() { ! release training; }
  check 'a release of another name is refused' refused
  says 'in words that the guide explains' "$(cat build/helm.log)" 'invalid ownership metadata'
  check 'with --take-ownership it is installed' release training --take-ownership
  helm uninstall training -n "$system" >/dev/null 2>&1
  # the guide's procedure for older Helm versions: kubectl annotate
  k annotate -n "$system" "$crd" secret/muster-operator-key --overwrite meta.helm.sh/release-name=third meta.helm.sh/release-namespace="$system" >/dev/null
  check 'with another owner in its annotations too' release third
  helm uninstall third -n "$system" >/dev/null 2>&1
  k delete "$crd" --wait=false >/dev/null
fi
k delete namespace "$system" --wait=false >/dev/null
