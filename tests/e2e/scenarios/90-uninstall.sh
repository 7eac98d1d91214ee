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
k delete namespace "$system" --wait=false >/dev/null
