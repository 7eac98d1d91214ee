/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse-mode gradients and the optimizers that apply them. */
#ifndef MUSTER_GRAD_H
#define MUSTER_GRAD_H

#include "muster/graph.h"

/* d loss / d xs[i] into grads[i], summed over loss when it is no scalar; MU_NO_OUT where loss does
 * not depend on xs[i] (through ops that have a gradient).  Errors stick to the builder: an op on
 * the way without a gradient is UNIMPLEMENTED and named. */
void mu_gradients(struct mu_builder *b, struct mu_out loss, const struct mu_out *xs, unsigned n,
		  struct mu_out *grads);

/* The learning rate at global step t, from the optimizer's `rate`. */
struct mu_schedule {
	enum {
		MU_RATE_CONSTANT,
		MU_RATE_EXPONENTIAL, /* rate · decay^(t / steps) */
		MU_RATE_STEPS,       /* rate · decay^⌊t / steps⌋ */
		MU_RATE_COSINE,      /* from rate to rate · decay along a half wave of `steps` */
	} kind;
	double decay;
	int64_t steps;
};
struct mu_optimizer {
	enum {
		MU_SGD,
		MU_MOMENTUM,
		MU_ADAGRAD,
		MU_ADAM,
		MU_RMSPROP,
		MU_ADADELTA,
		MU_FTRL,
	} kind;
	double rate;
	struct mu_schedule schedule; /* how the rate goes on from there */
	double momentum;             /* momentum; 0 means 0.9 */
	bool nesterov;               /* momentum */
	double initial_accumulator;  /* adagrad; 0 means 0.1 */
	double beta1, beta2, eps;    /* adam; 0 means 0.9, 0.999, 1e-8 */
	double rho;                  /* rmsprop, adadelta; 0 means 0.9, 0.95 */
	double l1;                   /* ftrl */
	double l2;        /* l2 / 2 · |variables|² is added to the loss, by its gradient */
	double clip_norm; /* gradients together are made no longer than that; 0: they are */
};
/* "sgd", "momentum", "nesterov", "adagrad", "adam", "rmsprop", "adadelta", "ftrl";
 * INVALID_ARGUMENT lists them. */
int mu_optimizer_named(const char *name, double rate, struct mu_optimizer *out, struct mu_err *err);

/* Gradients of loss by every trainable variable, applied; then global_step + 1 when step is not
 * NULL.  The handle is the operation to run; its output 0 is the new step when there is one. */
struct mu_out mu_minimize(struct mu_builder *b, const struct mu_optimizer *o, struct mu_out loss,
			  struct mu_var *step);

/* ---- synchronous replicas ----
 *
 * Each worker hands its gradients, with the step that they were computed for, to accumulators
 * beside the variables; those of an earlier step are dropped.  The chief takes the average of the
 * first `aggregate` that come, applies it, and puts a token into each worker's queue; a worker's
 * step ends with a token, which is the number of its next step.  A token that is not above the step
 * it has just worked for, or below the latest, is of no use to it: it takes the next.
 *
 * A chief begins each session with a new epoch: what had been given is thrown away, a token tells
 * all workers to work for the step again, and gradients of an earlier epoch are dropped like those
 * of an earlier step.
 *
 * Workers may come and go.  Who takes part is written down beside the global step; an update looks
 * there when it begins, and never waits for more gradients than there are workers.  One that joins
 * counts from the next update on.  One that leaves says so and gives its gradients once more, for
 * the update that may be waiting for them; one that is killed is waited for, because it will be
 * started again. */
struct mu_sync_options {
	unsigned aggregate; /* gradients that make a step; 0: of all workers but `backup` of them */
	unsigned backup;
	unsigned workers; /* at the beginning: each of them is waited for */
	unsigned self;    /* which one this is, from 0 */
};
#define MU_SYNC_EPOCH (INT64_C(1) << 40) /* local_step is the step + epoch * this */
#define MU_SYNC_OVER  (INT64_C(-1))      /* a token: the chief goes */
#define MU_SYNC_AGAIN (INT64_C(-2))      /* a token of this - epoch: work for the step again */
struct mu_sync {
	struct mu_out train;  /* a worker's step: output 0 is its token */
	struct mu_out latest; /* the global step once it has the token */
	struct mu_out token;  /* one more token, without working for it … */
	struct mu_out token_latest;
	struct mu_out epoch; /* the one that a worker begins in */
	struct mu_out
	    local_step;       /* fed: the step that the worker works for, in its epoch (int64) */
	struct mu_out update; /* the chief's, over and over: output 0 is the new step */
	struct mu_out reset;  /* the chief's, in each new session: a new epoch */
	struct mu_out over;   /* that token for each worker */
	/* Who takes part: an int32 for each possible worker, 1 or 0; the chief sets it before the
	 * model is there, to what members_value is fed. */
	struct mu_out members, set_members, members_value;
	struct mu_out join;
	struct mu_out leave; /* output 0: the step of which the update may wait for this one … */
	struct mu_out leave_epoch;  /* … in this epoch … */
	struct mu_out give;         /* … and which it gives its gradients for, without a token */
	unsigned capacity, workers; /* possible workers; those of the options */
};
/* The same on every worker.  step is needed. */
void mu_minimize_sync(struct mu_builder *b, const struct mu_optimizer *o, struct mu_out loss,
		      struct mu_var *step, const struct mu_sync_options *sync, struct mu_sync *out);

#endif
