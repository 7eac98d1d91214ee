/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of QR decompositions, triangular and banded solvers, and Einsum, for batches of
 * matrices. */
#include "lib/grad/op_grads.h"
#include "lib/ops/equation.h"

/* The lower or upper triangle, with the diagonal. */
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

/* Number of rows of the matrices of x. */
static struct mu_out rows_of(struct mu_builder *b, struct mu_out x)
{
	struct mu_out shape = grad_shape(b, x);

	return mu_op(b, "GatherV2",
		     MU_IN(shape, mu_sub(b, grad_size(b, shape), grad_int(b, 2)), grad_int(b, 0)));
}

/* As g_triangular_solve, but a holds only the diagonals: takes the diagonals of the full gradient.
 */
static void g_banded_solve(struct grad_call *c)
{
	bool lower = grad_attr_bool(c, "lower"), adjoint = grad_attr_bool(c, "adjoint");
	struct mu_builder *b = c->b;
	struct mu_out a = grad_in(c, 0), x = grad_out(c, 0), gx, da;
	struct mu_out none = grad_int(b, 0), most = mu_sub(b, rows_of(b, a), grad_int(b, 1));

	gx = solve_bands(b, a, c->gy[0], lower, !adjoint);
	da = adjoint ? grad_matrix_product(b, x, false, gx, true)
		     : grad_matrix_product(b, gx, false, x, true);
	struct mu_out which = lower ? mu_op(b, "Pack", MU_IN(mu_neg(b, most), none))
				    : mu_op(b, "Pack", MU_IN(none, most));
	da = mu_op(b, "MatrixDiagPartV3", MU_IN(da, which, grad_number(b, a, 0)),
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

/* a = q r with no more columns than rows. The columns of q stay orthogonal and r stays upper
 * triangular, which determines dq and dr, and thereby da. */
static struct mu_out qr_tall(const struct qr *w, struct mu_out q, struct mu_out r, struct mu_out dq,
			     struct mu_out dr)
{
	struct mu_builder *b = w->b;
	struct mu_out qdq = grad_matrix_product(b, q, true, dq, false);
	struct mu_out skew = mu_add(b, mu_sub(b, qdq, grad_matrix_product(b, dq, true, q, false)),
				    mu_sub(b, grad_matrix_product(b, r, false, dr, true),
					   grad_matrix_product(b, dr, false, r, true)));
	struct mu_out within = mu_add(b, dr, solve_transposed_r(w, triangle(b, skew, true), r));
	struct mu_out beside =
	    solve_transposed_r(w, mu_sub(b, dq, grad_matrix_product(b, q, false, qdq, false)), r);

	return mu_add(b, grad_matrix_product(b, q, false, within, false), beside);
}

/* Columns [from, from + n) of the last dimension; n -1: up to the end. */
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

/* The columns of a beyond the square part depend on q alone: v = qᵀ a. */
static struct mu_out qr_wide(const struct qr *w, struct grad_call *c, int64_t rows)
{
	struct mu_builder *b = w->b;
	struct mu_out q = grad_out(c, 0), r = grad_out(c, 1), dq = c->gy[0], dr = c->gy[1];
	struct mu_out dv = columns(w, dr, rows, -1), rest = columns(w, grad_in(c, 0), rows, -1);
	struct mu_out square = qr_tall(w, q, columns(w, r, 0, rows),
				       mu_add(b, dq, grad_matrix_product(b, rest, false, dv, true)),
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

/* y NULL: x is the only input. */
static struct mu_out einsum(struct mu_builder *b, struct mu_out x, const struct mu_term *of_x,
			    const struct mu_out *y, const struct mu_term *of_y,
			    const struct mu_term *out)
{
	MU_AUTO_BUF text = {0};

	write_term(&text, of_x);
	if (y) {
		mu_buf_printf(&text, ",");
		write_term(&text, of_y);
	}
	mu_buf_printf(&text, "->");
	write_term(&text, out);
	struct mu_node_attr equation = MU_A_STR("equation", text.data);
	return mu_op_add(b, &(struct mu_op_args){.op = "Einsum",
						 .in = (struct mu_out[]){x, y ? *y : x},
						 .n_in = y ? 2 : 1,
						 .attrs = &equation,
						 .n_attrs = 1});
}

/* Sums g to the shape of x. Only the axes of the ellipsis in the term of x may differ. */
static struct mu_out sum_ellipsis(struct mu_builder *b, struct mu_out g, struct mu_out x,
				  const struct mu_term *of_x)
{
	struct mu_out sx = grad_shape(b, x), over;
	int before = 0, after;

	while (of_x->label[before] != MU_ELLIPSIS)
		before++;
	after = of_x->n - 1 - before;
	over = mu_op(b, "BroadcastGradientArgs",
		     MU_IN(grad_slice(b, sx, before, -after),
			   grad_slice(b, grad_shape(b, g), before, -after)));
	over = mu_add(b, over, grad_int(b, before));
	return mu_reshape(b, mu_op(b, "Sum", MU_IN(g, over)), sx);
}

static struct mu_out einsum_back(struct grad_call *c, const struct mu_equation *e, unsigned i)
{
	struct mu_out x = grad_in(c, i), ones, y, g;
	const struct mu_term *of_x = &e->in[i], *of_y = e->n_in > 1 ? &e->in[1 - i] : NULL;
	struct mu_term reached = {.n = 0};

	if (of_y)
		y = grad_conj(c->b, grad_in(c, 1 - i));
	for (int k = 0; k < of_x->n; k++)
		if (mu_term_has(&e->out, of_x->label[k]) ||
		    (of_y && mu_term_has(of_y, of_x->label[k])))
			reached.label[reached.n++] = of_x->label[k];
	g = einsum(c->b, c->gy[0], &e->out, of_y ? &y : NULL, of_y, &reached);
	/* a label that was summed in x alone: broadcast the gradient over it */
	if (reached.n < of_x->n) {
		ones = mu_op(c->b, "OnesLike", MU_IN(x));
		g = einsum(c->b, g, &reached, &ones, of_x, of_x);
	}
	return mu_term_has(of_x, MU_ELLIPSIS) && of_y ? sum_ellipsis(c->b, g, x, of_x) : g;
}

static void g_einsum(struct grad_call *c)
{
	const char *text = "";
	struct mu_equation e;

	mu_node_attr_string(c->node, "equation", &text, NULL);
	if (mu_equation_read(&e, text, c->node->n_inputs, NULL))
		return; /* the node itself is invalid */
	/* An input without the ellipsis of the result is broadcast over it. */
	for (unsigned i = 0; i < e.n_in; i++)
		if (e.n_in > 1 && mu_term_has(&e.out, MU_ELLIPSIS) &&
		    !mu_term_has(&e.in[i], MU_ELLIPSIS) && e.in[i].n <= MU_MAX_RANK)
			e.in[i].label[e.in[i].n++] = MU_ELLIPSIS;
	for (unsigned i = 0; i < e.n_in; i++)
		c->gx[i] = einsum_back(c, &e, i);
}

const struct op_grad grads_of_matrices[] = {
    {"BandedTriangularSolve", g_banded_solve, GRAD_FIRST},
    {"Einsum", g_einsum, GRAD_FIRST},
    {"MatrixTriangularSolve", g_triangular_solve, GRAD_FIRST},
    {"Qr", g_qr, GRAD_ALL},
    {NULL, NULL, GRAD_FIRST},
};
