/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient cases: ops on sparse tensors, ClipByValue and MaxPoolWithArgmax. */
#ifndef MU_TESTS_CLIENT_GRADIENT_CASES_SPARSE_H
#define MU_TESTS_CLIENT_GRADIENT_CASES_SPARSE_H

/* Indices of three values in a 3 x 4 matrix, two of them in the same row. */
static struct mu_out sparse_at(struct mu_builder *b)
{
	return long_ints(b, table(b, 3, 2, (int32_t[]){0, 1, 2, 0, 2, 3}));
}

static struct mu_out sparse_shape(struct mu_builder *b)
{
	return long_ints(b, ints(b, 2, (int32_t[]){3, 4}));
}

static struct mu_out sparse_sums(struct mu_builder *b, struct mu_out x, int32_t axis, bool keep)
{
	return mu_op(b, "SparseReduceSum",
		     MU_IN(sparse_at(b), x, sparse_shape(b), ints(b, 1, (int32_t[]){axis})),
		     MU_ATTRS(MU_A_BOOL("keep_dims", keep)));
}

static struct mu_out sparse_dense(struct mu_builder *b, const char *op, struct mu_out x,
				  struct mu_out dense)
{
	return mu_op_add(b, &(struct mu_op_args){
				.op = op,
				.in = (struct mu_out[]){sparse_at(b), x, sparse_shape(b), dense},
				.n_in = 4});
}

/* The sum of x and values that have one index in common. */
static struct mu_out sparse_sum(struct mu_builder *b, struct mu_out x, bool first)
{
	struct mu_out at = long_ints(b, table(b, 3, 2, (int32_t[]){0, 1, 1, 1, 2, 1}));
	struct mu_out one[3] = {sparse_at(b), x, sparse_shape(b)},
		      other[3] = {at, row(b, 3), one[2]};
	struct mu_out *a = first ? one : other, *z = first ? other : one;

	return mu_port(
	    mu_op(b, "SparseAdd", MU_IN(a[0], a[1], a[2], z[0], z[1], z[2], mu_const_float(b, 0))),
	    1);
}

static struct mu_out pool_with_argmax(struct mu_builder *b, struct mu_out x)
{
	static int64_t two[] = {1, 2, 2, 1};
	const struct mu_attr window = {.kind = MU_ATTR_LIST + MU_ATTR_INT, .n = 4, .is = two};

	return mu_op(b, "MaxPoolWithArgmax", MU_IN(x),
		     MU_ATTRS((struct mu_node_attr){"ksize", window},
			      (struct mu_node_attr){"strides", window},
			      MU_A_STR("padding", "VALID")));
}

CASE(y_sparsesums, sparse_sums(b, x, 1, false))
CASE(y_sparsesums_of_columns, sparse_sums(b, x, -2, true))
CASE(y_sparsesoftmax, mu_op(b, "SparseSoftmax", MU_IN(sparse_at(b), x, sparse_shape(b))))
CASE(y_sparsetensordenseadd, sparse_dense(b, "SparseTensorDenseAdd", x, values(b, 3, 4, 0)))
CASE(y_sparsetensordenseadd_dense, sparse_dense(b, "SparseTensorDenseAdd", row(b, 3), x))
CASE(y_densemul, sparse_dense(b, "SparseDenseCwiseMul", x, values(b, 3, 4, 0)))
CASE(y_densemul_dense, sparse_dense(b, "SparseDenseCwiseMul", row(b, 3), x))
CASE(y_densediv, sparse_dense(b, "SparseDenseCwiseDiv", x, row(b, 4)))
CASE(y_densediv_dense, sparse_dense(b, "SparseDenseCwiseDiv", row(b, 3), x))
CASE(y_denseadd, sparse_dense(b, "SparseDenseCwiseAdd", x, row(b, 4)))
CASE(y_denseadd_dense, sparse_dense(b, "SparseDenseCwiseAdd", row(b, 3), x))
CASE(y_sparseadd, sparse_sum(b, x, true))
CASE(y_sparseadd_second, sparse_sum(b, x, false))
CASE(y_clip, mu_op(b, "ClipByValue", MU_IN(x, mu_const_float(b, -0.43f), mu_const_float(b, 0.37f))))
CASE(y_clip_min, mu_op(b, "ClipByValue", MU_IN(values(b, 3, 4, 0), x, mu_const_float(b, 2.2f))))
CASE(y_clip_max, mu_op(b, "ClipByValue", MU_IN(values(b, 3, 4, 0), mu_const_float(b, 0.6f), x)))

static const struct gradient_case sparse_cases[] = {
    {"SparseReduceSum", {1, {3}}, y_sparsesums, -1, 1},
    {"SparseReduceSum, of columns", {1, {3}}, y_sparsesums_of_columns, -1, 1},
    {"SparseSoftmax", {1, {3}}, y_sparsesoftmax, -1, 1},
    {"SparseTensorDenseAdd", {1, {3}}, y_sparsetensordenseadd, -1, 1},
    {"SparseTensorDenseAdd, dense", {2, {3, 4}}, y_sparsetensordenseadd_dense, -1, 1},
    {"SparseDenseCwiseMul", {1, {3}}, y_densemul, -1, 1},
    {"SparseDenseCwiseMul, dense", {2, {3, 1}}, y_densemul_dense, -1, 1},
    {"SparseDenseCwiseDiv", {1, {3}}, y_densediv, -1, 1},
    {"SparseDenseCwiseDiv, dense", {1, {4}}, y_densediv_dense, 1, 2},
    {"SparseDenseCwiseAdd", {1, {3}}, y_denseadd, -1, 1},
    {"SparseDenseCwiseAdd, dense", {1, {4}}, y_denseadd_dense, -1, 1},
    {"SparseAdd", {1, {3}}, y_sparseadd, -1, 1},
    {"SparseAdd, second", {1, {3}}, y_sparseadd_second, -1, 1},
    {"ClipByValue", {2, {3, 4}}, y_clip, -1, 1},
    {"ClipByValue, least", {0, {0}}, y_clip_min, 1, 1.5},
    {"ClipByValue, most", {0, {0}}, y_clip_max, 1.5, 2},
    {"MaxPoolWithArgmax", {4, {1, 4, 4, 2}}, pool_with_argmax, -1, 1},
};

#endif
