/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse-mode gradients and the optimizers that apply them. */
#ifndef MUSTER_GRAD_H
#define MUSTER_GRAD_H

#include "muster/graph.h"

/* Writes d loss / d xs[i] into grads[i]; sums over loss if it is not a scalar. grads[i] is
 * MU_NO_OUT if loss does not depend on xs[i] through differentiable ops. An op without a gradient
 * sets the error of the builder: UNIMPLEMENTED, with the op's name. */
void mu_gradients(struct mu_builder *b, struct mu_out loss, const struct mu_out *xs, unsigned n,
		  struct mu_out *grads);

/* Computes the learning rate at global step t; `rate` is the rate of the optimizer. */
struct mu_schedule {
	enum {
		MU_RATE_CONSTANT,
		MU_RATE_EXPONENTIAL, /* rate · decay^(t / steps) */
		MU_RATE_STEPS,       /* rate · decay^⌊t / steps⌋ */
		MU_RATE_COSINE, /* half a cosine from rate to rate · decay over `steps` steps */
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
	struct mu_schedule schedule; /* how the rate changes with the global step */
	double momentum;             /* momentum; 0 means 0.9 */
	bool nesterov;               /* momentum */
	double initial_accumulator;  /* adagrad; 0 means 0.1 */
	double beta1, beta2, eps;    /* adam; 0 means 0.9, 0.999, 1e-8 */
	double rho;                  /* rmsprop, adadelta; 0 means 0.9, 0.95 */
	double l1;                   /* ftrl */
	double l2;                   /* adds the gradient of l2 / 2 · |variables|² */
	double clip_norm;            /* maximum global norm of the gradients; 0: no limit */
};
/* "sgd", "momentum", "nesterov", "adagrad", "adam", "rmsprop", "adadelta", "ftrl";
 * INVALID_ARGUMENT lists them. */
int mu_optimizer_named(const char *name, double rate, struct mu_optimizer *out, struct mu_err *err);

/* Computes the gradients of loss for each trainable variable and applies them; then increments step
 * unless it is NULL. Returns the operation to run; output 0 is the new step if there is one. */
struct mu_out mu_minimize(struct mu_builder *b, const struct mu_optimizer *o, struct mu_out loss,
			  struct mu_var *step);

/* ---- synchronous replicas ----
 *
 * Each worker adds its gradients, with their step, to accumulators on the devices of the variables.
 * Gradients of an earlier step are dropped. The chief applies the average of the first `aggregate`
 * gradients and adds a token to the queue of each worker. A step of a worker ends when it dequeues
 * a token, which is the number of its next step. A worker skips a token that is not greater than
 * its own step, or that is less than the latest step.
 *
 * The chief starts a new epoch in each session. Gradients of earlier epochs are dropped, also if
 * they are added later. A token requests all workers to repeat the step.
 *
 * Workers may join and leave. A membership vector on the device of the global step has the current
 * workers. An update reads it when it begins, and never waits for more gradients than the number of
 * workers. A worker that joins is counted in the next update. A worker that leaves deregisters and
 * adds its gradients once more, because an update may be waiting for them. The update waits for a
 * worker that was killed, because the worker will be restarted.
 */
struct mu_sync_options {
	unsigned aggregate; /* gradients per update; 0: workers - backup */
	unsigned backup;
	unsigned workers; /* initial number of workers; the first update waits for all */
	unsigned self;    /* index of this worker, from 0 */
};
#define MU_SYNC_EPOCH (INT64_C(1) << 40) /* local_step is the step + epoch * this */
#define MU_SYNC_OVER  (INT64_C(-1))      /* token: the chief ends the training */
#define MU_SYNC_AGAIN (INT64_C(-2))      /* token MU_SYNC_AGAIN - epoch: repeat the step */
struct mu_sync {
	struct mu_out train;        /* one step of a worker; output 0 is its token */
	struct mu_out latest;       /* the global step after the token was dequeued */
	struct mu_out token;        /* dequeues a token without a step */
	struct mu_out token_latest; /* the global step after that */
	struct mu_out epoch;        /* the current epoch */
	struct mu_out local_step; /* to be fed (int64): the worker's step + epoch * MU_SYNC_EPOCH */
	struct mu_out update;     /* the chief runs it in a loop; output 0 is the new step */
	struct mu_out reset;      /* the chief runs it in each new session; starts a new epoch */
	struct mu_out end_workers; /* sends MU_SYNC_OVER to each worker */
	/* Membership: an int32 for each possible worker, 1 or 0. The chief runs set_members, with
	 * members_value fed, before it initialises the model. */
	struct mu_out members, set_members, members_value;
	struct mu_out join; /* registers this worker */
	struct mu_out
	    leave; /* deregisters; output 0: the step whose update may wait for this worker … */
	struct mu_out leave_epoch;   /* … and its epoch */
	struct mu_out add_gradients; /* adds gradients for that step without dequeuing a token */
	unsigned capacity, workers;  /* maximum number of workers; initial number */
};
/* Must be called with the same arguments on every worker. step is required. */
void mu_minimize_sync(struct mu_builder *b, const struct mu_optimizer *o, struct mu_out loss,
		      struct mu_var *step, const struct mu_sync_options *sync, struct mu_sync *out);

#endif
