/* SPDX-License-Identifier: Apache-2.0 */
/* Fault-tolerant training loops: savers, hooks and monitored sessions.
 *
 * The monitored session of the chief initialises or restores the model; other workers wait until
 * the model is ready. When the cluster loses a task (ABORTED, UNAVAILABLE) the monitored session
 * opens a new session, restores the latest checkpoint if needed, and repeats the step.
 */
#ifndef MUSTER_TRAIN_H
#define MUSTER_TRAIN_H

#include "lib/io/event_writer.h"
#include "muster/data.h"
#include "muster/grad.h"
#include "muster/session.h"

/* ---- saver ---- */
struct mu_saver;
/* Adds nodes that save and restore all variables created so far. Each ps task writes its own shard.
 * keep: number of checkpoints to keep; 0: all. */
struct mu_saver *mu_saver_new(struct mu_builder *b, unsigned keep);
/* A saver of selected variables, optionally under other names, for example to initialise a model
 * from another model's checkpoint. */
struct mu_saved {
	struct mu_var *var;
	const char *name; /* in the checkpoint; NULL: the variable's name */
};
struct mu_saver_options {
	const struct mu_saved *vars; /* NULL: all variables created so far */
	unsigned n_vars, keep;
	double keep_every_hours; /* beyond `keep`, one checkpoint per interval stays; 0: none */
};
struct mu_saver *mu_saver_new_with(struct mu_builder *b, const struct mu_saver_options *o);
void mu_saver_free(struct mu_saver *v);
MU_AUTO_DEFINE(mu_saver_free, struct mu_saver)
/* Saves <folder>/model.ckpt-<step>, records it in <folder>/checkpoint, and removes checkpoints
 * beyond `keep`. *path (may be NULL) is new. */
int mu_saver_save(struct mu_saver *v, struct mu_session *s, const char *folder, int64_t step,
		  char **path, struct mu_err *err);
/* Writes <prefix>.index and its data files only, without a record in `checkpoint`. */
int mu_saver_write(struct mu_saver *v, struct mu_session *s, const char *prefix,
		   struct mu_err *err);
/* Copies the same variables from another checkpoint, without a session. */
int mu_saver_copy(const struct mu_saver *v, const char *from, const char *prefix,
		  struct mu_err *err);
int mu_saver_restore(struct mu_saver *v, struct mu_session *s, const char *prefix,
		     struct mu_err *err);

/* ---- hooks ---- */
struct mu_hook_step { /* passed to `after` of each hook */
	struct mu_session *session;
	int64_t step;
	const struct mu_tensor *values; /* values of the hook's fetches */
	struct mu_span trace;           /* RunMetadata if a hook requested a trace of the step */
	bool stop;                      /* set it to true to end the training */
};
/* Embed it as the first member of a struct. Every function is optional. */
struct mu_hook {
	/* Called for each new session, after the model is ready. */
	int (*created)(struct mu_hook *h, struct mu_session *s, int64_t step, struct mu_err *err);
	/* Returns true if the training is already complete. Called after `created`. */
	bool (*is_over)(const struct mu_hook *h, int64_t step);
	/* Sets additional fetches of the next step and returns their number. Must write at most
	 * max; a larger number fails the training. */
	unsigned (*fetches)(struct mu_hook *h, struct mu_out *out, unsigned max);
	/* Adds feeds to the next step: increments *n up to max. The values must stay valid until
	 * the step ends. */
	int (*feeds)(struct mu_hook *h, struct mu_feed *feeds, unsigned max, unsigned *n,
		     struct mu_err *err);
	/* Returns true if the step after `step` is to be traced. */
	bool (*wants_trace)(struct mu_hook *h, int64_t step);
	int (*after)(struct mu_hook *h, struct mu_hook_step *s, struct mu_err *err);
	/* Called before any close of a session for which `created` was called. */
	void (*session_closing)(struct mu_hook *h, struct mu_session *s);
	/* Called at the end of a training that did not fail. */
	int (*end)(struct mu_hook *h, struct mu_session *s, int64_t step, struct mu_err *err);
	void (*free)(struct mu_hook *h);
};

struct mu_hook *mu_stop_at_step_hook(int64_t last);
/* Saves at the start, every `seconds`, every `steps` (0: not by this interval), and at the end.
 * Borrows saver and events (may be NULL). *latest (may be NULL) is set to the newest path, which
 * the hook owns. */
struct mu_hook *mu_checkpoint_hook(struct mu_saver *saver, const char *folder, double seconds,
				   int64_t steps, struct mu_event_writer *events,
				   const char **latest);
