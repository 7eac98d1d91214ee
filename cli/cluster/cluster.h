/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of `muster` that look at jobs in a cluster.
 *
 * They are a program of their own, muster-cluster, that `muster` starts in its place: the API
 * client needs TLS, and the program in a task's image must not.  They read what the
 * operator has written and what kubectl could show; they write nothing.
 */
#ifndef CLI_CLUSTER_H
#define CLI_CLUSTER_H

#include <cjson/cJSON.h>

#include "lib/base/buf.h"
#include "lib/kube/kube_stream.h"

int cluster_top(int argc, char **argv);
int cluster_explain(int argc, char **argv);

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
int cluster_get(struct kube_client *c, cJSON **out, struct mu_err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- fields.c: values in objects, which may hold anything ---- */
const cJSON *field_at(const cJSON *object, const char *path); /* "status.progress.step" */
const char *field_text(const cJSON *object, const char *path, const char *otherwise);
double field_number(const cJSON *object, const char *path, double otherwise);
/* "12s", "3m", "4h5m", "2d": how long before `now` an RFC 3339 time was; "?" when it is none. */
const char *field_age(const cJSON *object, const char *path, double now, char out[16]);
/* Appends text without what could move a terminal's cursor. */
void put_safe(struct mu_buf *out, const char *text);

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
