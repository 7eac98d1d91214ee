/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/plan/resolver.h"

#include <stdio.h>

#include "operator/api/job_spec.h"

#define NFD        "feature.node.kubernetes.io/"
#define ARCH_LABEL "kubernetes.io/arch" /* every kubelet sets it */

/* CPU variants, best first, and the labels of a node that has one. */
static const struct {
	const char *name, *feature, *arch;
} cpu_variants[] = {
    {"cpu-avx512", NFD "cpu-cpuid.AVX512F", "amd64"},
    {"cpu-avx2", NFD "cpu-cpuid.AVX2", "amd64"},
    {"arm64", NULL, "arm64"},
    {"cpu-generic", NULL, NULL},
};

/* Labels of a node with an NVIDIA device, of gpu-feature-discovery and of node-feature-discovery,
 * which writes class_vendor or vendor alone. */
static const char *const gpu_labels[] = {GPU_RESOURCE ".present", NFD "pci-10de.present",
					 NFD "pci-0302_10de.present", NFD "pci-0300_10de.present"};

static const char *label_of(const struct node_info *n, const char *key)
{
	for (unsigned i = 0; i < n->n_labels; i++)
		if (strcmp(n->labels[i].key, key) == 0)
			return n->labels[i].value;
	return NULL;
}

static bool label_is(const struct node_info *n, const char *key, const char *value)
{
	const char *actual = label_of(n, key);

	return actual && strcmp(actual, value) == 0;
}

static void require_label(struct kernel_choice *c, const char *key, const char *value)
{
	c->selector[c->n_selector].key = key;
	snprintf(c->selector[c->n_selector++].value, sizeof c->selector[0].value, "%s", value);
}

static void set_sm(struct kernel_choice *c, int sm)
{
	char major[4], minor[4];

	snprintf(c->variant, sizeof c->variant, "cuda-sm%d", sm);
	snprintf(major, sizeof major, "%u", (unsigned)sm / 10 % 100);
	snprintf(minor, sizeof minor, "%u", (unsigned)sm % 10);
	require_label(c, GPU_RESOURCE ".compute.major", major);
	require_label(c, GPU_RESOURCE ".compute.minor", minor);
	c->gpu = true;
}

static void set_cpu(struct kernel_choice *c, unsigned variant)
{
	c->n_selector = 0;
	snprintf(c->variant, sizeof c->variant, "%s", cpu_variants[variant].name);
	if (cpu_variants[variant].feature)
		require_label(c, cpu_variants[variant].feature, "true");
	if (cpu_variants[variant].arch)
		require_label(c, ARCH_LABEL, cpu_variants[variant].arch);
}

/* Sets a variant by its name, and the labels of a node that has it; false: there is none. */
static bool set_variant(struct kernel_choice *c, const char *name)
{
	unsigned i = 0;

	*c = (struct kernel_choice){.required = true};
	if (kernels_compute_capability(name)) {
		set_sm(c, kernels_compute_capability(name));
		return true;
	}
	while (i < MU_COUNT(cpu_variants) && strcmp(cpu_variants[i].name, name) != 0)
		i++;
	if (i < MU_COUNT(cpu_variants))
		set_cpu(c, i);
	return i < MU_COUNT(cpu_variants);
}

static void set_reason(struct kernel_choice *c, const char *why)
{
	snprintf(c->reason, sizeof c->reason, "%s: %s", c->variant, why);
}

static bool has_variant(const struct node_info *node, const struct kernel_choice *c)
{
	for (unsigned i = 0; i < c->n_selector; i++)
		if (!label_is(node, c->selector[i].key, c->selector[i].value))
			return false;
	return true;
}

bool resolver_may_fall_back(const char *kernels)
{
	return strcmp(kernels, "auto") == 0 || strcmp(kernels, "prefer-gpu") == 0;
}

/* The best variant that every schedulable node has: it needs no selector. */
static void common_cpu(struct kernel_choice *c, const struct node_info *nodes, unsigned n)
{
	for (unsigned v = 0; v < MU_COUNT(cpu_variants); v++) {
		bool any = false, all = true;

		set_cpu(c, v);
		for (unsigned i = 0; i < n; i++) {
			any = any || nodes[i].schedulable;
			all = all && (!nodes[i].schedulable || has_variant(&nodes[i], c));
		}
		if (any && all)
			break;
	}
	c->n_selector = 0;
}

/* The value of a label as a number; -1 if it is not a number. */
static int label_number(const struct node_info *n, const char *key)
{
	const char *text = label_of(n, key);
	size_t digits = text ? strspn(text, "0123456789") : 0;

	return digits && digits < 3 && !text[digits] ? atoi(text) : -1;
}

/* Compute capability of the node's GPUs by gpu-feature-discovery, 90 for 9.0; 0 when it is not
 * known. */
static int node_sm(const struct node_info *n)
{
	int major = label_number(n, GPU_RESOURCE ".compute.major");
	int minor = label_number(n, GPU_RESOURCE ".compute.minor");

	return major > 0 && minor >= 0 && minor < 10 ? major * 10 + minor : 0;
}

static const char *gpu_label(const struct node_info *n)
{
	for (unsigned i = 0; i < MU_COUNT(gpu_labels); i++)
		if (label_is(n, gpu_labels[i], "true"))
			return gpu_labels[i];
	return NULL;
}

static bool has_gpu(const struct node_info *n)
{
	return n->gpus > 0 || node_sm(n) || gpu_label(n);
}

/* Chooses a GPU like that of the node; NULL: any. */
static void choose_gpu(struct kernel_choice *c, const struct node_info *node, const char *why)
{
	*c = (struct kernel_choice){.variant = "cuda", .gpu = true, .required = true};
	if (node && node_sm(node))
		set_sm(c, node_sm(node));
	else if (node && gpu_label(node))
		require_label(c, gpu_label(node), "true");
	set_reason(c, why);
}

