/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device: which loops this processor can run is the kernels' own knowledge. */
#include <stdio.h>
#include <strings.h>

#include "task/device/device.h"
#include "task/kernels/engine/loops/loops.h"

static int cpu_open(const char *asked, const struct gpu_options *o, struct device_choice *out,
		    struct mu_err *err)
{
	bool any = strcasecmp(asked, "auto") == 0 || strcasecmp(asked, "cpu") == 0;
	int rc = cpu_kernels_select(any ? NULL : asked, err);

	if (rc)
		return rc;
	snprintf(out->chosen, sizeof out->chosen, "%s", cpu_kernels_variant());
	return 0;
}

const struct device_kind device_cpu = {"cpu", cpu_open};