/* Writes summaries and global_step/sec every `steps` steps. A scalar becomes a scalar summary,
 * several numbers a histogram, and bytes [height, width, channels] an image. The output of a
 * summary op is written unchanged. Borrows events (from mu_event_create; the caller closes it with
 * mu_event_close). */
struct mu_hook *mu_summary_hook(struct mu_event_writer *events, int64_t steps,
				const char *const *tags, const struct mu_out *outs, unsigned n);
struct mu_progress {
	int64_t step, target;
	double loss, steps_per_second, examples_per_second;
};
/* Calls `report` at most every `seconds`, when the target is reached, and at the end. Runs on the
 * training's thread. */
struct mu_hook *mu_progress_hook(struct mu_out loss, double seconds, int64_t target, int batch,
				 void (*report)(void *arg, const struct mu_progress *p), void *arg);
/* A `report` function that prints one line to standard output: "progress step=… target=… loss=…
 * steps_per_second=… examples_per_second=…" */
void mu_print_progress(void *arg, const struct mu_progress *p);
/* Fails the training with INVALID_ARGUMENT if loss is NaN or infinite. */
struct mu_hook *mu_nan_hook(struct mu_out loss);

/* Logs the first values of each output every `steps` steps as "<name> = [1 2 3 …]". The log is
 * written to standard error if the program has called mu_log_init (lib/base/log.h). */
struct mu_hook *mu_logging_hook(const char *const *names, const struct mu_out *outs, unsigned n,
				int64_t steps);
/* Writes steps per second every `steps` steps to events (may be NULL) and to the log. */
struct mu_hook *mu_step_counter_hook(struct mu_event_writer *events, int64_t steps);
/* Fetches the outputs at the end of a training that did not fail; values[i] is to be unref'd. */
struct mu_hook *mu_final_hook(const struct mu_out *fetches, unsigned n, struct mu_tensor *values);
/* Delays the training until the global step reaches `step` or a stop is requested;
 * DEADLINE_EXCEEDED after `seconds` (0: no limit). */
struct mu_hook *mu_wait_for_step_hook(int64_t step, double seconds);

/* Feeds each step the values that `make` returns, for example the next batch. They must stay valid
 * until its next call. An error of `make` fails the training, except OUT_OF_RANGE (end of the
 * data), which ends it normally. */
struct mu_hook *mu_feed_hook(const struct mu_out *at, unsigned n,
			     int (*make)(void *arg, const struct mu_tensor **values,
					 struct mu_err *err),
			     void *arg);
/* Traces one step every `steps` steps and writes the time and device of each op to
 * <folder>/timeline-<step>.json. chrome://tracing and ui.perfetto.dev display the file. */
struct mu_hook *mu_profiler_hook(const char *folder, int64_t steps);

/* ---- validation ----
 *
 * Every `steps` steps the model is scored. The best model is saved. After `patience` scores in a
 * row without improvement the training ends. The best score and the count are stored in
 * <best_folder>/best, so that a restarted training continues from them.
 */
struct mu_validation {
	int64_t steps;
	unsigned patience; /* 0: no early stopping */
	int (*score)(void *arg, struct mu_session *s, int64_t step, double *out,
		     struct mu_err *err); /* a greater score is better */
	void *arg;
	struct mu_saver *saver;         /* borrowed; requires best_folder; NULL: nothing is saved */
	const char *best_folder;        /* <best_folder>/model.ckpt-<step> */
	struct mu_event_writer *events; /* (optional) borrowed */
	const char *tag;                /* tag of the score in the events */
	bool *ended_early;              /* (optional) set if patience ended the training */
};
struct mu_hook *mu_validation_hook(const struct mu_validation *v);

/* Hook of the chief of synchronous replicas: a thread runs the updates during each session. Copies
 * *sync. */
struct mu_hook *mu_sync_hook(const struct mu_sync *sync);

/* ---- monitored session ---- */
struct mu_monitored_options {
	const char *target;
	bool chief;
	struct mu_out train; /* returned by mu_minimize; output 0 is the new global step */
	/* (optional) from mu_minimize_sync; local_step is fed the newest known step */
	const struct mu_sync *sync;
	struct mu_saver *saver; /* borrowed; NULL: never restores */
	const char *folder;     /* checkpoint folder; NULL: none */
	struct mu_hook **hooks; /* owned and freed by the monitored session; called in this order */
	unsigned n_hooks;
	struct mu_session_options session;
	double wait_seconds;     /* maximum wait for the cluster and the chief; 0: ten minutes */
	unsigned max_recoveries; /* maximum recoveries in a row without a step; 0: 20 */
	/* (optional) A non-zero value asks the training to stop. A synchronous replica then adds
	 * its gradients once more, for an update that may be waiting for them. */
	const volatile int *stop;
};
struct mu_monitored;
/* Owns the hooks after the call, also on failure. */
int mu_monitored_open(struct mu_monitored **out, struct mu_builder *b,
		      const struct mu_monitored_options *o, struct mu_err *err);
