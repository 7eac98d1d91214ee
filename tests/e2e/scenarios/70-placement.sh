# SPDX-License-Identifier: Apache-2.0
# Node labels select the nodes and the kernels of tasks.  Two fake nodes have the labels of NVIDIA's feature
# discovery and node-feature-discovery; a device plug-in gives the real node fake GPUs.
[ -n "$own" ] || { note 'left out on a cluster that is not ours'; return; }
real=$(k get nodes -o 'jsonpath={.items[0].metadata.name}')
fake_node() { # NAME RESOURCES LABEL...
  local name=$1 resources=$2 status
  shift 2
  k create -f - >/dev/null <<END
{apiVersion: v1, kind: Node, metadata: {name: $name, labels: {kubernetes.io/os: linux, kubernetes.io/arch: amd64, muster.dev/test: fake}}}
END
  k label node "$name" "$@" >/dev/null
  status="\"capacity\":{$resources},\"allocatable\":{$resources}"
  k patch node "$name" --subresource=status --type=merge -p "{\"status\":{$status,\"conditions\":[{\"type\":\"Ready\",
    \"status\":\"True\",\"reason\":\"Test\",\"lastHeartbeatTime\":\"$(date -u +%FT%TZ)\",\"lastTransitionTime\":\"$(date -u +%FT%TZ)\"}]}}" >/dev/null
}
node_of() { field "pod/$1" '{.spec.nodeName}'; }
placed_on() { [ "$(node_of "$1")" = "$2" ]; }
env_of() { field "pod/$1" "{.spec.containers[0].env[?(@.name==\"$2\")].value}"; }
limit_of() { field "pod/$1" '{.spec.containers[0].resources.limits.nvidia\.com/gpu}'; }

# ---- the labels of nodes ----
machine='"cpu":"64","memory":"256Gi","pods":"110"'
fake_node fake-h100 "$machine,\"nvidia.com/gpu\":\"8\"" nvidia.com/gpu.present=true nvidia.com/gpu.count=8 \
  nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3 nvidia.com/gpu.compute.major=9 nvidia.com/gpu.compute.minor=0 \
  nvidia.com/gpu.memory=81559 feature.node.kubernetes.io/pci-10de.present=true muster.dev/pool=fake
k taint node fake-h100 nvidia.com/gpu=present:NoSchedule >/dev/null # as clusters taint GPU nodes to keep other pods off
submit gpu
eventually 30 'the ps of a GPU job runs on a CPU' running gpu-ps-0
is 'with no GPU to see' void "$(env_of gpu-ps-0 NVIDIA_VISIBLE_DEVICES)"
is 'and no limit for one' '' "$(limit_of gpu-ps-0)"
eventually 20 'a worker with kernels: gpu is placed on the labelled node' placed_on gpu-worker-0 fake-h100
is 'it asks for one GPU' 1 "$(limit_of gpu-worker-0)"
says 'it has the selector of its variant' "$(field pod/gpu-worker-0 '{.spec.nodeSelector}')" 'nvidia.com/gpu'
says 'it tolerates the taint of GPU nodes' "$(field pod/gpu-worker-0 '{.spec.tolerations[*].key}')" nvidia.com/gpu
is 'it is not blinded' '' "$(env_of gpu-worker-0 NVIDIA_VISIBLE_DEVICES)"
kernels_said() { grep -qE '^(gpu|cuda|cuda-sm90)$' <<<"$(field dtj/gpu '{.status.tasks.worker.kernels}')"; }
eventually 10 'the job says which kernels' kernels_said
note "kernels of its workers: $(field dtj/gpu '{.status.tasks.worker}')"
k -n "$ns" delete dtj gpu --wait=false >/dev/null
k -n "$ns" delete pod gpu-worker-0 --grace-period=0 --force >/dev/null 2>&1 # no kubelet ends it
k delete node -l muster.dev/test=fake >/dev/null

# ---- a device plug-in on the real node, with real scheduling and admission ----
timeout 200 tests/k8s/up build fakegpu >/dev/null 2>&1 || bad 'the device plug-in was not built'
"$K8S_DIR/bin/fakegpu" /var/lib/kubelet 1 >build/fakegpu.log 2>&1 &
plugin=$!
has_gpu() { [ "$(k get node "$real" -o 'jsonpath={.status.allocatable.nvidia\.com/gpu}')" = "$1" ]; }
eventually 30 'the node advertises a GPU' has_gpu 1
k label node "$real" nvidia.com/gpu.present=true nvidia.com/gpu.compute.major=9 nvidia.com/gpu.compute.minor=0 nvidia.com/gpu.count=1 >/dev/null
# the driver's own error text, so a missing plug-in does not pass
no_driver='no CUDA here: libcuda.so.1 is not on this machine'
submit gpu
says_kernels() { has_condition gpu KernelsMissing "True worker/0: node $real does not have the kernels cuda-sm90 .*$no_driver"; }
eventually 40 'a node that promises a GPU and has none is a condition with the words of its driver' says_kernels
note "$(field dtj/gpu '{.status.conditions[?(@.type=="KernelsMissing")].message}')"
eventually 20 'kernels: gpu fails the job' phase_is gpu Failed
remove gpu

