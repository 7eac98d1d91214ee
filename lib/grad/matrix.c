/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of QR decompositions, triangular and banded solvers, and Einsum, for batches of
 * matrices. */
#include "lib/grad/op_grads.h"
#include "lib/ops/equation.h"

/* Returns the lower or upper triangle, with the diagonal. */
static struct mu_out triangle(struct mu_builder *b, struct mu_out x, bool lower)
{
	return mu_op(b, "MatrixBandPart",
		     MU_IN(x, grad_int(b, lower ? -1 : 0), grad_int(b, lower ? 0 : -1)));
}

static struct mu_out solve(struct mu_builder *b, struct mu_out a, struct mu_out x, bool lower,
			   bool adjoint)
{
	return mu_op(b, "MatrixTriangularSolve", MU_IN(a, x),
		     MU_ATTRS(MU_A_BOOL("lower", lower), MU_A_BOOL("adjoint", adjoint)));
}

/* Inputs: (a, b); output x with a x = b. */
static void g_triangular_solve(struct grad_call *c)
{
	bool lower = grad_attr_bool(c, "lower"), adjoint = grad_attr_bool(c, "adjoint");
	struct mu_builder *b = c->b;
	struct mu_out a = grad_in(c, 0), x = grad_out(c, 0), gx, da;

	gx = solve(b, a, c->gy[0], lower, !adjoint);
	da = adjoint ? grad_matrix_product(b, x, false, gx, true)
		     : grad_matrix_product(b, gx, false, x, true);
	c->gx[0] = grad_sum_to(b, triangle(b, mu_neg(b, da), lower), a);
	c->gx[1] = grad_sum_to(b, gx, grad_in(c, 1));
}

static struct mu_out solve_bands(struct mu_builder *b, struct mu_out a, struct mu_out x, bool lower,
				 bool adjoint)
{
	return mu_op(b, "BandedTriangularSolve", MU_IN(a, x),
		     MU_ATTRS(MU_A_BOOL("lower", lower), MU_A_BOOL("adjoint", adjoint)));
}

/* Returns the number of rows of the matrices of x. */
static struct mu_out rows_of(struct mu_builder *b, struct mu_out x)
{
	struct mu_out shape = grad_shape(b, x);

	return mu_op(b, "GatherV2",
		     MU_IN(shape, mu_sub(b, grad_size(b, shape), grad_int(b, 2)), grad_int(b, 0)));
}

/* As g_triangular_solve, but `a` has only the diagonals, and so has its gradient. */
static void g_banded_solve(struct grad_call *c)
{
	bool lower = grad_attr_bool(c, "lower"), adjoint = grad_attr_bool(c, "adjoint");
	struct mu_builder *b = c->b;
	struct mu_out a = grad_in(c, 0), x = grad_out(c, 0), gx, da;
	struct mu_out zero = grad_int(b, 0), n_bands = mu_sub(b, rows_of(b, a), grad_int(b, 1));

	gx = solve_bands(b, a, c->gy[0], lower, !adjoint);
	da = adjoint ? grad_matrix_product(b, x, false, gx, true)
		     : grad_matrix_product(b, gx, false, x, true);
	struct mu_out k = lower ? mu_op(b, "Pack", MU_IN(mu_neg(b, n_bands), zero))
				: mu_op(b, "Pack", MU_IN(zero, n_bands));
	da = mu_op(b, "MatrixDiagPartV3", MU_IN(da, k, grad_number(b, a, 0)),
		   MU_ATTRS(MU_A_STR("align", "LEFT_RIGHT")));
	c->gx[0] = grad_sum_to(b, mu_neg(b, da), a);
	c->gx[1] = grad_sum_to(b, gx, grad_in(c, 1));
}

/* Transposes the last two dimensions of a tensor of known rank. */
static struct mu_out transposed(struct mu_builder *b, struct mu_out x, int rank)
{
	int32_t order[MU_MAX_RANK];

