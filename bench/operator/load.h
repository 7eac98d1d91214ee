/* SPDX-License-Identifier: Apache-2.0 */
/* A load on a job operator that knows nothing of the operator: it creates jobs, follows pods and
 * jobs by watch, plays the kubelet, and takes what each process cost from /proc and what was
 * written from the API server's own counters.
 *
 * The same program drives every operator and the bare loop of creates, so that what it costs itself
 * is the same in all of them.
 */
#ifndef BENCH_OPERATOR_LOAD_H
#define BENCH_OPERATOR_LOAD_H

#include "lib/base/clock.h"
#include "lib/kube/kube_stream.h"

enum { LOAD_PROCESSES = 8 };

/* ---- measure.c ---- */
double mu_clock(void); /* monotonic seconds */
/* What a process has cost so far. */
struct load_process {
	const char *name;
	int pid;
	double cpu;     /* seconds of the first reading */
	long rss, peak; /* kB */
};
double load_cpu(int pid);
void load_memory(struct load_process *p);
/* The API server's counters of requests. */
struct load_counts {
	long writes;    /* all but leases and what this program wrote itself */
	long events;    /* of these, events */
	long conflicts; /* of these, refused with 409 */
	long reads;     /* lists and gets, but of leases */
};
void load_count(struct kube_client *c, const char *resource, struct load_counts *out);
/* What the operator itself counts, by the names that all of them use. */
struct load_own {
	long reads;     /* GETs, a watch's beginning among them */
	long conflicts; /* calls that were answered with 409 */
	long retries;   /* of the work queue */
};
void load_own(struct kube_client *c, struct load_own *out);

/* ---- world.c ---- */
/* What the watches have shown; the kubelet's threads mark what is due. */
struct world;
struct world *world_new(struct kube_client *c, const char *job_path, int jobs);
void world_stop(struct world *w);
/* Workers are marked Running as well from now on (ps are at once), or Succeeded. */
void world_run_workers(struct world *w);
void world_end_workers(struct world *w);
/* Waits until so many pods exist, were marked, or jobs say so; false after `seconds` without any
 * news. */
bool world_await_pods(struct world *w, int n, double seconds);
bool world_await_marks(struct world *w, int n, double seconds);
bool world_await_jobs(struct world *w, const char *what, int n, double seconds);
/* What does not agree at the end: pods that are too many, and jobs whose status does not have all
 * its pods ready (of an operator that says so in status.summary). */
int world_pods_over(struct world *w, int n);
int world_jobs_behind(struct world *w);
/* When the share-th part of `n` pods was there, from 0 to 1; to take a rate without its ends. */
double world_pod_time(struct world *w, int n, double share);

/* ---- parallel work ---- */
typedef void load_item_fn(void *arg, int i);
void load_parallel(int threads, int n, load_item_fn *fn, void *arg);

#endif
