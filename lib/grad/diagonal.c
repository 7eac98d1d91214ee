/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the ops that create, read, replace and cut diagonals of matrices. The V2 and V3 ops
 * select diagonals (k). The V3 ops also have an alignment of shorter diagonals (align). The
 * gradient ops have the same k and align. */
#include <stdio.h>

#include "lib/grad/op_grads.h"

/* Returns the version suffix of the op: "V2", "V3" or "". */
static const char *version_suffix(const struct grad_call *c)
{
	size_t n = strlen(c->node->op);

	return c->node->op[n - 2] == 'V' ? c->node->op + n - 2 : "";
}

static bool has_k(const struct grad_call *c)
{
	return *version_suffix(c) != '\0';
}

/* Returns the diagonals of m. Uses k only if the op has this input. */
static struct mu_out diagonal_part(struct grad_call *c, struct mu_out m, struct mu_out k)
{
	char op[32];

	snprintf(op, sizeof op, "MatrixDiagPart%s", version_suffix(c));
	return has_k(c) ? GRAD_OP(c, op, m, k, grad_number(c->b, m, 0)) : mu_op(c->b, op, MU_IN(m));
}

/* Returns m with its diagonals replaced. */
static struct mu_out set_diagonal(struct grad_call *c, struct mu_out m, struct mu_out diagonal,
				  struct mu_out k)
{
	char op[32];

	snprintf(op, sizeof op, "MatrixSetDiag%s", version_suffix(c));
	return has_k(c) ? GRAD_OP(c, op, m, diagonal, k) : mu_op(c->b, op, MU_IN(m, diagonal));
}

/* Returns the gradient of the padding value: the sum of the elements of `padded` that are not in
 * `diagonals`. */
static struct mu_out padding_gradient(struct mu_builder *b, struct mu_out padded,
				      struct mu_out diagonals)
{
	return mu_sub(b, mu_sum(b, grad_flat(b, padded), NULL, 0),
		      mu_sum(b, grad_flat(b, diagonals), NULL, 0));
}

/* Inputs: (diagonal), or (diagonal, k, rows, columns, padding value). */
static void g_diag(struct grad_call *c)
{
	c->gx[0] = diagonal_part(c, c->gy[0], has_k(c) ? grad_in(c, 1) : MU_NO_OUT);
	if (has_k(c))
		c->gx[4] = padding_gradient(c->b, c->gy[0], c->gx[0]);
}

/* Inputs: (matrix), or (matrix, k, padding value). */
static void g_diag_part(struct grad_call *c)
{
	struct mu_out zeros = grad_zeros(c->b, grad_in(c, 0));

	c->gx[0] = set_diagonal(c, zeros, c->gy[0], has_k(c) ? grad_in(c, 1) : MU_NO_OUT);
	if (has_k(c))
		c->gx[2] = padding_gradient(c->b, c->gy[0], c->gx[0]);
}

/* Inputs: (matrix, diagonal), or (matrix, diagonal, k). */
static void g_set_diag(struct grad_call *c)
{
	struct mu_out k = has_k(c) ? grad_in(c, 2) : MU_NO_OUT;

	c->gx[0] = set_diagonal(c, c->gy[0], grad_zeros(c->b, grad_in(c, 1)), k);
	c->gx[1] = diagonal_part(c, c->gy[0], k);
}

GRAD_UNARY(g_band, mu_op(b, "MatrixBandPart", MU_IN(g, grad_in(c, 1), grad_in(c, 2))))

const struct op_grad grads_of_diagonals[] = {
    {"MatrixBandPart", g_band, GRAD_FIRST},
    {"MatrixDiag", g_diag, GRAD_FIRST},
    {"MatrixDiagV2", g_diag, GRAD_FIRST},
    {"MatrixDiagV3", g_diag, GRAD_FIRST},
    {"MatrixDiagPart", g_diag_part, GRAD_FIRST},
    {"MatrixDiagPartV2", g_diag_part, GRAD_FIRST},
    {"MatrixDiagPartV3", g_diag_part, GRAD_FIRST},
    {"MatrixSetDiag", g_set_diag, GRAD_FIRST},
    {"MatrixSetDiagV2", g_set_diag, GRAD_FIRST},
    {"MatrixSetDiagV3", g_set_diag, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
