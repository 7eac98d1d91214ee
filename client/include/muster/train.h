/* SPDX-License-Identifier: Apache-2.0 */
/* Training loops that survive: savers, hooks and monitored sessions.
 *
 * A monitored session initialises or restores the model when it is the chief's and waits for that
 * when it is not; when the cluster loses a task (ABORTED, UNAVAILABLE) it opens a new session, puts
 * the model back from the latest checkpoint where that is needed, and repeats the step.
 */
#ifndef MUSTER_TRAIN_H
#define MUSTER_TRAIN_H

#include "lib/io/event_writer.h"
#include "muster/data.h"
#include "muster/grad.h"
#include "muster/session.h"

/* ---- saver ---- */
struct mu_saver;
/* Adds the nodes that save and restore every variable made so far; each ps task writes its own.
 * keep: checkpoints to keep, 0 for all. */
struct mu_saver *mu_saver_new(struct mu_builder *b, unsigned keep);
/* The same for a choice of variables, and under other names: what a model is to begin with can come
 * from the checkpoint of another. */
struct mu_saved {
	struct mu_var *var;
	const char *name; /* in the checkpoint; NULL: the variable's own */
};
struct mu_saver_options {
	const struct mu_saved *vars; /* NULL: every variable made so far */
	unsigned n_vars, keep;
	double keep_every_hours; /* of those over `keep`, one each so many hours stays; 0: none */
};
struct mu_saver *mu_saver_new_with(struct mu_builder *b, const struct mu_saver_options *o);
void mu_saver_free(struct mu_saver *v);
MU_AUTO_DEFINE(mu_saver_free, struct mu_saver)
/* Saves as <folder>/model.ckpt-<step>, records that in <folder>/checkpoint, removes what is over
 * `keep`.  *path (may be NULL) is new. */
int mu_saver_save(struct mu_saver *v, struct mu_session *s, const char *folder, int64_t step,
		  char **path, struct mu_err *err);
/* Writes <prefix>.index and its data, and nothing about it anywhere else. */
int mu_saver_write(struct mu_saver *v, struct mu_session *s, const char *prefix,
		   struct mu_err *err);
/* The same variables as they are in another checkpoint, without a session. */
int mu_saver_copy(const struct mu_saver *v, const char *from, const char *prefix,
		  struct mu_err *err);
int mu_saver_restore(struct mu_saver *v, struct mu_session *s, const char *prefix,
		     struct mu_err *err);

/* ---- hooks ---- */
struct mu_hook_step { /* what a hook sees after a step */
	struct mu_session *session;
	int64_t step;
	const struct mu_tensor *values; /* of what it wanted */
	struct mu_span trace;           /* the RunMetadata of a step that a hook wanted traced */
	bool stop;                      /* set it to end the training */
};
/* Embed it first in a struct of your own.  Every function is optional. */
struct mu_hook {
	/* After each new session, once the model is ready. */
	int (*created)(struct mu_hook *h, struct mu_session *s, int64_t step, struct mu_err *err);
	/* Whether nothing is left to do; asked after `created`. */
	bool (*is_over)(const struct mu_hook *h, int64_t step);
	/* What to fetch along with the next step; returns how many.  Writes at most max of them,
	 * and ends the training by wanting more. */
	unsigned (*wants)(struct mu_hook *h, struct mu_out *fetches, unsigned max);
	/* What to feed to the next step; adds to *n, at most up to max.  The values are good until
	 * the step is over. */
	int (*feeds)(struct mu_hook *h, struct mu_feed *feeds, unsigned max, unsigned *n,
		     struct mu_err *err);
	/* Whether the next step, the one after `step`, is to be traced. */
	bool (*traces)(struct mu_hook *h, int64_t step);
	int (*after)(struct mu_hook *h, struct mu_hook_step *s, struct mu_err *err);
	/* Before a session for which `created` was called is closed, for whatever reason. */
	void (*leaving)(struct mu_hook *h, struct mu_session *s);
	/* At the end of a training that did not fail. */
	int (*end)(struct mu_hook *h, struct mu_session *s, int64_t step, struct mu_err *err);
	void (*free)(struct mu_hook *h);
};