	for (int i = 0; i < rank; i++)
		order[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
	return mu_op(b, "Transpose", MU_IN(x, mu_const_ints(b, order, (unsigned)rank)));
}

struct qr {
	struct mu_builder *b;
	int rank;
};

/* Solves x rᵀ = y for x. */
static struct mu_out solve_transposed_r(const struct qr *w, struct mu_out y, struct mu_out r)
{
	return transposed(w->b, solve(w->b, r, transposed(w->b, y, w->rank), false, false),
			  w->rank);
}

/* Returns da for a = q r with no more columns than rows. The constraints are that the columns of q
 * stay orthogonal and that r stays upper triangular. */
static struct mu_out qr_tall(const struct qr *w, struct mu_out q, struct mu_out r, struct mu_out dq,
			     struct mu_out dr)
{
	struct mu_builder *b = w->b;
	struct mu_out qdq = grad_matrix_product(b, q, true, dq, false);
	struct mu_out skew = mu_add(b, mu_sub(b, qdq, grad_matrix_product(b, dq, true, q, false)),
				    mu_sub(b, grad_matrix_product(b, r, false, dr, true),
					   grad_matrix_product(b, dr, false, r, true)));
	struct mu_out q_part = mu_add(b, dr, solve_transposed_r(w, triangle(b, skew, true), r));
	struct mu_out orthogonal_part =
	    solve_transposed_r(w, mu_sub(b, dq, grad_matrix_product(b, q, false, qdq, false)), r);

	return mu_add(b, grad_matrix_product(b, q, false, q_part, false), orthogonal_part);
}

/* Returns columns [from, from + n) of the last dimension; n -1: up to the end. */
static struct mu_out columns(const struct qr *w, struct mu_out x, int64_t from, int64_t n)
{
	int32_t begin[MU_MAX_RANK] = {0}, size[MU_MAX_RANK];

	for (int i = 0; i < w->rank; i++)
		size[i] = -1;
	begin[w->rank - 1] = (int32_t)from;
	size[w->rank - 1] = (int32_t)n;
	return mu_op(w->b, "Slice",
		     MU_IN(x, mu_const_ints(w->b, begin, (unsigned)w->rank),
			   mu_const_ints(w->b, size, (unsigned)w->rank)));
}

/* The columns of `a` after the square part determine only the last columns v of r: v = qᵀ a. */
static struct mu_out qr_wide(const struct qr *w, struct grad_call *c, int64_t rows)
{
	struct mu_builder *b = w->b;
	struct mu_out q = grad_out(c, 0), r = grad_out(c, 1), dq = c->gy[0], dr = c->gy[1];
	struct mu_out dv = columns(w, dr, rows, -1),
		      last_columns = columns(w, grad_in(c, 0), rows, -1);
	struct mu_out square =
	    qr_tall(w, q, columns(w, r, 0, rows),
		    mu_add(b, dq, grad_matrix_product(b, last_columns, false, dv, true)),
		    columns(w, dr, 0, rows));

