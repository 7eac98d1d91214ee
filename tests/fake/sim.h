/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster and its clock in one thread: objects with history, a kubelet, a garbage collector, and
 * the whole controller beside them, behind struct controller_io.
 *
 * Everything that happens is drawn from one seed, so a schedule that breaks something breaks it
 * again.  What a task's ends are (its script) depends only on the job, the task, the index and how
 * often it has ended before: so the disturbed run and the undisturbed one have the same story, and
 * must come to the same end.
 */
#ifndef TESTS_FAKE_SIM_H
#define TESTS_FAKE_SIM_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator/controller/manager.h"

#define SIM_EPOCH 1700000000.0
#define SIM_KEY   "default/j"

enum sim_kind { SIM_JOB, SIM_POD, SIM_SERVICE, SIM_NODE, SIM_WATCHED, SIM_OTHER = SIM_WATCHED };
enum {
	SIM_OBJECTS = 256,
	SIM_EVENTS = 8192,
	SIM_ENDS = 64,
	SIM_LATE = 12,
	SIM_TOGETHER = 8,
	SIM_DEEDS = 24,
	SIM_WORKERS_MAX = 16,
	SIM_OPERATORS = 2
};

/* ---- sim_secret.c ---- */
struct sim;
struct mu_certs;
/* Certificates that say in plain words who has signed them. */
int sim_certs(struct mu_certs *out, const char *const *names, unsigned n_names, int64_t from,
	      int64_t to, struct mu_err *err);
/* No two tasks that have this version and the one before may mistrust each other. */
void sim_check_secret(struct sim *s, const cJSON *was, const cJSON *is);
/* One that comes back under its name has a CA that the status knows. */
void sim_check_new_secret(struct sim *s, const cJSON *secret);

/* ---- sim_notice.c ---- */
/* Tells those who may be told now; whether any of them has heard, as far as the operator knows. */
bool sim_tell(struct sim *s);
int sim_tell_task(void *user, const struct pod *task, const char *members);
void sim_check_epoch(struct sim *s, const cJSON *was, const cJSON *is);

enum sim_stage { STAGE_PENDING, STAGE_STARTED, STAGE_READY, STAGE_OVER };
struct sim_object {
	enum sim_kind kind;
	char path[256]; /* with its name */
	cJSON *json;
	enum sim_stage stage;
	double due;     /* when its kubelet does something next; INFINITY */
	double orphan;  /* when the garbage collector comes for it; 0: it does not */
	bool finishing; /* its server was asked to end */
	int told;       /* epoch of the cluster that it was told of; 0: none yet */
};
struct sim_event {
	enum sim_kind kind;
	bool deleted;
	cJSON *json;
};
/* How often an index of the job has ended. */
struct sim_ends {
	char task[16];
	int index, n;
};
struct sim_call {
	char method[8], path[256];
	cJSON *body;
};

/* What somebody does to the cluster at a time. */
enum sim_deed {
	DEED_NONE,
	DEED_SUSPEND,
	DEED_RESUME,
	DEED_SCALE,
	DEED_DELETE_POD,
	DEED_EVICT,
	DEED_KILL,
	DEED_FORCE_DELETE, /* a worker's, by hand, with no grace: it is gone without a word */
	DEED_NODE_LOST,
	DEED_SPOIL, /* the manifest; MEND corrects it */
	DEED_MEND,
	DEED_FREE_NAME, /* that somebody else's object has */
	DEED_RAISE_QUOTA,
	DEED_DELETE_OWNED, /* something that the job owns, but no pod */
	DEED_MAKE_ANEW,    /* delete the job and make one of its name */
	DEED_DELETE_JOB
};
struct sim_script {
	cJSON *job;
	struct {
		enum sim_deed deed;
		double at;
		int value;
	} deeds[SIM_DEEDS];
	/* The code of the n-th end (from 0) of an index; -1: it runs until told to finish. */
	int (*end)(const struct sim_script *s, const char *task, int index, int n);
	uint64_t seed;
	bool stuck_pending; /* no pod ever starts */
	bool in_step;       /* workers wait for each other: mode sync */
	bool gpus, taken;   /* the nodes have GPUs; none of them ever becomes free */
	bool broken_gpus;   /* no task can use its GPU */
	bool no_gpu_image;  /* the operator has no image with GPU kernels */
	double work;        /* seconds that a task runs; 0: some */
	int cert_life;      /* seconds; 0: as usual */
	int quota;          /* most pods at a time; 0: any */
	/* Path of an object that is not the job's. */
	const char *taken_name;
};

