/* SPDX-License-Identifier: Apache-2.0 */
/* Qr by reflections.  The signs are those that LAPACK and TensorFlow choose: a reflected column
 * ends up with the sign opposite to its first element's. */
#include "task/kernels/kernel_table.h"
#include "task/kernels/matrix/matrices.h"

/* flag: all columns of q, and so all rows of r */
static bool qr_one(const struct matrix_job *j, int64_t k, double *room)
{
	int64_t m = j->a.rows, n = j->a.cols, columns = j->flag || m < n ? m : n;
	double *q = room + 2 * m * n;

	matrices_get(&j->a, k, room);
	if (!j->ops->qr(m, n, room, columns, q))
		return false;
	matrices_put(j->out[0], k * m * columns, q, m * columns);
	matrices_put(j->out[1], k * columns * n, room, columns * n);
	return true;
}

static int qr(struct kernel_call *c, struct mu_err *err)
{
	struct matrix_job j = {.one = qr_one,
			       .flag = args_attr_bool(c->node, "full_matrices", false)};
	int rc = matrices_in(c, 0, &j.a, err);

	if (rc)
		return rc;
	enum mu_dtype t = j.a.t->dtype;
	int64_t m = j.a.rows, n = j.a.cols, columns = j.flag || m < n ? m : n;
	if ((rc = matrices_out(c, 0, t, &j.a, 2, (int64_t[]){m, columns}, &j.out[0], err)) ||
	    (rc = matrices_out(c, 1, t, &j.a, 2, (int64_t[]){columns, n}, &j.out[1], err)))
		return rc;
	j.ops = matrices_ops(&j.a);
	j.room = m * n + m * columns;
	return matrices_run(c, &j, "no memory for the reflections", err);
}

static const struct kernel rows[] = {
    {"Qr", .flags = KERNEL_EXPENSIVE, .run = qr},
};
KERNEL_TABLE(qr, rows)
