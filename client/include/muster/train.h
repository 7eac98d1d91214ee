/* SPDX-License-Identifier: Apache-2.0 */
/* Training loops that survive: savers, hooks and monitored sessions.
 *
 * A monitored session initialises or restores the model when it is the chief's and waits for that
 * when it is not; when the cluster loses a task (ABORTED, UNAVAILABLE) it opens a new session, puts
 * the model back from the latest checkpoint where that is needed, and repeats the step.
 */
#ifndef MUSTER_TRAIN_H
#define MUSTER_TRAIN_H

#include "muster/grad.h"
#include "muster/session.h"

/* ---- saver ---- */
struct mu_saver;
/* Adds the nodes that save and restore every variable made so far; each ps task writes its own.
 * keep: checkpoints to keep, 0 for all. */
struct mu_saver *mu_saver_new(struct mu_builder *b, unsigned keep);
void mu_saver_free(struct mu_saver *v);
MU_AUTO_DEFINE(mu_saver_free, struct mu_saver)
/* Saves as <folder>/model.ckpt-<step>, records that in <folder>/checkpoint, removes what is over
 * `keep`.  *path (may be NULL) is new. */
int mu_saver_save(struct mu_saver *v, struct mu_session *s, const char *folder, int64_t step,
		  char **path, struct mu_err *err);
int mu_saver_restore(struct mu_saver *v, struct mu_session *s, const char *prefix,
		     struct mu_err *err);

/* ---- hooks ---- */
struct mu_hook_step { /* what a hook sees after a step */
	struct mu_session *session;
	int64_t step;
	const struct mu_tensor *values; /* of what it wanted */
	bool stop;                      /* set it to end the training */
};
/* Embed it first in a struct of your own.  Every function is optional. */
struct mu_hook {
	/* After each new session, once the model is ready. */
	int (*created)(struct mu_hook *h, struct mu_session *s, int64_t step, struct mu_err *err);
	/* What to fetch along with the next step; returns how many, at most max. */
	unsigned (*wants)(struct mu_hook *h, struct mu_out *fetches, unsigned max);
	int (*after)(struct mu_hook *h, struct mu_hook_step *s, struct mu_err *err);
	/* Before a session for which `created` was called is closed, for whatever reason. */
	void (*leaving)(struct mu_hook *h, struct mu_session *s);
	/* At the end of a training that did not fail. */
	int (*end)(struct mu_hook *h, struct mu_session *s, int64_t step, struct mu_err *err);
	void (*free)(struct mu_hook *h);
};

struct mu_event_writer;
struct mu_hook *mu_stop_at_step_hook(int64_t last);
/* Saves at the start, every `seconds` and every `steps` (0: not by that), and at the end.  Borrows
 * saver and events (may be NULL).  *latest (may be NULL) follows the newest path; the hook owns it.
 */
struct mu_hook *mu_checkpoint_hook(struct mu_saver *saver, const char *folder, double seconds,
				   int64_t steps, struct mu_event_writer *events,
				   const char **latest);
/* Writes scalars every `steps` steps, and global_step/sec beside them.  Borrows events. */
struct mu_hook *mu_summary_hook(struct mu_event_writer *events, int64_t steps,
				const char *const *tags, const struct mu_out *outs, unsigned n);
struct mu_progress {
	int64_t step, target;
	double loss, steps_per_second, examples_per_second;
};
/* Tells how it goes, at most every `seconds` and at the target.  From the training's thread. */
struct mu_hook *mu_progress_hook(struct mu_out loss, double seconds, int64_t target, int batch,
				 void (*tell)(void *arg, const struct mu_progress *p), void *arg);
/* A tell that prints one line to standard output:
 * "progress step=… target=… loss=… steps_per_second=… examples_per_second=…" */
void mu_print_progress(void *arg, const struct mu_progress *p);
/* Fails the training with OUT_OF_RANGE when loss is not a number. */
struct mu_hook *mu_nan_hook(struct mu_out loss);

/* The chief's part of synchronous replicas: a thread that makes the updates while there is a
 * session.  Copies *sync. */
struct mu_hook *mu_sync_hook(const struct mu_sync *sync);

/* ---- monitored session ---- */
struct mu_monitored_options {
	const char *target;
	bool chief;
	struct mu_out train; /* mu_minimize's handle: output 0 is the new global step */
	/* (optional) as mu_minimize_sync made it: its local_step is fed the newest step seen */
	const struct mu_sync *sync;
	struct mu_saver *saver; /* borrowed; NULL: nothing to restore from */
	const char *folder;     /* of checkpoints; NULL: none */
	struct mu_hook **hooks; /* taken, each; called in this order */
	unsigned n_hooks;
	struct mu_session_options session;
	double wait_seconds;     /* for the cluster and the chief; 0: ten minutes */
	unsigned max_recoveries; /* in a row without a step; 0: 20 */
};
struct mu_monitored;
/* Takes the hooks, also on failure. */
int mu_monitored_open(struct mu_monitored **out, struct mu_builder *b,
		      const struct mu_monitored_options *o, struct mu_err *err);
/* One training step; values of fetches as in mu_session_run. */
int mu_monitored_train(struct mu_monitored *m, const struct mu_run *run, struct mu_tensor *values,
		       struct mu_err *err);
bool mu_monitored_should_stop(const struct mu_monitored *m);
int64_t mu_monitored_step(const struct mu_monitored *m); /* the newest global step seen */
struct mu_session *mu_monitored_session(struct mu_monitored *m);
/* Ends the hooks (unless the training failed) and closes the session; frees m always. */
int mu_monitored_close(struct mu_monitored *m, bool failed, struct mu_err *err);

/* ---- the ready-made trainer ---- */
enum { MU_MAX_LAYERS = 8 };
struct mu_train_options {
	/* data */
	const char *csv; /* last column is the label */
	const char *train_images, *train_labels, *test_images, *test_labels; /* IDX */
	double test_fraction; /* of a CSV; the last rows */
	uint64_t split_seed;  /* … once they are shuffled by it; 0: as they stand */
	double scale;         /* features are divided by it; 0: by their greatest value */
	/* model */
	const char *model; /* "softmax", "mlp" */
	int hidden[MU_MAX_LAYERS];
	unsigned n_hidden;
	struct mu_optimizer optimizer;
	int batch;
	int64_t steps; /* global step to reach */
	/* Synchronous replicas: how many gradients make a step, of how many workers; 0: async. */
	unsigned sync_aggregate, sync_workers, sync_self; /* and which of them this is */
	int64_t seed;
	/* where */
	const char *target;            /* of this task's server */
	struct mu_transport transport; /* (optional) to it, when it is in this process */
	const char *job;               /* "worker", "chief" */
	int index;
	unsigned n_ps; /* 0: variables live on this task */
	bool chief;
	/* what is kept */
	const char *checkpoint_folder, *summary_folder; /* NULL: none */
	double checkpoint_seconds;
	int64_t checkpoint_steps, summary_steps;
	unsigned checkpoint_keep;
	void (*progress)(void *arg, const struct mu_progress *p); /* NULL: mu_print_progress */
	void *progress_arg;
	const volatile int *stop; /* NULL, or becomes non-zero: save and end early */
};
struct mu_train_result {
	int64_t step;
	bool stopped;                        /* before the goal was reached */
	double accuracy;                     /* on the test set; only the chief's is set */
	char checkpoint[4096], events[4096]; /* paths; "" when there is none */
};
int mu_train(const struct mu_train_options *o, struct mu_train_result *out, struct mu_err *err);

#endif
