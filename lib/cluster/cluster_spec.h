/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a cluster: jobs, and the address of each task (indices may be sparse).
 *
 * It is read from JSON, {"ps": ["a:1", "b:2"], "worker": {"0": "c:3", "7": "d:4"}}, from TF_CONFIG,
 * {"cluster": …, "task": {"type": "worker", "index": 0}}, and from the flags --ps_hosts and so on.
 * Invalid addresses and duplicate indices are errors that name the entry.  A job with an empty list
 * is ignored, as in TensorFlow; an empty --ps_hosts= is an error. */
#ifndef MU_LIB_CLUSTER_CLUSTER_SPEC_H
#define MU_LIB_CLUSTER_CLUSTER_SPEC_H

#include "lib/base/buf.h"

/* Exit code of a task whose machine does not support the requested kernels. */
enum { MU_EXIT_KERNELS = 3 };

enum { MU_CLUSTER_MAX_JOBS = 64, MU_CLUSTER_MAX_TASKS = 100000 };

struct mu_cluster_task {
	int index;
	char *address; /* "host:port", or "unix:/path" */
};
struct mu_cluster_job {
	char *name;
	struct mu_cluster_task *tasks; /* sorted by index */
	unsigned n_tasks;
};
struct mu_cluster {
	struct mu_cluster_job *jobs; /* sorted by name */
	unsigned n_jobs;
};
/* The task of this process. */
struct mu_self {
	char job[64]; /* "": unknown */
	int index;
};

void mu_cluster_fini(struct mu_cluster *c);

int mu_cluster_add(struct mu_cluster *c, const char *job, int index, const char *address,
		   struct mu_err *err);
/* Parses {"ps": […], …} or {"cluster": {"ps": […], …}}. */
int mu_cluster_parse_json(struct mu_cluster *out, struct mu_span text, struct mu_err *err);
/* Parses TF_CONFIG.  A job named "master" is not renamed to "chief".  self->job is "" if there is
 * no "task". */
int mu_cluster_parse_tf_config(struct mu_cluster *out, struct mu_self *self, struct mu_span text,
			       struct mu_err *err);
/* Parses one flag "--ps_hosts=a:1,b:2" (or "--ps-hosts", dashes optional): adds job "ps".  Returns
 * 1 if arg is such a flag, else 0. */
int mu_cluster_parse_flag(struct mu_cluster *c, const char *arg, struct mu_err *err);
/* Adds the hosts of "a:1,b:2" as tasks 0, 1, … of job. */
int mu_cluster_add_hosts(struct mu_cluster *c, const char *job, const char *hosts,
			 struct mu_err *err);

const struct mu_cluster_job *mu_cluster_job(const struct mu_cluster *c, const char *job);
unsigned mu_cluster_num_tasks(const struct mu_cluster *c, const char *job); /* 0: no such job */
/* Returns NULL if the task does not exist; err then lists the existing jobs or tasks. */
const char *mu_cluster_address(const struct mu_cluster *c, const char *job, int index,
			       struct mu_err *err);
/* Writes a job as a list if its indices are 0..n-1, else as a map. */
void mu_cluster_write_json(const struct mu_cluster *c, struct mu_buf *out);
void mu_cluster_write_tf_config(const struct mu_cluster *c, const char *job, int index,
				struct mu_buf *out);
/* Writes a ClusterDef, as in TensorFlow's ServerDef and ConfigProto. */
void mu_cluster_write_def(const struct mu_cluster *c, struct mu_buf *out);
/* Accepts "host:port" (port 1..65535), "[v6]:port" or "unix:/path". */
int mu_address_check(const char *address, struct mu_err *err);

#define MU_AUTO_CLUSTER __attribute__((cleanup(mu_cluster_fini))) struct mu_cluster

#endif