/* True if the node can run a GPU pod now: its device plug-in advertises GPUs. */
static bool offers_gpu(const struct node_info *n)
{
	return n->schedulable && n->gpus > 0;
}

static bool is_gpu_node(const struct node_info *n)
{
	return n->schedulable && has_gpu(n);
}

enum { MAX_SM = 999 };

/* A node of the GPU generation that is most frequent among the nodes that `counts` accepts; of
 * equally frequent ones the newest.  NULL: it accepts none. */
static const struct node_info *best_gpu(const struct node_info *nodes, unsigned n,
					bool (*is_candidate)(const struct node_info *))
{
	const struct node_info *best = NULL;
	int count[MAX_SM + 1] = {0}, best_sm = 0;

	for (unsigned i = 0; i < n; i++)
		if (is_candidate(&nodes[i]))
			count[node_sm(&nodes[i])] += nodes[i].gpus > 0 ? nodes[i].gpus : 1;
	for (int sm = 1; sm <= MAX_SM; sm++)
		best_sm = count[sm] && count[sm] >= count[best_sm] ? sm : best_sm;
	for (unsigned i = 0; i < n && !best; i++)
		if (is_candidate(&nodes[i]) && node_sm(&nodes[i]) == best_sm)
			best = &nodes[i];
	return best;
}

/* True if node-feature-discovery describes the processor of some node. */
static bool processors_are_described(const struct node_info *nodes, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < nodes[i].n_labels; j++)
			if (strncmp(nodes[i].labels[j].key, NFD "cpu-", strlen(NFD "cpu-")) == 0)
				return true;
	return false;
}

static int fail_no_such_node(const struct kernel_choice *c, struct mu_err *err)
{
	if (!c->gpu)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "no node has %s (label %s=%s): use kernels: cpu, or add such a node",
			       c->variant, c->selector[0].key, c->selector[0].value);
	return mu_fail(err, MU_FAILED_PRECONDITION,
		       "no node has a GPU of compute capability %s.%s (labels " GPU_RESOURCE
		       ".compute.major and .minor): use kernels: gpu, or label such a node",
		       c->selector[0].value, c->selector[1].value);
}

/* Checks that a node has the variant that the task names. */
static int check_variant(struct kernel_choice *c, const struct node_info *nodes, unsigned n,
			 struct mu_err *err)
{
	set_reason(c, "asked for");
	if (!c->gpu && c->n_selector == 2 && !processors_are_described(nodes, n)) {
		/* only the architecture is known; the task checks its processor */
		c->selector[0] = c->selector[--c->n_selector];
		set_reason(c, "asked for; no node says what its processor has");
	}
	for (unsigned i = 0; i < n; i++)
		if (has_variant(&nodes[i], c))
			return 0;
	return n ? fail_no_such_node(c, err) : 0;
}

static int any_gpu(struct kernel_choice *c, const struct node_info *nodes, unsigned n,
		   struct mu_err *err)
{
	const struct node_info *node = best_gpu(nodes, n, is_gpu_node);

	if (!node && n)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "none of %u nodes has a GPU (no nvidia.com/gpu, no label of "
			       "feature discovery): use kernels: prefer-gpu or cpu",
			       n);
	choose_gpu(c, node, "a GPU was asked for");
	return 0;
}

/* A parameter server runs on the CPU unless its `kernels` request a GPU. */
static bool wants_gpu(const char *kernels, bool is_ps)
{
	return resolver_may_fall_back(kernels) && !(is_ps && strcmp(kernels, "auto") == 0);
}

bool resolver_gpu_offered(const char *kernels, bool is_ps, const struct node_info *nodes,
			  unsigned n_nodes)
{
	for (unsigned i = 0; wants_gpu(kernels, is_ps) && i < n_nodes; i++)
		if (offers_gpu(&nodes[i]))
			return true;
	return false;
}

/* auto, prefer-gpu and cpu.  A GPU is chosen only where a pod can get one. */
static void best_kernels(struct kernel_choice *c, const struct kernel_request *request,
			 const struct node_info *nodes, unsigned n)
{
	bool prefer = strcmp(request->kernels, "prefer-gpu") == 0;
	bool wants = wants_gpu(request->kernels, request->is_ps);
	const struct node_info *node = wants ? best_gpu(nodes, n, offers_gpu) : NULL;

	if (node && !request->no_gpu && !request->no_gpu_image) {
		choose_gpu(c, node, "the cluster has GPUs");
		return;
	}
	common_cpu(c, nodes, n);
	set_reason(c, node && request->no_gpu_image ? "no image with GPU kernels is configured"
		      : request->no_gpu             ? "the task has fallen back to the CPU"
		      : prefer                      ? "no node has a GPU"
		      : request->is_ps              ? "parameter servers use the processor"
						    : "what every node has");
}

int resolver_choose(struct kernel_choice *out, const struct kernel_request *request,
		    const struct node_info *nodes, unsigned n_nodes, struct mu_err *err)
{
	struct kernel_choice c;
	const char *kernels = request->kernels;

	if (set_variant(&c, kernels)) {
		MU_RETURN_IF_ERROR(check_variant(&c, nodes, n_nodes, err));
	} else if (strcmp(kernels, "gpu") == 0 || strcmp(kernels, "cuda") == 0) {
		MU_RETURN_IF_ERROR(any_gpu(&c, nodes, n_nodes, err));
	} else {
		c.required = false;
		best_kernels(&c, request, nodes, n_nodes);
	}
	*out = c;
	return 0;
}
