/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of ops that gather and scatter by index.
 *
 * UnsortedSegmentSum over the rows of the source sums the gradients of a row that was gathered
 * several times. The gradient has the size of the source. If the source is a variable, the
 * optimizers recognise this op and update only the gathered rows (client/optim/rows.c).
 */
#include "lib/grad/op_grads.h"

/* Sums the rows of g, one for each index, into `rows` rows. */
static struct mu_out sum_rows(struct mu_builder *b, struct mu_out g, struct mu_out indices,
			      struct mu_out rows)
{
	return mu_op(b, "UnsortedSegmentSum", MU_IN(g, indices, rows));
}

static struct mu_out first_size(struct mu_builder *b, struct mu_out shape)
{
	return mu_op(b, "StridedSlice",
		     MU_IN(shape, mu_const_ints(b, (int32_t[]){0}, 1),
			   mu_const_ints(b, (int32_t[]){1}, 1),
			   mu_const_ints(b, (int32_t[]){1}, 1)),
		     MU_ATTRS(MU_A_INT("shrink_axis_mask", 1)));
}

GRAD_UNARY(g_gather, sum_rows(b, g, grad_in(c, 1), first_size(b, grad_shape(b, x))))
GRAD_UNARY(g_resource_gather,
	   sum_rows(b, g, grad_in(c, 1), first_size(b, mu_op(b, "VariableShape", MU_IN(x)))))
GRAD_UNARY(g_gather_nd, mu_op(b, "ScatterNd",
			      MU_IN(grad_in(c, 1), g,
				    mu_cast(b, grad_shape(b, x),
					    mu_dtype_base(mu_out_dtype(b, grad_in(c, 1)))))))

/* Appends the numbers [from, to) to a permutation. */
static void append_range(int32_t *perm, int *n, int from, int to)
{
	while (from < to)
		perm[(*n)++] = from++;
}

static struct mu_out vector_product(struct mu_builder *b, struct mu_out v)
{
	return mu_op(b, "Prod", MU_IN(v, mu_const_ints(b, (int32_t[]){0}, 1)));
}

/* Sums g into a tensor of the source's shape. The first `batch` dimensions are batches of n rows.
 * Index i of batch k is row k n + i of all rows. */
static struct mu_out sum_batches(struct grad_call *c, struct mu_out g, struct mu_out shape,
				 int batch)
{
	struct mu_builder *b = c->b;
	struct mu_out batches = vector_product(b, grad_slice(b, shape, 0, batch));
	struct mu_out n = vector_product(b, grad_slice(b, shape, batch, batch + 1));
	struct mu_out batch_ids = mu_op(b, "Range", MU_IN(grad_int(b, 0), batches, grad_int(b, 1)));
	struct mu_out columns =
	    mu_op(b, "ExpandDims", MU_IN(mu_mul(b, batch_ids, n), grad_int(b, 1)));
	struct mu_out indices = mu_cast(b, grad_in(c, 1), MU_INT32);
	/* No size is -1, because Reshape cannot infer it for a tensor without elements. */
	struct mu_out per_batch =
	    vector_product(b, grad_slice(b, grad_shape(b, indices), batch, 0));
	struct mu_out table = mu_reshape(b, indices, mu_op(b, "Pack", MU_IN(batches, per_batch)));
	struct mu_out row_ids = grad_flat(b, mu_add(b, table, columns));
	struct mu_out inner_shape = mu_op(
	    b, "ConcatV2",
	    MU_IN(grad_shape(b, row_ids), grad_slice(b, shape, batch + 1, 0), grad_int(b, 0)));

	return mu_reshape(
	    b, sum_rows(b, mu_reshape(b, g, inner_shape), row_ids, mu_mul(b, batches, n)), shape);
}

/* Gather along an axis after the batch dimensions. Moves the index dimensions to the front, sums
 * the rows, and moves the axis back. */
