/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/plan/resolver.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#define NFD        "feature.node.kubernetes.io/"
#define ARCH_LABEL "kubernetes.io/arch"

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

/* Labels by which feature discovery reports an NVIDIA device: class_vendor or vendor alone. */
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

bool resolver_may_fall_back(const char *kernels)
{
	return strcmp(kernels, "auto") == 0 || strcmp(kernels, "prefer-gpu") == 0;
}

bool resolver_known(const char *kernels)
{
	static const char *const words[] = {"auto", "cpu", "gpu", "prefer-gpu", "cuda"};

	for (unsigned i = 0; i < MU_COUNT(words); i++)
		if (strcmp(words[i], kernels) == 0)
			return true;
	return sm_of(kernels) || cpu_variant_of(kernels) >= 0;
}

static void select_label(struct kernel_choice *c, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void select_label(struct kernel_choice *c, const char *key, const char *fmt, ...)
{
	va_list ap;

	c->selector[c->n_selector].key = key;
	va_start(ap, fmt);
	vsnprintf(c->selector[c->n_selector].value, sizeof c->selector[0].value, fmt, ap);
	va_end(ap);
	c->n_selector++;
}

static bool cpu_fits(const struct node_info *n, int variant)
{
	const struct cpu_variant *v = &cpu_variants[variant];
	const char *arch = label_of(n, ARCH_LABEL);

	if (v->arch && arch && strcmp(arch, v->arch))
		return false;
	if (v->arch && !v->label)
		return arch != NULL; /* arm64: the label is the only evidence */
	return !v->label || label_is(n, v->label, "true");
}

static void choose_cpu(struct kernel_choice *c, int variant, const char *why)
{
	const struct cpu_variant *v = &cpu_variants[variant];

	snprintf(c->variant, sizeof c->variant, "%s", v->name);
	snprintf(c->reason, sizeof c->reason, "%s: %s", v->name, why);
}

/* The best variant that every schedulable node has: it needs no selector. */
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
	choose_cpu(c, best, why);
}

/* True if some node has the architecture of this variant.  Every kubelet sets that label. */
static bool arch_exists(const struct cpu_variant *v, const struct node_info *nodes, unsigned n)
{
	for (unsigned i = 0; v->arch && i < n; i++)
		if (label_is(&nodes[i], ARCH_LABEL, v->arch))
			return true;
	return !n || !v->arch;
}

static int named_cpu(struct kernel_choice *c, int variant, const struct node_info *nodes,
		     unsigned n, struct mu_err *err)
{
	const struct cpu_variant *v = &cpu_variants[variant];
	unsigned fit = 0, labelled = 0;

	for (unsigned i = 0; i < n; i++) {
		fit += cpu_fits(&nodes[i], variant);
		labelled += label_of(&nodes[i], NFD "cpu-model.vendor_id") != NULL ||
			    label_of(&nodes[i], NFD "cpu-cpuid.AVX") != NULL ||
			    label_of(&nodes[i], NFD "cpu-cpuid.AVX2") != NULL;
	}
	if (!arch_exists(v, nodes, n))
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "no node can run %s (label " ARCH_LABEL
			       "=%s): use kernels: cpu, or add such a node",
			       v->name, v->arch);
	if (v->label && !fit && labelled)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "no node has %s (label %s): use kernels: cpu, or add such a node",
			       v->name, v->label);
	/* Without node-feature-discovery no node has v->label; the task checks its processor. */
	if (fit && v->label)
		select_label(c, v->label, "true");
	if (v->arch)
		select_label(c, ARCH_LABEL, "%s", v->arch);
	c->required = true;
	choose_cpu(c, variant,
		   fit || !v->label ? "asked for"
				    : "asked for; no node says what its processor has");
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

/* A label's number; -1 when it is none. */
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
	int major = label_number(n, RESOLVER_GPU ".compute.major");
	int minor = label_number(n, RESOLVER_GPU ".compute.minor");

	return major > 0 && minor >= 0 && minor < 10 ? major * 10 + minor : 0;
}

static bool has_gpu(const struct node_info *n)
{
	const char *which;

	return n->gpus > 0 || node_sm(n) || label_is(n, RESOLVER_GPU ".present", "true") ||
	       pci_label(n, &which);
}

