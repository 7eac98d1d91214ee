# SPDX-License-Identifier: Apache-2.0
# Runs every shell command of the README's quickstart and of docs/guide; the ```sh blocks of a page
# form one script.  Instead of kind, which needs Docker, a few lines import the images into the node.
guide=(install first-job your-program scaling failure gpu-nodes from-tfjob troubleshooting)
blocks() { awk '/^```/ {inside = $0 == "```sh" && !inside; next} inside' "$1"; }
is 'the guide has the pages that are run' "$(printf '%s\n' "${guide[@]}" | sort)" \
  "$(find docs/guide -name '*.md' ! -name README.md -printf '%f\n' | sed 's/\.md$//' | sort)"
claim elastic
reader=$(mktemp -d)
kubectl config view --raw --flatten >"$reader/config"
KUBECONFIG=$reader/config kubectl config set-context --current --namespace="$ns" >/dev/null
cat >"$reader/kind" <<'END'
#!/bin/sh
case "$1 $2" in
'create cluster') ;; # the cluster exists already
'load image-archive') exec ctr images import "$3" ;;
*) echo "kind: this stand-in knows no '$1 $2'" >&2; exit 2 ;;
esac
END
chmod +x "$reader/kind"
read_page() { # FILE
  local start n
  start=$(now) n=$(blocks "$1" | grep -cvE '^ *(#|$)')
  if [ "$n" -gt 0 ] && blocks "$1" |
    IMAGE_ENGINE=none PATH=$reader:$PWD/build/bin:$PATH KUBECONFIG=$reader/config timeout 400 bash -euo pipefail >build/docs.log 2>&1; then
    ok "the commands of $1 ($n lines): $(since "$start") s"
  else
    bad "the commands of $1"
    tail -5 build/docs.log | sed 's/^/    /'
  fi
}
if [ -n "$own" ]; then read_page README.md; else note 'README.md: left out, this cluster has its images already'; fi
for page in "${guide[@]}"; do
  case $page in
  install) [ -n "$own" ] || { note 'install: left out, another release is in use here'; continue; } ;;
  your-program) [ -n "$IMAGE_TASK_TF" ] || { note "$page: left out, there is no image of task-tf"; continue; } ;;
  esac
  read_page "docs/guide/$page.md"
done
rm -rf "$reader"
k -n "$ns" delete dtj digits mine elastic --ignore-not-found --timeout=20s >/dev/null 2>&1
eventually 45 'no pod is left of the guide' none pods -l "muster.dev/job in (digits, mine, elastic)"
check 'the operator is as it was before' install_operator