static void gather_inner(struct grad_call *c, int axis, int batch, int rank, int rank_i)
{
	struct mu_builder *b = c->b;
	int32_t perm[2 * MU_MAX_RANK];
	int n = 0, index_rank = rank_i - batch;
	struct mu_out g, shape, sums;

	append_range(perm, &n, 0, batch);
	append_range(perm, &n, axis, axis + index_rank);
	append_range(perm, &n, batch, axis);
	append_range(perm, &n, axis + index_rank, index_rank + rank - 1);
	g = mu_op(b, "Transpose", MU_IN(c->gy[0], mu_const_ints(b, perm, (unsigned)n)));
	n = 0;
	append_range(perm, &n, 0, batch);
	perm[n++] = axis;
	append_range(perm, &n, batch, axis);
	append_range(perm, &n, axis + 1, rank);
	shape = mu_op(b, "Gather",
		      MU_IN(grad_shape(b, grad_in(c, 0)), mu_const_ints(b, perm, (unsigned)n)));
	sums = batch ? sum_batches(c, g, shape, batch)
		     : sum_rows(b, g, grad_in(c, 1), first_size(b, shape));
	n = 0;
	append_range(perm, &n, 0, batch);
	append_range(perm, &n, batch + 1, axis + 1);
	perm[n++] = batch;
	append_range(perm, &n, axis + 1, rank);
	c->gx[0] = mu_op(b, "Transpose", MU_IN(sums, mu_const_ints(b, perm, (unsigned)n)));
}

static void g_gather_v2(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	const struct mu_tensor *value = builder_value(b, grad_in(c, 2));
	int rank = mu_out_shape(b, grad_in(c, 0))->rank;
	int rank_i = mu_out_shape(b, grad_in(c, 1))->rank;
	int64_t axis = value ? mu_tensor_int(value, 0) : 0, batch = 0;

	mu_node_attr_int(c->node, "batch_dims", &batch, NULL);
	if (value && axis < 0 && rank > 0)
		axis += rank;
	if (batch < 0 && rank_i >= 0)
		batch += rank_i;
	if (!value || axis < 0 || (axis && (rank < 0 || rank_i < 0 || axis >= rank)) || batch < 0 ||
	    batch > axis || (batch && batch > rank_i))
		grad_unsupported(c, "except for a constant axis and known ranks");
	else if (axis > batch)
		gather_inner(c, (int)axis, (int)batch, rank, rank_i);
	else if (batch)
		c->gx[0] = sum_batches(c, c->gy[0], grad_shape(b, grad_in(c, 0)), (int)batch);
	else
		g_gather(c);
}

static void g_resource_gather_nd(struct grad_call *c)
{
	struct mu_out indices = grad_in(c, 1);
	struct mu_out shape = mu_op(c->b, "VariableShape", MU_IN(grad_in(c, 0)));

	c->gx[0] = mu_op(c->b, "ScatterNd",
			 MU_IN(indices, c->gy[0],
			       mu_cast(c->b, shape, mu_dtype_base(mu_out_dtype(c->b, indices)))));
}

/* Inputs: (input, indices, updates). */
static void g_scatter_nd_add(struct grad_call *c)
{
	c->gx[0] = c->gy[0];
	c->gx[2] = mu_op(c->b, "GatherNd", MU_IN(c->gy[0], grad_in(c, 1)));
}

/* Inputs as above. An overwritten element has no gradient. */
static void g_scatter_update(struct grad_call *c)
{
	c->gx[0] = mu_op(c->b, "TensorScatterUpdate",
			 MU_IN(c->gy[0], grad_in(c, 1), grad_zeros(c->b, grad_in(c, 2))));
	c->gx[2] = mu_op(c->b, "GatherNd", MU_IN(c->gy[0], grad_in(c, 1)));
}

static void g_scatter_sub(struct grad_call *c)
{
	g_scatter_nd_add(c);
	c->gx[2] = mu_neg(c->b, c->gx[2]);
}

