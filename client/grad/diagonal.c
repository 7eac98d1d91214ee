/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the ops that make, read, replace and cut out diagonals of matrices.  Those of the
 * second and third generation say which diagonals (k), those of the third how shorter ones are
 * written (align); both are the same on the way back. */
#include <stdio.h>

#include "client/grad/op_grads.h"

/* "V2", "V3", or nothing. */
static const char *generation(const struct grad_call *c)
{
	size_t n = strlen(c->node->op);

	return c->node->op[n - 2] == 'V' ? c->node->op + n - 2 : "";
}

static bool has_k(const struct grad_call *c)
{
	return *generation(c) != '\0';
}

/* The diagonals of m; k: of an op that has it. */
static struct mu_out part(struct grad_call *c, struct mu_out m, struct mu_out k)
{
	char op[32];

	snprintf(op, sizeof op, "MatrixDiagPart%s", generation(c));
	return has_k(c) ? GRAD_OP(c, op, m, k, grad_number(c->b, m, 0)) : mu_op(c->b, op, MU_IN(m));
}

/* m with these diagonals. */
static struct mu_out set(struct grad_call *c, struct mu_out m, struct mu_out diagonal,
			 struct mu_out k)
{
	char op[32];

	snprintf(op, sizeof op, "MatrixSetDiag%s", generation(c));
	return has_k(c) ? GRAD_OP(c, op, m, diagonal, k) : mu_op(c->b, op, MU_IN(m, diagonal));
}

/* What is in `all` and not in `some`, summed: the share of a number that fills up. */
static struct mu_out rest(struct mu_builder *b, struct mu_out all, struct mu_out some)
{
	return mu_sub(b, mu_sum(b, grad_flat(b, all), NULL, 0),
		      mu_sum(b, grad_flat(b, some), NULL, 0));
}

/* Of (diagonal), or (diagonal, k, rows, columns, filling). */
static void g_diag(struct grad_call *c)
{
	c->gx[0] = part(c, c->gy[0], has_k(c) ? grad_in(c, 1) : MU_NO_OUT);
	if (has_k(c))
		c->gx[4] = rest(c->b, c->gy[0], c->gx[0]);
}

/* Of (matrix), or (matrix, k, filling). */
static void g_diag_part(struct grad_call *c)
{
	struct mu_out none = grad_zeros(c->b, grad_in(c, 0));

	c->gx[0] = set(c, none, c->gy[0], has_k(c) ? grad_in(c, 1) : MU_NO_OUT);
	if (has_k(c))
		c->gx[2] = rest(c->b, c->gy[0], c->gx[0]);
}

/* Of (matrix, diagonal), and k. */
static void g_set_diag(struct grad_call *c)
{
	struct mu_out k = has_k(c) ? grad_in(c, 2) : MU_NO_OUT;

	c->gx[0] = set(c, c->gy[0], grad_zeros(c->b, grad_in(c, 1)), k);
	c->gx[1] = part(c, c->gy[0], k);
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
