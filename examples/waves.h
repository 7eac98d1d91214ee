/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers to begin with and to learn from, the same in C and in Python: amplitude · sin((phase + i)²),
 * which looks like noise. */
#ifndef EXAMPLES_WAVES_H
#define EXAMPLES_WAVES_H

#include <math.h>

#include "muster/graph.h"

/* *t is new, of `rows` rows and `columns` columns. */
static inline int waves(struct mu_tensor *t, int64_t rows, int64_t columns, double amplitude,
			double phase, struct mu_err *err)
{
	struct mu_shape shape;
	int rc = mu_shape_set(&shape, 2, (int64_t[]){rows, columns}, err);

	if (!rc)
		rc = mu_tensor_new(t, MU_FLOAT, &shape, err);
	for (int64_t i = 0; i < rows * columns && !rc; i++)
		MU_DATA(float, t)[i] = (float)(amplitude * sin((phase + (double)i) * (phase + (double)i)));
	return rc;
}

/* A variable that begins with such numbers. */
static inline struct mu_var *wavy(struct mu_builder *b, const char *name, int64_t rows,
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

#endif
