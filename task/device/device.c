/* SPDX-License-Identifier: Apache-2.0 */
#include "task/device/device.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/mem.h"
#include "task/kernels/engine/blas.h"
#include "task/kernels/engine/loops/loops.h"

static const struct device_kind *const kinds[] = {&device_cpu, &device_cuda};

static bool answers_to(const struct device_kind *k, const char *asked)
{
	size_t n = strlen(k->prefix);

	return strncasecmp(asked, k->prefix, n) == 0 && (!asked[n] || asked[n] == '-');
}

int device_open(const char *asked, const struct gpu_options *gpu, struct device_choice *out,
		struct mu_err *err)
{
	struct device_choice c = {0};
	const char *want = asked && *asked ? asked : "auto";
	const struct device_kind *kind = NULL;
	int rc;

	if (strcasecmp(want, "auto") == 0 || strcasecmp(want, "arm64") == 0)
		kind = &device_cpu; /* a GPU is used when it is asked for */
	else if (strcasecmp(want, "gpu") == 0)
		kind = &device_cuda;
	for (unsigned i = 0; !kind && i < MU_COUNT(kinds); i++)
		if (answers_to(kinds[i], want))
			kind = kinds[i];
	if (!kind)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "'%.40s' is no kind of kernels: auto, cpu, gpu, cpu-generic, "
			       "cpu-avx2, cpu-avx512, arm64 or cuda",
			       want);
	snprintf(c.asked, sizeof c.asked, "%s", want);
	snprintf(c.probed, sizeof c.probed, "%s", cpu_kernels_best());
	if ((rc = kind->open(want, gpu, &c, err)))
		return rc;
	snprintf(c.blas, sizeof c.blas, "%s", blas_core());
	*out = c;
	return 0;
}
