/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses a kernel variant and the requirements of its pod.  The inputs are the task's `kernels`
 * (auto, cpu, gpu, a variant) and the labels of the nodes.  Pure.
 *
 * Labels that count: NVIDIA's gpu-feature-discovery (nvidia.com/gpu.compute.major, …), node feature
 * discovery (feature.node.kubernetes.io/cpu-cpuid.AVX2, pci-10de.present and pci-0302_10de.present)
 * and kubernetes.io/arch.
 *
 * The variant is the minimum.  The task probes its processor and may choose better kernels of the
 * same family.  It reports its choice, and fails if the node has less. */
#ifndef MU_OPERATOR_PLAN_RESOLVER_H
#define MU_OPERATOR_PLAN_RESOLVER_H

#include "operator/api/node.h"

struct kernel_choice {
	char variant[32]; /* "cuda-sm90", "cuda", "cpu-avx512", "cpu-generic", "arm64", … */
	bool gpu;         /* the pod requests a GPU */
	bool required;    /* the task may not choose better kernels than these */
	struct {
		const char *key;
		char value[8];
	} selector[2]; /* labels that the node has to have */
	unsigned n_selector;
	char reason[200]; /* one sentence for status and events */
};

/* The index that needs kernels, and the facts beside the nodes that decide them. */
struct kernel_request {
	const char *kernels;
	bool is_ps;        /* a parameter server does not take a GPU for `auto` */
	bool no_gpu_image; /* no image with GPU kernels is known */
	bool no_gpu;       /* the index has fallen back to the CPU */
};

/* True if `kernels` allows both a GPU and the CPU: auto and prefer-gpu. */
bool resolver_may_fall_back(const char *kernels);
/* True if auto or prefer-gpu could use a GPU now, given an image with GPU kernels. */
bool resolver_gpu_offered(const char *kernels, bool is_ps, const struct node_info *nodes,
			  unsigned n_nodes);
/* Fails with FAILED_PRECONDITION when no node has the named variant.  Without nodes (the operator
 * may not list them) a named variant is not checked here: the pod's selector requires the
 * node's architecture and compute capability. */
int resolver_choose(struct kernel_choice *out, const struct kernel_request *request,
		    const struct node_info *nodes, unsigned n_nodes, struct mu_err *err);

#endif
