/* SPDX-License-Identifier: Apache-2.0 */
/* A cublasLt fake in host memory, column-major like the library. It rejects inconsistent arguments
 * and uses that the real library does not allow. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "task/kernels/engine/cuda/types.h"
#include "tests/fake/cuda/fake_cuda.h"

enum { INVALID_VALUE = 7, NOT_SUPPORTED = 15, WORKSPACE = 1000 };

struct op {
	int compute, scale, trans_a, trans_b, epilogue;
	cuda_ptr bias;
};
struct layout {
	int type;
	uint64_t rows, columns;
	int64_t leading, stride;
	int32_t batch;
};
struct columns_args { /* out[m, n] = a[m, k] * b[k, n]; strides of rows and of columns */
	uint64_t out, a, b, bias;
	int64_t m, n, k, out_column, a_row, a_column, b_row, b_column;
	int64_t batch, out_next, a_next, b_next;
};

#define COLUMNS_KERNEL(t)                                                                          \
	KERNEL(columns_##t, columns_args)                                                          \
	{                                                                                          \
		for (int64_t i = 0; i < a.m * a.n * a.batch; i++) {                                \
			int64_t r = i % a.m, c = i / a.m % a.n, at = i / a.m / a.n;                \
			C(t) sum = a.bias ? GET(t, a.bias, r) : 0;                                 \
			for (int64_t k = 0; k < a.k; k++)                                          \
				sum += GET(t, a.a, at * a.a_next + r * a.a_row + k * a.a_column) * \
				       GET(t, a.b, at * a.b_next + k * a.b_row + c * a.b_column);  \
			PUT(t, a.out, at *a.out_next + r + c * a.out_column, sum);                 \
		}                                                                                  \
	}
EACH_FLT(COLUMNS_KERNEL)

static const struct kind {
	int type, compute, scale;
	const char *kernel;
} kinds[] = {
    {BLAS_R_32F, BLAS_COMPUTE_32F, BLAS_R_32F, "columns_f32"},
    {BLAS_R_32F, BLAS_COMPUTE_32F_TF32, BLAS_R_32F, "columns_f32"},
    {BLAS_R_64F, BLAS_COMPUTE_64F, BLAS_R_64F, "columns_f64"},
    {BLAS_R_16F, BLAS_COMPUTE_32F, BLAS_R_32F, "columns_f16"},
    {BLAS_R_16BF, BLAS_COMPUTE_32F, BLAS_R_32F, "columns_bf16"},
};

static void one_product(struct fake_cuda_counts *c)
{
	c->launches++;
	c->products++;
}

static int library_new(void **library)
{
	static int there;
	int result = fake_cuda_answer_here("library_new");

	if (result)
		return result;
	fake_cuda_note_library(1);
	*library = &there;
	return 0;
}

static int library_free(void *library)
{
	fake_cuda_note_library(-1);
	return 0;
}

static int give(const char *call, size_t bytes, const void *from, void **out)
{
	int result = fake_cuda_answer(call);

	if (result)
		return result;
	fake_cuda_note_description(1);
	*out = malloc(bytes);
	memcpy(*out, from, bytes);
	return 0;
}

static int take_back(void *what)
{
	fake_cuda_note_description(-1);
	free(what);
	return 0;
}

static int op_free(void *op)
{
	return take_back(op);
}

static int layout_free(void *layout)
{
	return take_back(layout);
}

static int wish_free(void *preference)
{
	return take_back(preference);
}

static int op_new(void **op, int compute, int scale)
{
	struct op o = {compute, scale, 0, 0, 1, 0};

	return give("op_new", sizeof o, &o, op);
}

static int op_set(void *op, int attribute, const void *value, size_t bytes)
{
	struct op *o = op;
	void *to = attribute == BLAS_OP_TRANS_A    ? (void *)&o->trans_a
		   : attribute == BLAS_OP_TRANS_B  ? (void *)&o->trans_b
		   : attribute == BLAS_OP_EPILOGUE ? (void *)&o->epilogue
		   : attribute == BLAS_OP_BIAS     ? (void *)&o->bias
						   : NULL;

	if (!to || bytes != (attribute == BLAS_OP_BIAS ? sizeof o->bias : sizeof(int)))
		return INVALID_VALUE;
	memcpy(to, value, bytes);
	return fake_cuda_answer("op_set");
}

static int layout_new(void **layout, int type, uint64_t rows, uint64_t columns, int64_t leading)
{
	struct layout l = {type, rows, columns, leading, 0, 1};

	return give("layout_new", sizeof l, &l, layout);
}

static int layout_set(void *layout, int attribute, const void *value, size_t bytes)
{
	struct layout *l = layout;
	void *to = attribute == BLAS_LAYOUT_BATCH    ? (void *)&l->batch
		   : attribute == BLAS_LAYOUT_STRIDE ? (void *)&l->stride
						     : NULL;

	if (!to || bytes != (attribute == BLAS_LAYOUT_BATCH ? sizeof l->batch : sizeof l->stride))
		return INVALID_VALUE;
	memcpy(to, value, bytes);
	return fake_cuda_answer("layout_set");
}

static int wish_new(void **preference)
{
	return give("wish_new", sizeof(size_t), &(size_t){0}, preference);
}

static int wish_set(void *preference, int attribute, const void *value, size_t bytes)
{
	if (attribute != BLAS_WISH_WORKSPACE || bytes != sizeof(size_t))
		return INVALID_VALUE;
	memcpy(preference, value, bytes);
	return 0;
}

static const struct kind *kind_of(const struct op *o, const struct layout *l)
{
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (kinds[i].type == l->type && kinds[i].compute == o->compute &&
		    kinds[i].scale == o->scale)
			return &kinds[i];
	return NULL;
}

/* Describes the product; false if the arguments are inconsistent. */
static bool describe_product(const struct op *o, const struct layout *a, const struct layout *b,
			     const struct layout *d, struct columns_args *out)
{
	uint64_t m = o->trans_a ? a->columns : a->rows, k = o->trans_a ? a->rows : a->columns;
	uint64_t n = o->trans_b ? b->rows : b->columns;

	*out = (struct columns_args){.m = (int64_t)m,
				     .n = (int64_t)n,
				     .k = (int64_t)k,
				     .out_column = d->leading,
				     .a_row = o->trans_a ? a->leading : 1,
				     .a_column = o->trans_a ? 1 : a->leading,
				     .b_row = o->trans_b ? b->leading : 1,
				     .b_column = o->trans_b ? 1 : b->leading,
				     .batch = d->batch,
				     .out_next = d->stride,
				     .a_next = a->stride,
				     .b_next = b->stride,
				     .bias = o->epilogue == BLAS_EPILOGUE_BIAS ? o->bias : 0};
	return kind_of(o, a) && a->type == b->type && a->type == d->type && m && n && k &&
	       k == (o->trans_b ? b->columns : b->rows) && d->rows == m && d->columns == n &&
	       a->leading >= (int64_t)a->rows && b->leading >= (int64_t)b->rows &&
	       d->leading >= (int64_t)d->rows && d->batch >= 1 && a->batch == d->batch &&
	       b->batch == d->batch &&
	       (d->batch == 1 || d->stride >= (int64_t)(d->rows * d->columns)) &&
	       (o->epilogue == 1 || (o->epilogue == BLAS_EPILOGUE_BIAS && o->bias));
}

static int choose(void *library, void *op, void *a, void *b, void *c, void *d, void *preference,
		  int most, struct blas_choice *out, int *found)
{
	struct columns_args args;
	int result = fake_cuda_answer_here("choose");

	if (result)
		return result;
	fake_cuda_note(fake_cuda_one_plan);
	if (!describe_product(op, a, b, d, &args) || most < 1 || *(size_t *)preference < WORKSPACE)
		return INVALID_VALUE;
	*found = fake_cuda.no_products ? 0 : 1;
	*out = (struct blas_choice){.workspace = WORKSPACE, .algorithm = {42}};
	return *found ? 0 : NOT_SUPPORTED;
}

/* True if the whole matrix is in device memory; its last column ends after its last row. */
static bool is_matrix(cuda_ptr at, const void *layout)
{
	const struct layout *l = layout;
	const size_t size = l->type == BLAS_R_32F ? 4 : l->type == BLAS_R_64F ? 8 : 2;

	return fake_cuda_is_device(at, ((size_t)(l->batch - 1) * (size_t)l->stride +
					(size_t)(l->columns - 1) * (size_t)l->leading +
					(size_t)l->rows) *
					   size);
}

static int multiply(void *library, void *op, const void *alpha, cuda_ptr a, void *a_layout,
		    cuda_ptr b, void *b_layout, const void *beta, cuda_ptr c, void *c_layout,
		    cuda_ptr d, void *d_layout, const struct blas_choice *algorithm,
		    cuda_ptr workspace, size_t bytes, void *stream)
{
	const struct op *o = op;
	bool wide = o->scale == BLAS_R_64F;
	struct columns_args args;
	int result = fake_cuda_answer_here("multiply");

	if (result)
		return result;
	if (!describe_product(op, a_layout, b_layout, d_layout, &args) ||
	    algorithm->algorithm[0] != 42 || bytes < WORKSPACE ||
	    (wide ? *(const double *)alpha : *(const float *)alpha) != 1 ||
	    (wide ? *(const double *)beta : *(const float *)beta) != 0 ||
	    (a | b | d | workspace) % 256)
		return INVALID_VALUE;
	args.out = d;
	args.a = a;
	args.b = b;
	const struct host_kernel *k = host_kernel_find(kind_of(o, a_layout)->kernel);
	if (!is_matrix(a, a_layout) || !is_matrix(b, b_layout) || !is_matrix(d, d_layout) ||
	    !fake_cuda_is_device(workspace, bytes) || !fake_cuda_put(stream, k, &args))
		return INVALID_VALUE;
	fake_cuda_note(one_product);
	return 0;
}

#define ENTRY(field, symbol, args) .field = field,
const struct blas_api fake_blas = {BLAS_API(ENTRY)};
