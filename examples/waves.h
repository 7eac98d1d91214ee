/* SPDX-License-Identifier: Apache-2.0 */
/* Deterministic pseudo-random numbers, the same in C and in Python: amplitude · sin((phase + i)²).
 * And a training loop with one batch of such numbers per step. */
#ifndef MU_EXAMPLES_WAVES_H
#define MU_EXAMPLES_WAVES_H

#include <math.h>
#include <stdio.h>

#include "muster/graph.h"
#include "muster/session.h"

/* *t is a new tensor of `rows` rows and `columns` columns. */
static inline int waves(struct mu_tensor *t, int64_t rows, int64_t columns, double amplitude,
			double phase, struct mu_err *err)
{
	struct mu_shape shape;
	int rc = mu_shape_set(&shape, 2, (int64_t[]){rows, columns}, err);

	if (!rc)
		rc = mu_tensor_new(t, MU_FLOAT, &shape, err);
	for (int64_t i = 0; i < rows * columns && !rc; i++) {
		double position = phase + (double)i;

		MU_DATA(float, t)[i] = (float)(amplitude * sin(position * position));
	}
	return rc;
}

/* A variable whose initial values are waves(). */
static inline struct mu_var *wave_variable(struct mu_builder *b, const char *name, int64_t rows,
					   int64_t columns, double amplitude, double phase)
{
	MU_AUTO_TENSOR t = {0};
	struct mu_err err;

	if (waves(&t, rows, columns, amplitude, phase, &err)) {
		mu_builder_fail(b, err.code, "%s", err.msg);
		return NULL;
	}
	return mu_variable(b, name, MU_FLOAT, MU_SHAPE(rows, columns),
			   (struct mu_init){.kind = MU_INIT_TENSOR, .tensor = &t}, true);
}

struct training {
	struct mu_out x, loss, train; /* placeholder, printed loss, training operation */
	int64_t rows, columns;        /* shape of x */
	int steps, print_interval;    /* number of steps; steps between printed lines */
};
static inline int train_on_waves(const char *target, struct mu_builder *b, const struct training *l,
				 struct mu_err *err)
{
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	int rc = mu_session_open(&s, target, b, NULL, err);

	if (!rc)
		rc = mu_session_do(s, mu_init_all(b), err);
	for (int step = 0; step < l->steps && !rc; step++) {
		MU_AUTO_TENSOR x = {0};
		MU_AUTO_TENSOR loss = {0};
		struct mu_feed feed = {l->x, &x};

		rc = waves(&x, l->rows, l->columns, 1, step, err);
		if (!rc)
			rc = mu_session_run(s,
					    &(struct mu_run){.feeds = &feed,
							     .n_feeds = 1,
							     .fetches = &l->loss,
							     .n_fetches = 1,
							     .targets = &l->train,
							     .n_targets = 1},
					    &loss, err);
		if (!rc && step % l->print_interval == 0)
			printf("step %d: loss %.6f\n", step, (double)*MU_DATA(float, &loss));
	}
	return rc;
}

#endif
