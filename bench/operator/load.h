/* SPDX-License-Identifier: Apache-2.0 */
/* A load generator that is independent of the operator: it creates jobs, watches pods and jobs, and
 * acts as the kubelet. It reads the resource use of each process from /proc and the writes from the
 * API server's counters. The same program drives every operator and the bare loop of creates, so
 * its own cost is the same in all runs. */
#ifndef MU_BENCH_OPERATOR_LOAD_H
#define MU_BENCH_OPERATOR_LOAD_H

#include "lib/base/clock.h"
#include "lib/kube/kube_stream.h"

enum { LOAD_PROCESSES = 8 };

/* ---- measure.c ---- */
double mu_clock(void); /* monotonic seconds */
/* Resource use of a process so far. */
struct load_process {
	const char *name;
	int pid;
	double cpu;     /* CPU seconds at the first reading */
	long rss, peak; /* kB */
};
double load_cpu(int pid);
void load_memory(struct load_process *p);
/* The API server's counters of requests. */
struct load_counts {
	long writes;    /* writes, except leases and those of this program */
	long events;    /* of these, events */
	long conflicts; /* of these, refused with 409 */
	long reads;     /* lists and gets, except of leases */
};
void load_count(struct kube_client *c, const char *resource, struct load_counts *out);
/* Counters of the operator itself, with the metric names that all operators use. */
struct load_own {
	long reads;     /* GETs, including the start of watches */
	long conflicts; /* calls with response 409 */
	long retries;   /* of the work queue */
};
void load_own(struct kube_client *c, struct load_own *out);

/* ---- world.c ---- */
/* The state from the watches, and the kubelet threads, which update the status of pods. */
struct world;
struct world *world_new(struct kube_client *c, const char *job_path, int jobs);
void world_stop(struct world *w);
/* From now on workers become Running (ps tasks do so immediately), or Succeeded. */
void world_run_workers(struct world *w);
void world_end_workers(struct world *w);
/* Waits until n pods exist, n pods were updated, or n jobs have the phase; false after `seconds`
 * without any change. */
bool world_await_pods(struct world *w, int n, double seconds);
bool world_await_marks(struct world *w, int n, double seconds);
bool world_await_jobs(struct world *w, const char *what, int n, double seconds);
/* Inconsistencies at the end: surplus pods, and jobs whose status does not have all pods ready (for
 * an operator with status.summary). */
int world_pods_over(struct world *w, int n);
int world_jobs_behind(struct world *w);
/* Time at which the given share (0 to 1) of `n` pods existed; for a rate without its start and end.
 */
double world_pod_time(struct world *w, int n, double share);

/* ---- parallel work ---- */
typedef void load_item_fn(void *arg, int i);
void load_parallel(int threads, int n, load_item_fn *fn, void *arg);

#endif