	return mu_op(b, "ConcatV2",
		     MU_IN(square, grad_matrix_product(b, q, false, dv, false), grad_int(b, -1)));
}

static void g_qr(struct grad_call *c)
{
	const struct mu_pshape *s = mu_out_shape(c->b, grad_in(c, 0));
	int64_t rows = s->rank < 2 ? -1 : s->dim[s->rank - 2];
	int64_t cols = s->rank < 2 ? -1 : s->dim[s->rank - 1];
	struct qr w = {c->b, s->rank};

	if (rows < 0 || cols < 0)
		grad_unsupported(c, "if the size of the matrix is unknown");
	else if (grad_attr_bool(c, "full_matrices") && rows > cols)
		grad_unsupported(c, "with full_matrices and more rows than columns");
	else if (rows < cols)
		c->gx[0] = qr_wide(&w, c, rows);
	else
		c->gx[0] = qr_tall(&w, grad_out(c, 0), grad_out(c, 1), c->gy[0], c->gy[1]);
}

/* ---- Einsum: the gradient of an input is an Einsum with another equation ---- */

static void write_term(struct mu_buf *b, const struct mu_term *t)
{
	for (int i = 0; i < t->n; i++) {
		int l = t->label[i];
		if (l == MU_ELLIPSIS)
			mu_buf_printf(b, "...");
		else
			mu_buf_printf(b, "%c", l < 26 ? 'a' + l : 'A' + l - 26);
	}
}

/* Adds an Einsum of x and y. y NULL: x is the only input. */
static struct mu_out einsum(struct mu_builder *b, struct mu_out x, const struct mu_term *x_term,
			    const struct mu_out *y, const struct mu_term *y_term,
			    const struct mu_term *out_term)
{
	MU_AUTO_BUF text = {0};

	write_term(&text, x_term);
	if (y) {
		mu_buf_printf(&text, ",");
		write_term(&text, y_term);
	}
	mu_buf_printf(&text, "->");
	write_term(&text, out_term);
	struct mu_node_attr equation = MU_A_STR("equation", text.data);
	return mu_op_add(b, &(struct mu_op_args){.op = "Einsum",
						 .in = (struct mu_out[]){x, y ? *y : x},
						 .n_in = y ? 2 : 1,
						 .attrs = &equation,
						 .n_attrs = 1});
}

/* Sums g to the shape of x. Only the axes of the ellipsis in the term of x may differ. */
static struct mu_out sum_ellipsis(struct mu_builder *b, struct mu_out g, struct mu_out x,
				  const struct mu_term *x_term)
{
	struct mu_out sx = grad_shape(b, x), axes;
	int n_before = 0, n_after;

	while (x_term->label[n_before] != MU_ELLIPSIS)
		n_before++;
	n_after = x_term->n - 1 - n_before;
	axes = mu_op(b, "BroadcastGradientArgs",
		     MU_IN(grad_slice(b, sx, n_before, -n_after),
			   grad_slice(b, grad_shape(b, g), n_before, -n_after)));
	axes = mu_add(b, axes, grad_int(b, n_before));
	return mu_reshape(b, mu_op(b, "Sum", MU_IN(g, axes)), sx);
}

static struct mu_out input_gradient(struct grad_call *c, const struct mu_equation *e, unsigned i)
{
	struct mu_out x = grad_in(c, i), ones, y, g;
	const struct mu_term *x_term = &e->in[i], *y_term = e->n_in > 1 ? &e->in[1 - i] : NULL;
	struct mu_term shared = {.n = 0};

	if (y_term)
		y = grad_conj(c->b, grad_in(c, 1 - i));
	for (int k = 0; k < x_term->n; k++)
		if (mu_term_has(&e->out, x_term->label[k]) ||
		    (y_term && mu_term_has(y_term, x_term->label[k])))
			shared.label[shared.n++] = x_term->label[k];
	g = einsum(c->b, c->gy[0], &e->out, y_term ? &y : NULL, y_term, &shared);
	/* Broadcasts the gradient over labels that occur only in x. */
	if (shared.n < x_term->n) {
		ones = mu_op(c->b, "OnesLike", MU_IN(x));
		g = einsum(c->b, g, &shared, &ones, x_term, x_term);
	}
	return mu_term_has(x_term, MU_ELLIPSIS) && y_term ? sum_ellipsis(c->b, g, x, x_term) : g;
}

static void g_einsum(struct grad_call *c)
{
	const char *text = "";
	struct mu_equation e;

	mu_node_attr_string(c->node, "equation", &text, NULL);
	if (mu_equation_read(&e, text, c->node->n_inputs, NULL))
		return; /* the node itself is invalid */
	/* An input without the ellipsis of the result broadcasts over it. */
	for (unsigned i = 0; i < e.n_in; i++)
		if (e.n_in > 1 && mu_term_has(&e.out, MU_ELLIPSIS) &&
		    !mu_term_has(&e.in[i], MU_ELLIPSIS) && e.in[i].n <= MU_MAX_RANK)
			e.in[i].label[e.in[i].n++] = MU_ELLIPSIS;
	for (unsigned i = 0; i < e.n_in; i++)
		c->gx[i] = input_gradient(c, &e, i);
}

const struct op_grad grads_of_matrices[] = {
    {"BandedTriangularSolve", g_banded_solve, GRAD_FIRST},
    {"Einsum", g_einsum, GRAD_FIRST},
    {"MatrixTriangularSolve", g_triangular_solve, GRAD_FIRST},
    {"Qr", g_qr, GRAD_ALL},
    {NULL, NULL, GRAD_FIRST},
};
