/* SPDX-License-Identifier: Apache-2.0 */
/* Qr.  LAPACK chooses the same signs as TensorFlow: a reflected column gets the sign opposite to
 * that of its first element. */
#include <string.h>

#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/linalg/matrices.h"

/* flag: full_matrices, i.e. all columns of q and all rows of r */
static int qr_one(const struct matrix_job *j, int64_t k, double *work)
{
	int m = j->a.rows, n = j->a.cols, columns = j->flag || m < n ? m : n;
	size_t size = j->a.is_complex ? sizeof(double[2]) : sizeof(double);
	char *a = (char *)work, *q = a + (size_t)m * (size_t)n * 2 * sizeof *work;

	matrices_get(&j->a, k, BY_COLUMNS, a);
	MU_RETURN_IF_ERROR(lapack_qr(j->a.is_complex, m, n, a, columns, q));
	matrices_put(j->out[0], k * m * columns, BY_COLUMNS, m, columns, q);
	for (int64_t i = 0; i < n; i++) { /* r: `columns` rows of a, zeros below the diagonal */
		int64_t n_copied = i + 1 < columns ? i + 1 : columns;
		char *to = a + (size_t)(i * columns) * size;
		memmove(to, a + (size_t)(i * m) * size, (size_t)n_copied * size);
		memset(to + (size_t)n_copied * size, 0, (size_t)(columns - n_copied) * size);
	}
	matrices_put(j->out[1], k * columns * n, BY_COLUMNS, columns, n, a);
	return 0;
}

static int qr(struct kernel_call *c, struct mu_err *err)
{
	struct matrix_job j = {.one = qr_one,
			       .flag = args_attr_bool(c->node, "full_matrices", false)};

	MU_RETURN_IF_ERROR(matrices_in(c, 0, &j.a, err));
	enum mu_dtype t = j.a.t->dtype;
	int64_t m = j.a.rows, n = j.a.cols, columns = j.flag || m < n ? m : n;
	MU_RETURN_IF_ERROR(matrices_out(c, 0, t, &j.a, 2, (int64_t[]){m, columns}, &j.out[0], err));
	MU_RETURN_IF_ERROR(matrices_out(c, 1, t, &j.a, 2, (int64_t[]){columns, n}, &j.out[1], err));
	j.lwork = m * n + m * columns;
	return matrices_run(c, &j, "", err);
}

static const struct kernel rows[] = {
    {"Qr", .flags = KERNEL_EXPENSIVE, .run = qr},
};
KERNEL_TABLE(linalg_qr, rows)
