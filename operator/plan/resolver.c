/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/plan/resolver.h"

#include <ctype.h>
#include <stdio.h>

#define GPU_RESOURCE "nvidia.com/gpu"
#define NFD          "feature.node.kubernetes.io/"

/* CPU variants, best first; `label` is what a node that has it carries, `arch` its machine. */
static const struct cpu_variant {
	const char *name, *label, *arch;
} cpu_variants[] = {
    {"cpu-avx512", NFD "cpu-cpuid.AVX512F", "amd64"},
    {"cpu-avx2", NFD "cpu-cpuid.AVX2", "amd64"},
    {"arm64", NULL, "arm64"},
    {"cpu-generic", NULL, NULL},
};
enum { AVX512, AVX2, ARM64, GENERIC };

/* How feature discovery says "an NVIDIA device is in this node": class_vendor or vendor alone. */
static const char *const pci_labels[] = {NFD "pci-10de.present", NFD "pci-0302_10de.present",
					 NFD "pci-0300_10de.present"};

static const char *label_of(const struct node_info *n, const char *key)
{
	for (unsigned i = 0; i < n->n_labels; i++)
		if (strcmp(n->labels[i].key, key) == 0)
			return n->labels[i].value;
	return NULL;
}

static bool label_is(const struct node_info *n, const char *key, const char *value)
{
	const char *have = label_of(n, key);

	return have && strcmp(have, value) == 0;
}

/* "cuda-sm90" -> 90; 0 when it is no such word. */
static int sm_of(const char *kernels)
{
	if (strncmp(kernels, "cuda-sm", 7) || !isdigit((unsigned char)kernels[7]))
		return 0;
	char *end;
	long sm = strtol(kernels + 7, &end, 10);
	return *end || sm < 50 || sm > 999 ? 0 : (int)sm;
}

static int cpu_variant_of(const char *kernels)
{
	for (unsigned i = 0; i < MU_COUNT(cpu_variants); i++)
		if (strcmp(cpu_variants[i].name, kernels) == 0)
			return (int)i;
	return -1;
}

bool resolver_known(const char *kernels)
{
	static const char *const words[] = {"auto", "cpu", "gpu", "prefer-gpu", "cuda"};

	for (unsigned i = 0; i < MU_COUNT(words); i++)
		if (strcmp(words[i], kernels) == 0)
			return true;
	return sm_of(kernels) || cpu_variant_of(kernels) >= 0;
}

static void put(struct pair *list, unsigned *n, const char *key, const char *value)
{
	if (*n == RESOLVER_MAX_PAIRS)
		return;
	snprintf(list[*n].key, sizeof list[*n].key, "%s", key);
	snprintf(list[*n].value, sizeof list[*n].value, "%s", value);
	++*n;
}

static bool cpu_fits(const struct node_info *n, int variant)
{
	const struct cpu_variant *v = &cpu_variants[variant];
	const char *arch = label_of(n, "kubernetes.io/arch");

	if (v->arch && arch && strcmp(arch, v->arch))
		return false;
	if (v->arch && !v->label)
		return arch != NULL; /* arm64: the label is the only evidence */
	return !v->label || label_is(n, v->label, "true");
}

static void choose_cpu(struct kernel_choice *c, int variant, bool pinned, const char *why)
{
	const struct cpu_variant *v = &cpu_variants[variant];

	snprintf(c->variant, sizeof c->variant, "%s", v->name);
	if (pinned && v->label)
		put(c->selector, &c->n_selector, v->label, "true");
	if (pinned && v->arch)
		put(c->selector, &c->n_selector, "kubernetes.io/arch", v->arch);
	/* What is only a floor is left to the task's own probe, which may find better than it; what
	 * was asked for by name is not to be bettered. */
	if (pinned)
		put(c->env, &c->n_env, "MUSTER_KERNELS", v->name);
	put(c->env, &c->n_env, "NVIDIA_VISIBLE_DEVICES", "void");
	snprintf(c->reason, sizeof c->reason, "%s: %s", v->name, why);
}