struct mu_hook *mu_stop_at_step_hook(int64_t last);
/* Saves at the start, every `seconds` and every `steps` (0: not by that), and at the end.  Borrows
 * saver and events (may be NULL).  *latest (may be NULL) follows the newest path; the hook owns it.
 */
struct mu_hook *mu_checkpoint_hook(struct mu_saver *saver, const char *folder, double seconds,
				   int64_t steps, struct mu_event_writer *events,
				   const char **latest);
/* Writes summaries every `steps` steps, and global_step/sec beside them: of one number a scalar, of
 * several a histogram, of bytes [height, width, channels] a picture, and what a summary op makes as
 * it is.  Borrows events, which mu_event_create makes in a folder and mu_event_close ends. */
struct mu_hook *mu_summary_hook(struct mu_event_writer *events, int64_t steps,
				const char *const *tags, const struct mu_out *outs, unsigned n);
struct mu_progress {
	int64_t step, target;
	double loss, steps_per_second, examples_per_second;
};
/* Tells how it goes, at most every `seconds`, at the target and at the end.  From the training's
 * thread. */
struct mu_hook *mu_progress_hook(struct mu_out loss, double seconds, int64_t target, int batch,
				 void (*tell)(void *arg, const struct mu_progress *p), void *arg);
/* A tell that prints one line to standard output:
 * "progress step=… target=… loss=… steps_per_second=… examples_per_second=…" */
void mu_print_progress(void *arg, const struct mu_progress *p);
/* Fails the training with INVALID_ARGUMENT when loss is not a number. */
struct mu_hook *mu_nan_hook(struct mu_out loss);

/* Logs these every `steps` steps, as "<name> = [1 2 3 …]", the first values of each: on standard
 * error, once the program has called mu_log_init (lib/base/log.h). */
struct mu_hook *mu_logging_hook(const char *const *names, const struct mu_out *outs, unsigned n,
				int64_t steps);
/* Tells steps a second every `steps` steps, to the events (may be NULL) and to the log. */
struct mu_hook *mu_step_counter_hook(struct mu_event_writer *events, int64_t steps);
/* Fetches these at the end of a training that did not fail; values[i] is to be unref'd. */
struct mu_hook *mu_final_hook(const struct mu_out *fetches, unsigned n, struct mu_tensor *values);
/* Begins only once the others have reached this step; DEADLINE_EXCEEDED after `seconds` (0: never).
 */
struct mu_hook *mu_wait_for_step_hook(int64_t step, double seconds);

/* Feeds each step what `make` gives for these, as long as it lives until the next call: the batches
 * of a walk, say.  An error of `make` ends the training; OUT_OF_RANGE, the end of a walk, ends it
 * well.
 */
struct mu_hook *mu_feed_hook(const struct mu_out *at, unsigned n,
			     int (*make)(void *arg, const struct mu_tensor **values,
					 struct mu_err *err),
			     void *arg);
/* Traces a step every `steps` steps and writes which op ran when and where, as
 * <folder>/timeline-<step>.json: chrome://tracing and ui.perfetto.dev show it. */
struct mu_hook *mu_profiler_hook(const char *folder, int64_t steps);

/* ---- validation ----
 *
 * Every `steps` steps the model is scored; the best so far is saved, and after `patience` scores in
 * a row that were no better the training ends.  Best score and count are kept in
 * <best_folder>/best, so that a training that starts again goes on from them. */
struct mu_validation {
	int64_t steps;
	unsigned patience; /* 0: never ends the training */
	int (*score)(void *arg, struct mu_session *s, int64_t step, double *out,
		     struct mu_err *err); /* greater is better */
	void *arg;
	struct mu_saver *saver;         /* borrowed; with best_folder, or NULL: nothing is saved */
	const char *best_folder;        /* <best_folder>/model.ckpt-<step> */
	struct mu_event_writer *events; /* (optional) borrowed */
	const char *tag;                /* of the score in the events */
	bool *ended_early;              /* (optional) set when patience ended the training */
};
struct mu_hook *mu_validation_hook(const struct mu_validation *v);

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
	/* (optional) becomes non-zero from outside: the training should stop.  A replica that is
	 * synchronous with others gives gradients once more, for who may be waiting for it. */
	const volatile int *stop;
};
struct mu_monitored;
/* Takes the hooks, also on failure. */
int mu_monitored_open(struct mu_monitored **out, struct mu_builder *b,
		      const struct mu_monitored_options *o, struct mu_err *err);