/* Max or Min: the elements that are equal to the result share its gradient. */
static void g_scatter_extreme(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out x = grad_in(c, 0), indices = grad_in(c, 1), updates = grad_in(c, 2);
	struct mu_out y = grad_out(c, 0), y_at_indices = mu_op(b, "GatherNd", MU_IN(y, indices));
	struct mu_out unchanged = grad_indicator(b, mu_equal(b, x, y), x);
	struct mu_out from_updates = grad_indicator(b, mu_equal(b, updates, y_at_indices), x);
	struct mu_out share = mu_div(
	    b, c->gy[0], mu_op(b, "TensorScatterAdd", MU_IN(unchanged, indices, from_updates)));

	c->gx[0] = mu_mul(b, unchanged, share);
	c->gx[2] = mu_mul(b, from_updates, mu_op(b, "GatherNd", MU_IN(share, indices)));
}

/* Inputs: (indices, updates, shape). */
static void g_scatter_nd(struct grad_call *c)
{
	c->gx[1] = mu_op(c->b, "GatherNd", MU_IN(c->gy[0], grad_in(c, 0)));
}

/* Inputs: (indices, shape, values, default). Indices are a vector of numbers or a matrix of
 * coordinates. */
static void g_sparse_to_dense(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out g = c->gy[0], indices = grad_in(c, 0), values;

	if (mu_out_shape(b, indices)->rank != 2)
		indices = mu_reshape(
		    b, indices,
		    mu_op(b, "Pack", MU_IN(grad_int(b, -1), mu_op(b, "Rank", MU_IN(g)))));
	values = mu_op(b, "GatherNd", MU_IN(g, indices));
	c->gx[2] = grad_sum_to(b, values, grad_in(c, 2));
	c->gx[3] = mu_sub(b, mu_sum(b, grad_flat(b, g), NULL, 0),
			  mu_sum(b, grad_flat(b, values), NULL, 0));
}

/* Inputs: (indices, values, shape, default). Output 3 is the new position of each value. */
static void g_fill_empty_rows(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out g = c->gy[1];

	if (!g.node)
		return;
	c->gx[1] = mu_op(b, "Gather", MU_IN(g, grad_out(c, 3)));
	c->gx[3] = mu_sub(b, mu_sum(b, g, NULL, 0), mu_sum(b, c->gx[1], NULL, 0));
}

/* Elements that are equal to the result share its gradient. */
static void g_nth_element(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out x = grad_in(c, 0), last = grad_int(b, -1);
	struct mu_out y = mu_op(b, "ExpandDims", MU_IN(grad_out(c, 0), last));
	struct mu_out g = mu_op(b, "ExpandDims", MU_IN(c->gy[0], last));
	struct mu_out is_equal = grad_indicator(b, mu_op(b, "Equal", MU_IN(x, y)), x);
	struct mu_out n =
	    mu_op(b, "Sum", MU_IN(is_equal, last), MU_ATTRS(MU_A_BOOL("keep_dims", true)));

	c->gx[0] = mu_mul(b, mu_div(b, is_equal, n), g);
}

/* A row has k of n elements. The value with `index` in row r is element r n + index of x. */
static void g_top_k(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out x = grad_in(c, 0), size = grad_size(b, x);
	struct mu_out width =
	    mu_op(b, "Gather",
		  MU_IN(grad_shape(b, x), mu_sub(b, mu_op(b, "Rank", MU_IN(x)), grad_int(b, 1))));
	struct mu_out index = mu_cast(b, grad_out(c, 1), MU_INT32);
	struct mu_out k =
	    mu_op(b, "Slice",
		  MU_IN(grad_shape(b, index),
			mu_reshape(b, mu_sub(b, mu_op(b, "Rank", MU_IN(x)), grad_int(b, 1)),
				   mu_const_ints(b, (int32_t[]){1}, 1)),
			mu_const_ints(b, (int32_t[]){1}, 1)));
	struct mu_out table = mu_reshape(
	    b, index,
	    mu_op(b, "ConcatV2", MU_IN(mu_const_ints(b, (int32_t[]){-1}, 1), k, grad_int(b, 0))));
	struct mu_out rows =
	    mu_op(b, "ExpandDims",
		  MU_IN(mu_op(b, "Range", MU_IN(grad_int(b, 0), size, width)), grad_int(b, 1)));
	struct mu_out element_ids = grad_flat(b, mu_add(b, table, rows));

	c->gx[0] = grad_like(b, sum_rows(b, grad_flat(b, c->gy[0]), element_ids, size), x);
}