/* One leads, another follows the watches and waits; when the lease passes while the first is in the
 * middle of something, it finds out by its next call. */
struct sim_operator {
	struct sim *sim;
	struct controller controller;
	int position[SIM_WATCHED]; /* of its watches, in the history */
	bool busy;                 /* in the middle of a look */
	bool deposed;              /* led once; begins anew when it finds out */
};

struct sim {
	struct sim_script script;
	uint64_t random;
	bool faulty;
	double now, skew; /* virtual seconds; how wrong the operator's wall clock is */
	struct sim_object objects[SIM_OBJECTS];
	int n_objects;
	struct sim_event *events;
	int n_events;
	struct sim_ends ends[SIM_ENDS];
	int n_ends, next_uid, writes, calls, crashes, splits;
	int kernels_events; /* posted for the condition KernelsMissing */
	int together;       /* how often several calls were under way at once */
	int switches;       /* of certificates under living pods */
	int notices;        /* how often the status said that all have seen another epoch */
	double ca_since;    /* when the Secret's ca.crt last changed */
	/* Workers in step that have joined and not said that they leave. */
	bool members[SIM_WORKERS_MAX];
	char killed[32];            /* "worker/1 ", which somebody killed; "" */
	bool node_lost, lost_owned; /* lost_owned: somebody has deleted what is not watched */
	double node_lost_at;
	struct sim_operator operators[SIM_OPERATORS], *leader;
	int n_operators;
	bool dead;                      /* the leader was killed: nothing that it does arrives */
	struct sim_call late[SIM_LATE]; /* sent by one that died, not arrived yet */
	int n_late;
	bool late_call;   /* the one under way is late */
	char broken[512]; /* the first rule that was broken */
	bool trace;
};

/* ---- sim_cluster.c ---- */
uint64_t sim_random(struct sim *s);
bool sim_chance(struct sim *s, int per_mille);
double sim_between(struct sim *s, double from, double to);
void sim_break(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct sim_object *sim_find(struct sim *s, const char *path);
struct sim_object *sim_add(struct sim *s, const char *path, cJSON *json);
void sim_changed(struct sim *s, struct sim_object *o);
/* What it owned goes a little later: sim_collect. */
void sim_remove(struct sim *s, struct sim_object *o);
void sim_collect(struct sim *s, struct sim_object *o);
/* The end of a pod that was deleted, as its kubelet confirms it. */
void sim_confirm(struct sim *s, struct sim_object *o);
int sim_serve(struct sim *s, const char *method, const char *path, const cJSON *body, cJSON **out,
	      struct mu_err *err);
int sim_version(const struct sim *s); /* of what was changed last */
const cJSON *sim_at(const cJSON *o, const char *dotted);
const char *sim_text(const cJSON *o, const char *dotted); /* "" when absent */

/* ---- sim_kubelet.c ---- */
bool sim_wants_gpu(const cJSON *pod);
/* Does what is due now; when the next thing is. */
void sim_world(struct sim *s);
double sim_world_due(const struct sim *s);
int sim_finish(struct sim *s, const char *ip);

/* ---- sim_run.c ---- */
void sim_start(struct sim *s, const struct sim_script *script, uint64_t seed, bool faulty);
/* Until nothing more happens, or something is broken. */
void sim_run(struct sim *s);
/* The faults end, and time goes on for that long. */
void sim_settle(struct sim *s, double seconds);
void sim_restart(struct sim *s);
void sim_end(struct sim *s);

#endif