static void choose_gpu(struct kernel_choice *c, int sm, const struct node_info *evidence,
		       const char *why)
{
	const char *pci;

	c->gpu = c->required = true;
	if (sm)
		snprintf(c->variant, sizeof c->variant, "cuda-sm%d", sm);
	else
		snprintf(c->variant, sizeof c->variant, "cuda");
	if (sm) {
		select_label(c, RESOLVER_GPU ".compute.major", "%d", sm / 10);
		select_label(c, RESOLVER_GPU ".compute.minor", "%d", sm % 10);
	} else if (evidence && label_is(evidence, RESOLVER_GPU ".present", "true")) {
		select_label(c, RESOLVER_GPU ".present", "true");
	} else if (evidence && pci_label(evidence, &pci)) {
		select_label(c, pci, "true");
	}
	snprintf(c->reason, sizeof c->reason, "%s: %s", c->variant, why);
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

/* A node of the GPU generation that is most frequent among the nodes that `counts` accepts; of
 * equally frequent ones the newest.  NULL: it accepts none. */
static const struct node_info *best_gpu(const struct node_info *nodes, unsigned n,
					bool (*counts)(const struct node_info *))
{
	const struct node_info *best = NULL;
	int best_count = -1;

	for (unsigned i = 0; i < n; i++) {
		int count = 0;
		if (!counts(&nodes[i]))
			continue;
		for (unsigned j = 0; j < n; j++)
			if (counts(&nodes[j]) && node_sm(&nodes[j]) == node_sm(&nodes[i]))
				count += nodes[j].gpus > 0 ? nodes[j].gpus : 1;
		if (count > best_count ||
		    (count == best_count && node_sm(&nodes[i]) > node_sm(best))) {
			best = &nodes[i];
			best_count = count;
		}
	}
	return best;
}

/* A node without labels of its compute capability matches no named generation. */
static int named_gpu(struct kernel_choice *c, int sm, const struct node_info *nodes, unsigned n,
		     struct mu_err *err)
{
	unsigned unlabelled = 0;

	for (unsigned i = 0; i < n; i++) {
		unlabelled += has_gpu(&nodes[i]) && !node_sm(&nodes[i]);
		if (node_sm(&nodes[i]) == sm) {
			choose_gpu(c, sm, &nodes[i], "asked for");
			return 0;
		}
	}
	if (n)
		return mu_fail(
		    err, MU_FAILED_PRECONDITION,
		    "no node has a GPU of compute capability %d.%d (labels " RESOLVER_GPU
		    ".compute.major and .minor; %u GPU nodes have none): use kernels: gpu, "
		    "or label such a node",
		    sm / 10, sm % 10, unlabelled);
	choose_gpu(c, sm, NULL, "asked for");
	return 0;
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
	choose_gpu(c, node ? node_sm(node) : 0, node, "a GPU was asked for");
	return 0;
}

/* A parameter server runs on the CPU unless its `kernels` ask for a GPU. */
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
static void best_kernels(struct kernel_choice *c, const struct kernel_request *ask,
			 const struct node_info *nodes, unsigned n)
{
	bool prefer = strcmp(ask->kernels, "prefer-gpu") == 0;
	bool wants = wants_gpu(ask->kernels, ask->is_ps);
	const struct node_info *node = wants ? best_gpu(nodes, n, offers_gpu) : NULL;

	if (node && !ask->no_gpu && !ask->no_gpu_image) {
		choose_gpu(c, node_sm(node), node, "the cluster has GPUs");
		return;
	}
	common_cpu(c, nodes, n,
		   node && ask->no_gpu_image ? "no image with GPU kernels is configured"
		   : ask->no_gpu             ? "the task has fallen back to the CPU"
		   : prefer                  ? "no node has a GPU"
		   : ask->is_ps              ? "parameter servers use the processor"
					     : "what every node has");
}

int resolver_choose(struct kernel_choice *out, const struct kernel_request *ask,
		    const struct node_info *nodes, unsigned n_nodes, struct mu_err *err)
{
	struct kernel_choice c = {0};
	const char *kernels = ask->kernels;
	int rc = 0;

	if (!resolver_known(kernels))
		return mu_fail(err, MU_INVALID_ARGUMENT, "'%.60s' is no kernel variant", kernels);
	if (sm_of(kernels))
		rc = named_gpu(&c, sm_of(kernels), nodes, n_nodes, err);
	else if (cpu_variant_of(kernels) >= 0)
		rc = named_cpu(&c, cpu_variant_of(kernels), nodes, n_nodes, err);
	else if (strcmp(kernels, "gpu") == 0 || strcmp(kernels, "cuda") == 0)
		rc = any_gpu(&c, nodes, n_nodes, err);
	else
		best_kernels(&c, ask, nodes, n_nodes);
	if (rc)
		return rc;
	*out = c;
	return 0;
}
