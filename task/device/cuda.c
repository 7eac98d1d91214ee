/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device is a plug-in, libmuster-cuda.so, looked for where MUSTER_CUDA_PLUGIN says, else
 * beside the program.  It is loaded only when asked for, and answers whether it can run here. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "task/device/device.h"
#include "task/kernels/loops.h"

typedef int probe_fn(char *why, size_t n);

static int plugin_path(char *out, size_t n, struct mu_err *err)
{
	static const char file[] = "libmuster-cuda.so";
	const char *set = getenv("MUSTER_CUDA_PLUGIN");
	char self[PATH_MAX];

	if (set && *set) {
		if ((size_t)snprintf(out, n, "%s", set) < n)
			return 0;
		return mu_fail(err, MU_INVALID_ARGUMENT, "MUSTER_CUDA_PLUGIN is too long a path");
	}
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
	if (len < 0)
		return mu_fail_errno(err, errno, "cannot find out where this program lies");
	self[len] = '\0';
	char *slash = strrchr(self, '/');
	if (slash)
		slash[1] = '\0';
	if ((size_t)snprintf(out, n, "%s%s", slash ? self : "", file) < n)
		return 0;
	return mu_fail(err, MU_INTERNAL, "the path of %s is too long", file);
}

static int cuda_open(const char *asked, struct device_choice *out, struct mu_err *err)
{
	char path[PATH_MAX], why[200] = "";
	int rc = plugin_path(path, sizeof path, err);

	if (rc)
		return rc;
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!so)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "%s was asked for, but the GPU plug-in cannot be loaded: %s", asked,
			       dlerror());
	probe_fn *probe;
	*(void **)&probe = dlsym(so, "muster_cuda_probe");
	if (!probe) {
		dlclose(so);
		return mu_fail(err, MU_FAILED_PRECONDITION, "%s is no GPU plug-in of muster", path);
	}
	if (probe(why, sizeof why)) {
		dlclose(so);
		return mu_fail(err, MU_FAILED_PRECONDITION, "no CUDA here: %s", why);
	}
	if ((rc = cpu_kernels_select(NULL, err))) /* what has no GPU kernel runs beside it */
		return rc;
	out->gpu = true; /* stays loaded: its kernels are in use until the process ends */
	snprintf(out->chosen, sizeof out->chosen, "cuda");
	snprintf(out->probed, sizeof out->probed, "cuda");
	return 0;
}

const struct device_kind device_cuda = {"cuda", cuda_open};
