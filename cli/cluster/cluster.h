/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of `muster` that make HTTP calls: to a cluster's API server, or to a task's status
 * page.
 *
 * They are a program of their own, muster-cluster, that `muster` starts in its place: the program
 * in a task's image does without libcurl and its libraries.  `submit` applies a job; the others
 * read what the operator has written and what kubectl could show, and write nothing.
 */
#ifndef CLI_CLUSTER_H
#define CLI_CLUSTER_H

#include <cjson/cJSON.h>

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
/* --kubeconfig, --context, --namespace, -n, -A: 1 when argv[*i] was one of them, 0 when not, -1
 * when its value is missing. */
int cluster_option(int argc, char **argv, int *i, struct cluster_options *o);
/* *ns is the namespace to look at, new memory; NULL for all of them. */
int cluster_connect(const struct cluster_options *o, struct kube_client **out, char **ns,
		    struct mu_err *err);
#define CLUSTER_JOBS_PATH "/apis/muster.dev/v1/namespaces/%s/distributedtrainingjobs"
#define CLUSTER_JOB_PATH  CLUSTER_JOBS_PATH "/%s"
#define CLUSTER_NO_JOBS                                                                            \
	"this cluster has no DistributedTrainingJobs: helm install muster charts/muster, or "      \
	"kubectl apply -f deploy/muster.yaml"
/* The job that a command line names. */
struct cluster_job {
	struct kube_client *client;
	char *ns, *name;
};
/* `word` is a name, job/NAME or a manifest's path.  0, or the exit status of a failure that it has
 * reported. */
int cluster_job_open(struct cluster_job *out, const char *verb, const char *word,
		     const struct cluster_options *o);
void cluster_job_close(struct cluster_job *job);
int cluster_job_get(const struct cluster_job *job, cJSON **out, struct mu_err *err);
int cluster_job_pods(const struct cluster_job *job, cJSON **out, struct mu_err *err);
/* " -n NAMESPACE --context NAME" as far as they were given, for a command to type next; new memory.
 */
char *cluster_options_text(const struct cluster_options *o);
/* Labels of pods. */
#define CLUSTER_LABEL_TASK  "muster.dev/task"
#define CLUSTER_LABEL_INDEX "muster.dev/index"
/* The server may answer if it is asked again later. */
bool cluster_is_transient(int rc);
int cluster_get(struct kube_client *c, cJSON **out, struct mu_err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- fields.c: values in objects, which may hold anything ---- */
const cJSON *field_at(const cJSON *object, const char *path); /* "status.progress.step" */
const char *field_text(const cJSON *object, const char *path, const char *otherwise);
double field_number(const cJSON *object, const char *path, double otherwise);
/* The progress in the job's status; step -1: none was reported. */
void field_progress(const cJSON *job, struct job_progress *out);
/* "12s", "3m", "4h5m", "2d": how long before `now` an RFC 3339 time was; "?" when it is none. */
const char *field_age(const cJSON *object, const char *path, double now, char out[16]);

/* Why a pod's containers do not run, or why it has no node; NULL: they do.  *message may be "". */
const char *pod_waiting_reason(const cJSON *pod, const char **message);

/* ---- explain.c ---- */
/* One screen on a job; pods, events (lists) and tasks (name -> what it says of itself) may be NULL.
 */
void explain_print(struct mu_buf *out, const cJSON *job, const cJSON *pods, const cJSON *events,
		   const cJSON *tasks, double now);
/* ---- explain_tasks.c: who is slow, from what the tasks say of themselves ---- */
void explain_tasks(struct mu_buf *out, const cJSON *tasks);
/* ---- top.c ---- */
/* A table of jobs, the busiest first; `jobs` is an array of objects. */
void top_print(struct mu_buf *out, const cJSON *jobs, bool with_namespace, double now);

#endif
