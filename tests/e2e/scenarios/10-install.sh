# SPDX-License-Identifier: Apache-2.0
# helm install; the operator is ready and leads.
lease_held() { [ -n "$(k -n "$system" get lease muster-operator -o 'jsonpath={.spec.holderIdentity}')" ]; }
operator_ready() { [ "$(k -n "$system" get deployment muster-operator -o 'jsonpath={.status.readyReplicas}')" = 1 ]; }

leftovers() { # lists the objects that an installation could leave behind
  {
    k get crd,clusterrole,clusterrolebinding,priorityclass -o name | grep -i muster
    k get deployment,replicaset,pod,service,serviceaccount,role,rolebinding,lease,configmap,secret,networkpolicy,poddisruptionbudget \
      -A -o 'jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}{"\n"}{end}' | grep -i muster |
      grep -vE '/(default|kube-root-ca.crt)$'
  } | sort
}
left_before=$(leftovers)

install_operator() {
  timeout 90 helm upgrade --install muster charts/muster -n "$system" --create-namespace --wait --timeout 60s \
    --reset-values --set crds.keep=false ${own:+--set certificateSeconds=300} "${helm_args[@]}" >build/helm.log 2>&1
}
start=$(now)
if install_operator; then
  ok "helm install --wait: $(since "$start") s"
else
  sed 's/^/    /' build/helm.log | tail -5
  bad 'helm install --wait'
fi
eventually 30 'the operator is ready' operator_ready
eventually 30 'the operator holds the lease' lease_held
check 'the resource is known' k get dtj -A

k create namespace "$ns" --dry-run=client -o yaml | k apply -f - >/dev/null
k label namespace "$ns" pod-security.kubernetes.io/enforce=restricted >/dev/null
# on a busy machine, pods without CPU requests get little CPU time
k -n "$ns" apply -f - >/dev/null <<END
{apiVersion: v1, kind: LimitRange, metadata: {name: requests}, spec: {limits: [{type: Container, defaultRequest: {cpu: 200m}}]}}
END
claim digits
