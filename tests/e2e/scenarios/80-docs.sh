# SPDX-License-Identifier: Apache-2.0
# Every shell command of docs/guide, as a reader would type it: the ```sh blocks of a page are one script.
guide=(first-job your-program scaling failure gpu-nodes from-tfjob troubleshooting)
blocks() { awk '/^```/ {inside = $0 == "```sh" && !inside; next} inside' "$1"; }
is 'the guide has the pages that are run' "$(printf '%s\n' "${guide[@]}" | sort)" \
  "$(find docs/guide -name '*.md' ! -name README.md -printf '%f\n' | sed 's/\.md$//' | sort)"
claim elastic
reader=$(mktemp)
kubectl config view --raw --flatten >"$reader"
KUBECONFIG=$reader kubectl config set-context --current --namespace="$ns" >/dev/null
for page in "${guide[@]}"; do
  if [ "$page" = your-program ] && [ -z "$IMAGE_TASK_TF" ]; then
    note "$page: left out, there is no image of task-tf"
    continue
  fi
  start=$(now)
  if blocks "docs/guide/$page.md" | PATH=$PWD/build/bin:$PATH KUBECONFIG=$reader timeout 300 bash -euo pipefail >build/docs.log 2>&1; then
    ok "the commands of docs/guide/$page.md: $(since "$start") s"
  else
    bad "the commands of docs/guide/$page.md"
    tail -5 build/docs.log | sed 's/^/    /'
  fi
done
rm -f "$reader"
k -n "$ns" delete dtj digits mine elastic --ignore-not-found --timeout=20s >/dev/null 2>&1
eventually 45 'no pod is left of the guide' none pods -l "muster.dev/job in (digits, mine, elastic)"