/* One training step; values of fetches as in mu_session_run.  OUT_OF_RANGE: there is no more data
 * (of mu_batches_next, or of a queue on the server); the training is over, and has not failed. */
int mu_monitored_train(struct mu_monitored *m, const struct mu_run *run, struct mu_tensor *values,
		       struct mu_err *err);
/* This worker has no more data and the others may have: in synchronous replicas no step waits for
 * it from now on (what it was last fed counts once more, for the step that may have begun to).  By
 * itself when mu_monitored_train says OUT_OF_RANGE; for the program to call when mu_batches_next
 * does.  The chief's end is everybody's, with or without it. */
int mu_monitored_leave(struct mu_monitored *m, struct mu_err *err);
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
	/* CIFAR-10 or TFRecord files, when its pattern is set, and those of the test, which may
	 * have none: then test_fraction is held out. */
	struct mu_records records;
	const char *test_records;
	bool cifar10;         /* … and not tf.Example */
	double test_fraction; /* not of IDX files; the last rows */
	uint64_t split_seed;  /* … once they are shuffled by it; 0: as they stand */
	double scale;         /* features are divided by it; 0: by their greatest value */
	/* model */
	const char *model;         /* "softmax", "mlp", "cnn", "wide-deep", "es" */
	int hidden[MU_MAX_LAYERS]; /* not softmax */
	unsigned n_hidden;
	const int *categorical; /* wide-deep: columns, from 0, that hold names by number */
	unsigned n_categorical;
	int embedding; /* wide-deep: numbers that stand for a name */
	int pairs;     /* es: mirrored perturbations tried in a step */
	double noise;  /* es: their standard deviation */
	struct mu_optimizer optimizer;
	int batch;
	int64_t steps;               /* global step to reach */
	struct mu_sync_options sync; /* synchronous replicas; workers 0: each for himself */
	int64_t seed;
	/* where */
	const char *target;            /* of this task's server */
	struct mu_transport transport; /* (optional) to it, when it is in this process */
	const char *job;               /* "worker", "chief" */
	int index;
	unsigned n_ps; /* 0: variables live on this task */
	bool chief;
	bool evaluator; /* trains nothing: scores the checkpoints of the others as they come */
	/* what is kept */
	const char *checkpoint_folder, *summary_folder; /* NULL: none */
	double checkpoint_seconds;
	int64_t checkpoint_steps, summary_steps;
	unsigned checkpoint_keep;
	/* The chief scores the test set every validation_steps (0: at the end only), keeps the best
	 * in <checkpoint_folder>/best and ends after `patience` scores that were no better (0:
	 * never). */
	int64_t validation_steps;
	unsigned patience;
	/* The best weights, or the final ones when nothing was validated, go there, without the
	 * optimizer's; NULL: nowhere. */
	const char *export_prefix;
	void (*progress)(void *arg, const struct mu_progress *p); /* NULL: mu_print_progress */
	void *progress_arg;
	const volatile int *stop; /* NULL, or becomes non-zero: save and end early */
	/* Nothing but to leave synchronous replicas, properly: in the place of one of them that has
	 * ended without, and will not be started again. */
	bool leave;
};
struct mu_train_result {
	int64_t step;
	bool stopped;    /* before the goal was reached, from outside */
	bool early;      /* … because the test set was scored no better */
	double accuracy; /* on the test set, of the chief at the end; else -1 */
	double loss;     /* of the chief's final model on its last batch; NAN: not evaluated */
	char checkpoint[4096], events[4096]; /* paths; "" when there is none */
};
int mu_train(const struct mu_train_options *o, struct mu_train_result *out, struct mu_err *err);

#endif
