/* SPDX-License-Identifier: Apache-2.0 */
/* One task of the built-in trainer, which trains (train.c) or evaluates (evaluator.c). */
#ifndef MU_CLIENT_MODEL_TRAINER_H
#define MU_CLIENT_MODEL_TRAINER_H

#include "client/model/model.h"
#include "lib/io/event_writer.h"

struct trainer {
	const struct mu_train_options *o;
	struct mu_dataset data, test;
	struct mu_builder *b;
	struct model_sizes sizes;
	struct model model;
	struct mu_out train;
	struct mu_sync sync; /* if synchronous replicas are enabled */
	struct mu_saver *saver;
	struct mu_saver *best;   /* saves the best model, all variables */
	struct mu_saver *export; /* saves the trainable variables */
	bool stopped_early;
	volatile int is_registered; /* for o->leave only: not 0 once the task is registered */
	struct mu_event_writer *events;
	struct mu_monitored *session;
};

/* arg: the trainer. *accuracy: on the test set. */
int trainer_score(void *arg, struct mu_session *s, int64_t step, double *accuracy,
		  struct mu_err *err);
int trainer_evaluate(struct trainer *t, struct mu_train_result *r, struct mu_err *err);

#endif
