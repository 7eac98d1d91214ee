/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated cluster and clock in one thread: objects with history, a kubelet, a garbage
 * collector, and the complete controller behind struct controller_io.
 *
 * One seed determines all events, so a failing schedule can be repeated. The exit codes of a task
 * (its script) depend only on the job, the task, the index and the number of previous exits. So a
 * faulty run has the same scenario as the run without faults and must reach the same end.
 */
#ifndef MU_TESTS_FAKE_SIM_H
#define MU_TESTS_FAKE_SIM_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator/controller/reconcile.h"

#define SIM_EPOCH 1700000000.0
#define SIM_KEY   "default/j"

enum sim_kind { SIM_JOB, SIM_POD, SIM_SERVICE, SIM_NODE, SIM_WATCHED, SIM_OTHER = SIM_WATCHED };
enum {
	SIM_OBJECTS = 256,
	SIM_EVENTS = 8192,
	SIM_ENDS = 64,
	SIM_IN_FLIGHT = 12,
	SIM_USER_ACTIONS = 24,
	SIM_WORKERS_MAX = 16,
	SIM_OPERATORS = 2
};

/* ---- sim_secret.c ---- */
struct sim;
struct mu_certs;
/* Certificates that contain the name of their CA in plain text. */
int sim_certs(struct mu_certs *out, const char *const *names, unsigned n_names, int64_t from,
	      int64_t to, struct mu_err *err);
/* Checks that a task with this version and a task with the previous one trust each other. */
void sim_check_secret(struct sim *s, const cJSON *was, const cJSON *is);
void sim_encode_secret(cJSON *secret);

/* ---- sim_membership.c ---- */
/* Sends pending membership updates; returns whether the operator got a confirmation. */
bool sim_send_members(struct sim *s);
int sim_send_members_to(struct sim *s, const struct pod *task, const char *members);
void sim_check_epoch(struct sim *s, const cJSON *was, const cJSON *is);

enum sim_stage { STAGE_PENDING, STAGE_STARTED, STAGE_READY, STAGE_OVER };
struct sim_object {
	enum sim_kind kind;
	char path[256]; /* path with the name */
	cJSON *json;
	enum sim_stage stage;
	double due;      /* time of the next action of its kubelet; INFINITY: none */
	double orphan;   /* time of its garbage collection; 0: none */
	bool finishing;  /* its server was asked to finish */
	int acked_epoch; /* cluster epoch of its last membership update; 0: none */
};
struct sim_event {
	enum sim_kind kind;
	bool deleted;
	cJSON *json;
};
/* Number of exits of a task index. */
struct sim_ends {
	char task[16];
	int index, n;
};
struct sim_call {
	char method[8], path[256];
	cJSON *body;
};

/* Actions of users on the cluster. */
enum sim_user_action {
	USER_NONE,
	USER_SUSPEND,
	USER_RESUME,
	USER_SCALE,
	USER_DELETE_POD,
	USER_EVICT,
	USER_KILL,
	USER_FORCE_DELETE, /* force-deletes a worker's pod: it cannot deregister */
	USER_NODE_LOST,
	USER_BREAK_MANIFEST, /* breaks the manifest; FIX_MANIFEST corrects it */
	USER_FIX_MANIFEST,
	USER_FREE_NAME, /* frees a name used by another owner's object */
	USER_RAISE_QUOTA,
	USER_DELETE_OWNED, /* deletes an object that the job owns, except pods */
	USER_RECREATE_JOB, /* deletes the job and creates one of the same name */
	USER_DELETE_JOB
};
struct sim_script {
	cJSON *job;
	struct {
		enum sim_user_action action;
		double at;
		int value;
	} user_actions[SIM_USER_ACTIONS];
	/* Exit code of the n-th exit (from 0) of an index; -1: runs until it is asked to finish. */
	int (*end)(const struct sim_script *s, const char *task, int index, int n);
	uint64_t seed;
	bool stuck_pending; /* no pod ever starts */
	bool unreachable;   /* no task answers the operator's requests for its status */
	int departure_exit_code;
	bool in_step;          /* mode sync: workers wait for each other */
	bool gpus, gpus_taken; /* the nodes have GPUs; no GPU ever becomes free */
	bool broken_gpus;      /* no task can use its GPU */
	bool no_gpu_image;     /* the operator has no image with GPU kernels */
	double work;           /* duration of a task in seconds; 0: random */
	int cert_life;         /* lifetime of certificates in seconds; 0: default */
	int quota;             /* quota of pods; 0: unlimited */
	/* Path of an object that the job does not own. */
	const char *taken_name;
};