/* The best that every node a pod may land on has, so that no selector is needed. */
static void common_cpu(struct kernel_choice *c, const struct node_info *nodes, unsigned n,
		       const char *why)
{
	int best = GENERIC;

	for (int v = 0; v < GENERIC && best == GENERIC; v++) {
		unsigned fit = 0, seen = 0;
		for (unsigned i = 0; i < n; i++) {
			seen += nodes[i].schedulable;
			fit += nodes[i].schedulable && cpu_fits(&nodes[i], v);
		}
		if (seen && fit == seen)
			best = v;
	}
	choose_cpu(c, best, false, why);
}

static int named_cpu(struct kernel_choice *c, int variant, const struct node_info *nodes,
		     unsigned n, struct mu_err *err)
{
	unsigned fit = 0, labelled = 0;

	for (unsigned i = 0; i < n; i++) {
		fit += cpu_fits(&nodes[i], variant);
		labelled += label_of(&nodes[i], NFD "cpu-model.vendor_id") != NULL ||
			    label_of(&nodes[i], NFD "cpu-cpuid.AVX") != NULL ||
			    label_of(&nodes[i], NFD "cpu-cpuid.AVX2") != NULL;
	}
	if (variant == GENERIC || fit) {
		choose_cpu(c, variant, true, "asked for");
		return 0;
	}
	if (labelled)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "no node has %s (label %s): use kernels: cpu, or add such a node",
			       cpu_variants[variant].name,
			       cpu_variants[variant].label ? cpu_variants[variant].label
							   : "kubernetes.io/arch=arm64");
	/* Nobody has labelled the nodes: trust the request, the task checks it when it starts. */
	choose_cpu(c, variant, true, "asked for; no node says what its processor has");
	c->n_selector = 0;
	return 0;
}

static bool pci_label(const struct node_info *n, const char **which)
{
	for (unsigned i = 0; i < MU_COUNT(pci_labels); i++)
		if (label_is(n, pci_labels[i], "true")) {
			*which = pci_labels[i];
			return true;
		}
	return false;
}

/* sm of the node's GPUs by gpu-feature-discovery; 0 when it does not say. */
static int node_sm(const struct node_info *n)
{
	const char *major = label_of(n, GPU_RESOURCE ".compute.major");
	const char *minor = label_of(n, GPU_RESOURCE ".compute.minor");
	int ma = major ? atoi(major) : 0, mi = minor ? atoi(minor) : 0;

	return ma > 0 && ma < 100 && mi >= 0 && mi < 10 ? ma * 10 + mi : 0;
}

static bool has_gpu(const struct node_info *n)
{
	const char *which;

	return n->gpus > 0 || node_sm(n) || label_is(n, GPU_RESOURCE ".present", "true") ||
	       pci_label(n, &which);
}

static void choose_gpu(struct kernel_choice *c, int sm, const struct node_info *evidence,
		       const char *why)
{
	char number[16];
	const char *pci;

	c->gpu = true;
	if (sm)
		snprintf(c->variant, sizeof c->variant, "cuda-sm%d", sm);
	else
		snprintf(c->variant, sizeof c->variant, "cuda");
	if (sm && evidence && node_sm(evidence) == sm) {
		snprintf(number, sizeof number, "%d", sm / 10);
		put(c->selector, &c->n_selector, GPU_RESOURCE ".compute.major", number);
		snprintf(number, sizeof number, "%d", sm % 10);
		put(c->selector, &c->n_selector, GPU_RESOURCE ".compute.minor", number);
	} else if (evidence && label_is(evidence, GPU_RESOURCE ".present", "true")) {
		put(c->selector, &c->n_selector, GPU_RESOURCE ".present", "true");
	} else if (evidence && pci_label(evidence, &pci)) {
		put(c->selector, &c->n_selector, pci, "true");
	}
	put(c->toleration, &c->n_toleration, GPU_RESOURCE, "NoSchedule");
	put(c->limit, &c->n_limit, GPU_RESOURCE, "1");
	put(c->env, &c->n_env, "MUSTER_KERNELS", c->variant);
	snprintf(c->reason, sizeof c->reason, "%s: %s", c->variant, why);
}

