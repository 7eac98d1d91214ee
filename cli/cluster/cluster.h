/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of `muster` that make HTTP requests: to the API server of a cluster, or to a task's
 * HTTP port.
 *
 * They are in a separate program, muster-cluster, which `muster` executes. So the program in a
 * task's image does not need libcurl and its dependencies. `submit` applies a job. The other verbs
 * only read objects and write nothing.
 */
#ifndef MU_CLI_CLUSTER_CLUSTER_H
#define MU_CLI_CLUSTER_CLUSTER_H

#include <cjson/cJSON.h>

#include "cli/cli.h"
#include "cli/job_progress.h"
#include "lib/kube/kube_stream.h"

int cluster_top(int argc, char **argv);
int cluster_explain(int argc, char **argv);
int cluster_submit(int argc, char **argv);
int cluster_logs(int argc, char **argv);
int cluster_wait(int argc, char **argv);
int cluster_status(int argc, char **argv);

/* ---- connect.c ---- */
struct cluster_options {
	const char *kubeconfig, *context, *ns;
	bool all_namespaces;
};
/* The rows of these options in a table of struct cli_option.  o points to the cluster_options. */
#define CLUSTER_OPTIONS(o)                                                                         \
	{"kubeconfig", .value = &(o)->kubeconfig}, {"context", .value = &(o)->context},            \
	    {"namespace", 'n', .value = &(o)->ns},                                                 \
	{                                                                                          \
		"all-namespaces", 'A', .flag = &(o)->all_namespaces                                \
	}
/* *ns is the namespace to read, a new string; NULL for all namespaces. */
int cluster_connect(const struct cluster_options *o, struct kube_client **out, char **ns,
		    struct mu_err *err);
#define CLUSTER_JOBS_PATH "/apis/muster.dev/v1/namespaces/%s/distributedtrainingjobs"
#define CLUSTER_JOB_PATH  CLUSTER_JOBS_PATH "/%s"
#define CLUSTER_NO_JOBS                                                                            \
	"this cluster has no DistributedTrainingJobs: helm install muster charts/muster, or "      \
	"kubectl apply -f deploy/muster.yaml"
/* The job that a command line refers to. */
struct cluster_job {
	struct kube_client *client;
	char *ns, *name;
};
/* `arg` is a name, job/NAME or the path of a manifest. Returns 0, or the exit status of a failure
 * that it has reported. */
int cluster_job_open(struct cluster_job *out, const char *verb, const char *arg,
		     const struct cluster_options *o);
void cluster_job_close(struct cluster_job *job);
int cluster_job_get(const struct cluster_job *job, cJSON **out, struct mu_err *err);
int cluster_job_pods(const struct cluster_job *job, cJSON **out, struct mu_err *err);
/* Returns the given options for suggested commands, " -n NAMESPACE --context NAME"; a new string.
 */
char *cluster_options_text(const struct cluster_options *o);
/* Pod labels. */
#define CLUSTER_LABEL_TASK  "muster.dev/task"
#define CLUSTER_LABEL_INDEX "muster.dev/index"
/* True if a retry may succeed. */
bool cluster_is_transient(int rc);
int cluster_get(struct kube_client *c, cJSON **out, struct mu_err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- fields.c: values of untrusted objects ---- */
const cJSON *field_at(const cJSON *object, const char *path); /* "status.progress.step" */
const char *field_text(const cJSON *object, const char *path, const char *default_value);
double field_number(const cJSON *object, const char *path, double default_value);
/* The progress in the job's status; step -1 if there is none. */
void field_progress(const cJSON *job, struct job_progress *out);
/* Formats the age of an RFC 3339 time as "12s", "3m", "4h5m" or "2d"; "?" if it is invalid. */
const char *field_age(const cJSON *object, const char *path, double now, char out[16]);

/* Returns the reason why a container of the pod waits, or why the pod has no node; NULL if neither.
 * *message may be "". */
const char *pod_waiting_reason(const cJSON *pod, const char **message);

/* ---- explain.c ---- */
/* Prints the report on a job. pods and events (lists) and tasks (task name -> status) may be NULL.
 */
void explain_print(struct mu_buf *out, const cJSON *job, const cJSON *pods, const cJSON *events,
		   const cJSON *tasks, double now);
/* ---- explain_tasks.c: slow tasks, from the status of each task ---- */
void explain_tasks(struct mu_buf *out, const cJSON *tasks);
/* ---- top.c ---- */
/* Prints a table of jobs in descending order of speed. `jobs` is an array of objects. */
void top_print(struct mu_buf *out, const cJSON *jobs, bool with_namespace, double now);

#endif