/* Runs one training step; values as in mu_session_run, but unset if the session was lost and the
 * new one is at the last step. OUT_OF_RANGE means the end of the data (of mu_batches_next or a
 * queue): the training is complete, not failed. */
int mu_monitored_train(struct mu_monitored *m, const struct mu_run *run, struct mu_tensor *values,
		       struct mu_err *err);
/* Deregisters this worker from synchronous replicas because it has no more data. Later updates do
 * not wait for it. Its last feeds are used once more, for the update that may be waiting for it.
 * mu_monitored_train calls this function on OUT_OF_RANGE; the program must call it after
 * OUT_OF_RANGE from mu_batches_next. When the chief ends, all workers end. */
int mu_monitored_leave(struct mu_monitored *m, struct mu_err *err);
bool mu_monitored_should_stop(const struct mu_monitored *m);
int64_t mu_monitored_step(const struct mu_monitored *m); /* the newest known global step */
struct mu_session *mu_monitored_session(struct mu_monitored *m);
/* Calls `end` of the hooks (unless the training failed) and closes the session. Always frees m. */
int mu_monitored_close(struct mu_monitored *m, bool failed, struct mu_err *err);

/* ---- the built-in trainer ---- */
enum { MU_MAX_LAYERS = 8 };
struct mu_train_options {
	/* data */
	const char *csv; /* last column is the label */
	const char *train_images, *train_labels, *test_images, *test_labels; /* IDX */
	/* CIFAR-10 or TFRecord files if the pattern is set. Without test_records, test_fraction
	 * of the records is the test set. */
	struct mu_records records;
	const char *test_records;
	bool cifar10;         /* the records are CIFAR-10, not tf.Example */
	double test_fraction; /* share of the rows for the test set (not for IDX files): the last
				 rows */
	uint64_t split_seed;  /* shuffles the rows before the split; 0: file order */
	double scale;         /* divisor of the features; 0: their maximum */
	/* model */
	const char *model;         /* "softmax", "mlp", "cnn", "wide-deep", "es" */
	int hidden[MU_MAX_LAYERS]; /* not for softmax */
	unsigned n_hidden;
	const int *categorical; /* wide-deep: indices of categorical columns, from 0 */
	unsigned n_categorical;
	int embedding; /* wide-deep: width of the embeddings */
	int pairs;     /* es: pairs of mirrored perturbations per step */
	double noise;  /* es: standard deviation of the perturbations */
	struct mu_optimizer optimizer;
	int batch;
	int64_t steps;               /* global step to reach */
	struct mu_sync_options sync; /* synchronous replicas; workers 0: asynchronous training */
	int64_t seed;
	/* cluster */
	const char *target;            /* the server of this task */
	struct mu_transport transport; /* (optional) for a server in this process */
	const char *job;               /* "worker", "chief" */
	int index;
	unsigned n_ps; /* 0: variables live on this task */
	bool chief;
	bool evaluator; /* evaluates each new checkpoint instead of training */
	/* outputs */
	const char *checkpoint_folder, *summary_folder; /* NULL: none */
	double checkpoint_seconds;
	int64_t checkpoint_steps, summary_steps;
	unsigned checkpoint_keep;
	/* The chief scores the test set every validation_steps (0: only at the end) and keeps the
	 * best model in <checkpoint_folder>/best. It stops early after `patience` scores without
	 * improvement (0: never). */
	int64_t validation_steps;
	unsigned patience;
	/* Prefix of the exported checkpoint: the best weights, or the final ones without
	 * validation, without optimizer state. NULL: no export. */
	const char *export_prefix;
	void (*progress)(void *arg, const struct mu_progress *p); /* NULL: mu_print_progress */
	void *progress_arg;
	const volatile int *stop; /* (optional) a non-zero value means: save and end early */
	/* Only deregister from synchronous replicas and exit. It replaces a worker that ended
	 * without deregistering and will not be restarted. */
	bool leave;
};
struct mu_train_result {
	int64_t step;
	bool stopped;               /* ended by `stop` before the goal */
	bool stopped_by_validation; /* early stopping */
	double accuracy;            /* final accuracy on the test set (chief only), else -1 */
	double loss; /* loss of the final model on the chief's last batch; NAN: not evaluated */
	char checkpoint[4096], events[4096]; /* paths; "" if there is none */
};
int mu_train(const struct mu_train_options *o, struct mu_train_result *out, struct mu_err *err);

#endif