/* The generation of which the cluster has most; then the newer one. */
static bool best_gpu(const struct node_info *nodes, unsigned n, const struct node_info **out)
{
	const struct node_info *best = NULL;
	int best_count = -1;

	for (unsigned i = 0; i < n; i++) {
		int count = 0;
		if (!nodes[i].schedulable || !has_gpu(&nodes[i]))
			continue;
		for (unsigned j = 0; j < n; j++)
			if (nodes[j].schedulable && has_gpu(&nodes[j]) &&
			    node_sm(&nodes[j]) == node_sm(&nodes[i]))
				count += nodes[j].gpus > 0 ? nodes[j].gpus : 1;
		if (count > best_count ||
		    (count == best_count && node_sm(&nodes[i]) > node_sm(best))) {
			best = &nodes[i];
			best_count = count;
		}
	}
	*out = best;
	return best != NULL;
}

static int named_gpu(struct kernel_choice *c, int sm, const struct node_info *nodes, unsigned n,
		     struct mu_err *err)
{
	const struct node_info *evidence = NULL;
	bool told = false;

	for (unsigned i = 0; i < n && !evidence; i++) {
		told = told || node_sm(&nodes[i]) || !has_gpu(&nodes[i]);
		if (node_sm(&nodes[i]) == sm)
			evidence = &nodes[i];
	}
	if (!evidence && n && told)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "no node has a GPU of compute capability %d.%d (cuda-sm%d): use "
			       "kernels: gpu, or add such a node",
			       sm / 10, sm % 10, sm);
	choose_gpu(c, sm, evidence, "asked for");
	return 0;
}

int resolver_choose(struct kernel_choice *out, const char *kernels, bool is_ps, bool gpu_given_up,
		    const struct node_info *nodes, unsigned n_nodes, struct mu_err *err)
{
	struct kernel_choice c = {0};
	const struct node_info *gpu_node;
	bool gpus = best_gpu(nodes, n_nodes, &gpu_node);
	bool prefer = strcmp(kernels, "prefer-gpu") == 0;
	int rc = 0;

	if (!resolver_known(kernels))
		return mu_fail(err, MU_INVALID_ARGUMENT, "'%.60s' is no kernel variant", kernels);
	if (sm_of(kernels)) {
		rc = named_gpu(&c, sm_of(kernels), nodes, n_nodes, err);
	} else if (cpu_variant_of(kernels) >= 0) {
		rc = named_cpu(&c, cpu_variant_of(kernels), nodes, n_nodes, err);
	} else if (strcmp(kernels, "gpu") == 0 || strcmp(kernels, "cuda") == 0) {
		if (!gpus && n_nodes)
			return mu_fail(err, MU_FAILED_PRECONDITION,
				       "none of %u nodes has a GPU (no nvidia.com/gpu, no label of "
				       "feature discovery): use kernels: prefer-gpu or cpu",
				       n_nodes);
		choose_gpu(&c, gpus ? node_sm(gpu_node) : 0, gpu_node, "a GPU was asked for");
	} else if (gpus && !gpu_given_up && (prefer || (!is_ps && strcmp(kernels, "auto") == 0))) {
		choose_gpu(&c, node_sm(gpu_node), gpu_node, "the cluster has GPUs");
	} else {
		common_cpu(&c, nodes, n_nodes,
			   prefer && gpu_given_up ? "no GPU became free in time"
			   : prefer               ? "no node has a GPU"
			   : is_ps                ? "parameter servers use the processor"
						  : "what every node has");
	}
	if (rc)
		return rc;
	*out = c;
	return 0;
}