# ---- kernels: auto never fails a job without a GPU ----
submit_kernels() { # NAME KERNELS: the job of manifests/gpu.yaml
  sed "s/name: gpu/name: $1/; s/kernels: gpu/kernels: $2/" "$here/manifests/gpu.yaml" | k -n "$ns" apply -f - >/dev/null || bad "$1 is accepted"
}
events_of() { k -n "$ns" get events.events.k8s.io -o 'jsonpath={range .items[*]}{.regarding.name} {.reason} {.note}{"\n"}{end}' | grep "^$1 "; }
has_event() { grep -qE -- "^$1 $2" <<<"$(events_of "$1")"; } # JOB PATTERN; events are posted some seconds later
submit_kernels no-image auto
eventually 90 'without a GPU image kernels: auto succeeds on the CPU of a GPU node' phase_is no-image Succeeded
check 'a condition says that there is no GPU image' has_condition no-image KernelsMissing 'True .*set taskImageGpu'
eventually 20 'and an event' has_event no-image 'KernelsMissing .*set taskImageGpu'
remove no-image
helm_args_before=("${helm_args[@]}")
helm_args+=(--set "taskImageGpu.repository=$(split repo "$IMAGE_TASK")" --set "taskImageGpu.tag=$(split tag "$IMAGE_TASK")")
install_operator || bad 'helm upgrade with taskImageGpu'
eventually 30 'the operator with a GPU image leads' operator_ready
submit_kernels broken-gpu auto
eventually 90 'on a GPU that does not come up kernels: auto falls back and succeeds' phase_is broken-gpu Succeeded
check 'a condition has the words of the driver' has_condition broken-gpu KernelsMissing "True worker/0 uses the CPU, node $real: .*$no_driver"
eventually 20 'and an event' has_event broken-gpu "GpuFallback worker/0 uses the CPU, node $real: .*$no_driver"
says 'the index status records it' "$(field dtj/broken-gpu '{.status.indexStatuses}')" '"noGpu":true'
is 'it cost no failure' 0 "$(field dtj/broken-gpu '{.status.restarts}')"
remove broken-gpu
helm_args=("${helm_args_before[@]}")
install_operator || bad 'helm upgrade without taskImageGpu'
eventually 30 'the operator without a GPU image leads' operator_ready

# ---- no speculative pods: a capability that no label has, another architecture ----
is_unavailable() { [ "$(field "dtj/$1" '{.status.phase} {.status.conditions[?(@.type=="Ready")].reason}')" = 'Pending KernelsUnavailable' ]; }
k label node "$real" nvidia.com/gpu.compute.major- nvidia.com/gpu.compute.minor- >/dev/null
submit_kernels unlabelled cuda-sm90
submit_kernels other-machine "$([ "$(uname -m)" = aarch64 ] && echo cpu-avx2 || echo arm64)"
for j in unlabelled other-machine; do
  eventually 30 "the job $j is Pending, and no worker is made" is_unavailable $j
  check "$j has no worker" none pods -l "muster.dev/job=$j,muster.dev/task=worker"
  note "$(field dtj/$j '{.status.conditions[?(@.type=="Ready")].message}')"
done
remove unlabelled other-machine
k label node "$real" nvidia.com/gpu.present- nvidia.com/gpu.compute.major- nvidia.com/gpu.compute.minor- nvidia.com/gpu.count- >/dev/null
kill "$plugin" 2>/dev/null
wait "$plugin" 2>/dev/null
eventually 30 'without its plug-in the node has none' has_gpu 0

# ---- the real node's processor: the labels agree with the probe of the running task ----
flags=$(grep -m1 ^flags /proc/cpuinfo)
labels=()
for f in avx avx2 fma3 avx512f avx512bw avx512dq avx512vl avx512cd avx512vnni; do
  name=${f/fma3/fma}
  [[ " $flags " != *" ${name/avx512vnni/avx512_vnni} "* ]] || labels+=("feature.node.kubernetes.io/cpu-cpuid.${f^^}=true")
done
k label node "$real" "${labels[@]}" >/dev/null
submit long
eventually 60 'a job with kernels: auto trains' past_step long 1
promised=$(field dtj/long '{.status.tasks.worker.kernels}')
says "the labels promise $promised, and the task's own probe has chosen it" "$(log_of long-worker-0)" "kernels $promised"
remove long
k label node "$real" "${labels[@]/%=true/-}" >/dev/null
