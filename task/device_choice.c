/* SPDX-License-Identifier: Apache-2.0 */
#include "task/device_choice.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "task/device/gpu.h"
#include "task/kernels/engine/blas.h"
#include "task/kernels/engine/loops/loops.h"

/* Returns true for the kind itself and its variants: "cuda" and "cuda-sm90" for "cuda". */
static bool is_kind(const char *requested, const char *kind)
{
	size_t n = strlen(kind);

	return strncasecmp(requested, kind, n) == 0 && (!requested[n] || requested[n] == '-');
}

static int open_gpus(const struct gpu_options *o, struct device_choice *c, struct mu_err *err)
{
	int rc = cuda_open(c->requested, o, &c->gpus, c->chosen, sizeof c->chosen, err);

	if (!rc)
		snprintf(c->probed, sizeof c->probed, "%s", c->chosen);
	return rc;
}

int device_open(const char *requested, const struct gpu_options *gpu, struct device_choice *out,
		struct mu_err *err)
{
	struct device_choice c = {0};
	const char *variant = requested && *requested ? requested : "auto";
	bool is_gpu = strcasecmp(variant, "gpu") == 0 || is_kind(variant, "cuda");
	bool is_any = strcasecmp(variant, "auto") == 0 || strcasecmp(variant, "cpu") == 0;
	int rc;

	if (!is_gpu && !is_any && !is_kind(variant, "cpu") && strcasecmp(variant, "arm64") != 0)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "'%.40s' is not a kernel variant: auto, cpu, gpu, cpu-generic, "
			       "cpu-avx2, cpu-avx512, arm64 or cuda",
			       variant);
	snprintf(c.requested, sizeof c.requested, "%s", variant);
	snprintf(c.probed, sizeof c.probed, "%s", cpu_kernels_best());
	/* CPU kernels run the ops without a GPU kernel. */
	if ((rc = cpu_kernels_select(is_gpu || is_any ? NULL : variant, err)))
		return rc;
	snprintf(c.chosen, sizeof c.chosen, "%s", cpu_kernels_variant());
	if (is_gpu && (rc = open_gpus(gpu, &c, err)))
		return rc;
	snprintf(c.blas, sizeof c.blas, "%s", blas_core());
	*out = c;
	return 0;
}