/* One operator leads, another follows the watches and waits. If the lease passes while the leader
 * is in the middle of a reconcile, it learns that from its next call. */
struct sim_operator {
	struct sim *sim;
	struct controller controller;
	int position[SIM_WATCHED]; /* positions of its watches in the history */
	bool busy;                 /* in the middle of a reconcile */
	bool lost_lease;           /* was leader; restarts when it learns of the change */
};

struct sim {
	struct sim_script script;
	uint64_t random;
	bool faulty;
	double now, skew; /* virtual seconds; error of the operator's wall clock */
	struct sim_object objects[SIM_OBJECTS];
	int n_objects;
	struct sim_event *events;
	int n_events;
	struct sim_ends ends[SIM_ENDS];
	int n_ends, next_uid, writes, calls, crashes, splits;
	int kernels_events; /* events for the condition KernelsMissing */
	int switches;       /* certificate changes under live pods */
	int epochs_acked;   /* number of epochs that the status reported as seen by all */
	double ca_since;    /* time of the last change of the Secret's ca.crt */
	/* Synchronous workers that have joined and not deregistered. */
	bool members[SIM_WORKERS_MAX];
	char killed[32];            /* killed worker, as "worker/1 "; "": none */
	bool node_lost, lost_owned; /* lost_owned: a user deleted an object that is not watched */
	double node_lost_at;
	struct sim_operator operators[SIM_OPERATORS], *leader;
	int n_operators;
	bool dead; /* the leader was killed: its calls do not arrive */
	struct sim_call
	    in_flight[SIM_IN_FLIGHT]; /* calls of a killed operator that have not arrived yet */
	int n_in_flight;
	bool in_flight_call; /* the current call was in flight when its operator was killed */
	char violation[512]; /* the first violated rule */
	bool trace;
};

/* ---- sim_cluster.c ---- */
uint64_t sim_random(struct sim *s);
bool sim_chance(struct sim *s, int per_mille);
double sim_between(struct sim *s, double from, double to);
void sim_violation(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct sim_object *sim_find(struct sim *s, const char *path);
struct sim_object *sim_add(struct sim *s, const char *path, cJSON *json);
void sim_changed(struct sim *s, struct sim_object *o);
/* Its dependents are deleted later by sim_collect. */
void sim_remove(struct sim *s, struct sim_object *o);
void sim_collect(struct sim *s, struct sim_object *o);
/* The kubelet confirms the end of a deleted pod. */
void sim_confirm(struct sim *s, struct sim_object *o);
int sim_serve(struct sim *s, const char *method, const char *path, const cJSON *body, cJSON **out,
	      struct mu_err *err);
int sim_version(const struct sim *s); /* version of the last change */
const cJSON *sim_at(const cJSON *o, const char *dotted);
const char *sim_text(const cJSON *o, const char *dotted); /* "" if absent */

/* ---- sim_kubelet.c ---- */
bool sim_wants_gpu(const cJSON *pod);
/* sim_world executes due actions; sim_world_due is the time of the next one. */
void sim_world(struct sim *s);
double sim_world_due(const struct sim *s);
int sim_finish(struct sim *s, const char *ip);

/* ---- sim_run.c ---- */
void sim_start(struct sim *s, const struct sim_script *script, uint64_t seed, bool faulty);
/* Runs until nothing more happens or a rule is violated. */
void sim_run(struct sim *s);
/* Ends the faults and continues for `seconds`. */
void sim_settle(struct sim *s, double seconds);
void sim_restart(struct sim *s);
void sim_end(struct sim *s);

#endif