/* Inputs: (data, partitions). The same partition of the numbers 0, 1, 2, … provides the indices of
 * a DynamicStitch. */
static void g_partition(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out data = grad_in(c, 0), partitions = grad_in(c, 1), pieces;
	struct mu_out element_ids =
	    mu_op(b, "Range", MU_IN(grad_int(b, 0), grad_size(b, partitions), grad_int(b, 1)));
	struct mu_out *in = MU_NEW_ARRAY(struct mu_out, 2 * c->n_gy + 1);

	pieces = GRAD_OP(c, "DynamicPartition", grad_like(b, element_ids, partitions), partitions);
	for (unsigned i = 0; i < c->n_gy; i++) {
		in[i] = mu_port(pieces, (int)i);
		in[c->n_gy + i] = c->gy[i];
	}
	c->gx[0] = grad_like(b,
			     mu_op_add(b, &(struct mu_op_args){.op = "DynamicStitch",
							       .in = in,
							       .n_in = 2 * c->n_gy,
							       .attrs = &MU_A_INT("N", c->n_gy),
							       .n_attrs = 1}),
			     data);
	free(in);
}

/* Inputs: (indices…, data…). If an index occurs twice the later data wins, but both get the
 * gradient, as in TensorFlow. */
static void g_stitch(struct grad_call *c)
{
	unsigned n = c->node->n_inputs / 2;

	for (unsigned i = 0; i < n; i++)
		c->gx[n + i] = mu_op(c->b, "Gather", MU_IN(c->gy[0], grad_in(c, i)));
}

const struct op_grad grads_of_indices[] = {
    {"DynamicPartition", g_partition, GRAD_ALL},
    {"DynamicStitch", g_stitch, GRAD_FIRST},
    {"Gather", g_gather, GRAD_FIRST},
    {"GatherNd", g_gather_nd, GRAD_FIRST},
    {"GatherV2", g_gather_v2, GRAD_FIRST},
    {"ParallelDynamicStitch", g_stitch, GRAD_FIRST},
    {"ResourceGather", g_resource_gather, GRAD_FIRST},
    {"ResourceGatherNd", g_resource_gather_nd, GRAD_FIRST},
    {"ScatterNd", g_scatter_nd, GRAD_FIRST},
    {"ScatterNdNonAliasingAdd", g_scatter_nd_add, GRAD_FIRST},
    {"RaggedFillEmptyRows", g_fill_empty_rows, GRAD_ANY},
    {"SparseFillEmptyRows", g_fill_empty_rows, GRAD_ANY},
    {"SparseToDense", g_sparse_to_dense, GRAD_FIRST},
    {"TensorScatterAdd", g_scatter_nd_add, GRAD_FIRST},
    {"TensorScatterMax", g_scatter_extreme, GRAD_FIRST},
    {"TensorScatterMin", g_scatter_extreme, GRAD_FIRST},
    {"TensorScatterSub", g_scatter_sub, GRAD_FIRST},
    {"TensorScatterUpdate", g_scatter_update, GRAD_FIRST},
    {"NthElement", g_nth_element, GRAD_FIRST},
    {"TopK", g_top_k, GRAD_FIRST},
    {"TopKV2", g_top_k, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
