/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of matrix products and of Einsum. */
#include "lib/grad/op_grads.h"
#include "lib/ops/equation.h"

static struct mu_out matrix_product(struct mu_builder *b, const char *op, struct mu_out x, bool tx,
				    struct mu_out y, bool ty)
{
	return strcmp(op, "MatMul") == 0
		   ? mu_matmul_t(b, x, tx, y, ty)
		   : mu_op(b, op, MU_IN(x, y),
			   MU_ATTRS(MU_A_BOOL("adj_x", tx), MU_A_BOOL("adj_y", ty)));
}

/* Sets the gradients of the product of x and y, the inputs, possibly cast to another type. */
static void grad_product(struct grad_call *c, const char *op, struct mu_out x, bool tx,
			 struct mu_out y, bool ty)
{
	struct mu_builder *b = c->b;
	struct mu_out g = c->gy[0];

	c->gx[0] =
	    tx ? matrix_product(b, op, y, ty, g, true) : matrix_product(b, op, g, false, y, !ty);
	c->gx[1] =
	    ty ? matrix_product(b, op, g, true, x, tx) : matrix_product(b, op, x, !tx, g, false);
}

static void grad_matmul(struct grad_call *c, const char *op, bool tx, bool ty)
{
	grad_product(c, op, grad_in(c, 0), tx, grad_in(c, 1), ty);
}

static struct mu_out as_type(struct mu_builder *b, struct mu_out x, enum mu_dtype type)
{
	return mu_dtype_base(mu_out_dtype(b, x)) == type ? x : mu_cast(b, x, type);
}

static void g_matmul(struct grad_call *c)
{
	grad_matmul(c, "MatMul", grad_attr_bool(c, "transpose_a"),
		    grad_attr_bool(c, "transpose_b"));
}

/* Each input is a float or a bfloat16; the product is a float. */
static void g_sparse_matmul(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out in[2];
	bool tx = grad_attr_bool(c, "transpose_a"), ty = grad_attr_bool(c, "transpose_b");

	for (unsigned i = 0; i < 2; i++)
		in[i] = as_type(b, grad_in(c, i), MU_FLOAT);
	grad_product(c, "MatMul", in[0], tx, in[1], ty);
	for (unsigned i = 0; i < 2; i++)
		c->gx[i] = as_type(b, c->gx[i], mu_dtype_base(mu_out_dtype(b, grad_in(c, i))));
}

static void g_batch_matmul(struct grad_call *c)
{
	grad_matmul(c, "BatchMatMul", grad_attr_bool(c, "adj_x"), grad_attr_bool(c, "adj_y"));
}

/* The op broadcasts only the batch dimensions. */
static void g_batch_matmul_v2(struct grad_call *c)
{
	grad_matmul(c, "BatchMatMulV2", grad_attr_bool(c, "adj_x"), grad_attr_bool(c, "adj_y"));
	for (unsigned i = 0; i < 2; i++)
		c->gx[i] = grad_sum_to(c->b, c->gx[i], grad_in(c, i));
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

const struct op_grad grads_of_matmul[] = {
    {"BatchMatMul", g_batch_matmul, GRAD_FIRST},
    {"BatchMatMulV2", g_batch_matmul_v2, GRAD_FIRST},
    {"BatchMatMulV3", g_batch_matmul_v2, GRAD_FIRST},
    {"Einsum", g_einsum, GRAD_FIRST},
    {"MatMul", g_matmul, GRAD_FIRST},
    {"SparseMatMul", g_sparse_matmul, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
