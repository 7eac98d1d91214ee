/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device is a plug-in, libmuster-cuda.so.  MUSTER_CUDA_PLUGIN names its file.  Otherwise
 * the task searches the program's directory (a build directory has both) and then ../lib
 * (PREFIX/bin and PREFIX/lib).  The task loads the plug-in only when GPU kernels are requested;
 * the plug-in then reports whether the driver works. */
#include "task/device/gpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Relative to the directory of the program. */
static const char *const plugin_paths[] = {"libmuster-cuda.so", "../lib/libmuster-cuda.so"};

/* Returns the directory of this program, with the last slash. */
static int program_directory(char *out, size_t n, struct mu_err *err)
{
	ssize_t len = readlink("/proc/self/exe", out, n - 1);

	if (len < 0)
		return mu_fail_errno(err, errno, "cannot read /proc/self/exe");
	out[len] = '\0';
	char *slash = strrchr(out, '/');
	if (slash)
		slash[1] = '\0';
	return 0;
}

static int plugin_path(char *out, size_t n, struct mu_err *err)
{
	const char *env_path = getenv("MUSTER_CUDA_PLUGIN");
	char directory[PATH_MAX];
	int rc;

	if (env_path && *env_path) {
		if ((size_t)snprintf(out, n, "%s", env_path) < n)
			return 0;
		return mu_fail(err, MU_INVALID_ARGUMENT, "MUSTER_CUDA_PLUGIN is too long a path");
	}
	if ((rc = program_directory(directory, sizeof directory, err)))
		return rc;
	for (unsigned i = 0; i < MU_COUNT(plugin_paths); i++)
		if ((size_t)snprintf(out, n, "%s%s", directory, plugin_paths[i]) < n &&
		    access(out, F_OK) == 0)
			return 0;
	return mu_fail(
	    err, MU_FAILED_PRECONDITION,
	    "the GPU plug-in libmuster-cuda.so is neither in %.100s nor in %.100s../lib; "
	    "install it there or set MUSTER_CUDA_PLUGIN",
	    directory, directory);
}

/* Returns the minimum compute capability: 90 for "cuda-sm90"; 0: any. */
static int min_capability(const char *requested)
{
	const char *sm = strstr(requested, "-sm");

	return sm ? (int)strtol(sm + 3, NULL, 10) : 0;
}

static int check_capability(const char *requested, struct device_set *gpus, char *chosen,
			    size_t n_chosen, struct mu_err *err)
{
	int min = min_capability(requested);
	struct gpu_info f;

	gpu_get_info(gpu_at(gpus, 0), &f);
	int actual = f.major * 10 + f.minor;
	if (min > actual)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "%s was asked for, but %s can run code for sm_%d at most", requested,
			       f.name, actual);
	snprintf(chosen, n_chosen, "cuda-sm%d", actual);
	return 0;
}

static int load_plugin(const char *requested, const struct cuda_plugin **out, struct mu_err *err)
{
	char path[PATH_MAX], why[200] = "";
	int rc = plugin_path(path, sizeof path, err);

	if (rc)
		return rc;
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!so)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "%s was asked for, but the GPU plug-in cannot be loaded: %s",
			       requested, dlerror());
	cuda_plugin_fn *get;
	*(void **)&get = dlsym(so, "muster_cuda_plugin");
	if (!get)
		rc =
		    mu_fail(err, MU_FAILED_PRECONDITION, "%s is not a GPU plug-in of Muster", path);
	else if (get(out, why, sizeof why))
		rc = mu_fail(err, MU_FAILED_PRECONDITION, "no CUDA here: %s", why);
	else if ((*out)->version != CUDA_PLUGIN_VERSION)
		rc = mu_fail(err, MU_FAILED_PRECONDITION,
			     "%s is of another version of muster than this program", path);
	if (rc)
		dlclose(so);
	return rc; /* the plug-in stays loaded: its kernels are in use until the process ends */
}

int cuda_open(const char *requested, const struct gpu_options *o, struct device_set **out,
	      char *chosen, size_t n_chosen, struct mu_err *err)
{
	const struct cuda_plugin *plugin;
	struct device_set *gpus;
	int rc = load_plugin(requested, &plugin, err);

	if (rc || (rc = gpu_set_open(plugin, o ? o : &(struct gpu_options){0}, &gpus, err)))
		return rc;
	if ((rc = check_capability(requested, gpus, chosen, n_chosen, err)))
		device_set_free(gpus);
	else
		*out = gpus;
	return rc;
}
