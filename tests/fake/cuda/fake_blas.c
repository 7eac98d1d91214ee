/* SPDX-License-Identifier: Apache-2.0 */
/* A cuBLAS fake in host memory, column-major like the library. It rejects inconsistent arguments
 * and uses that the real library does not allow. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "task/kernels/engine/cuda/types.h"
#include "tests/fake/cuda/fake_cuda.h"

enum { INVALID_VALUE = 7, NOT_SUPPORTED = 15 };

struct columns_args { /* out[m, n] = a[m, k] * b[k, n]; strides of rows and of columns */
	uint64_t out, a, b;
	int64_t m, n, k, out_column, a_row, a_column, b_row, b_column;
	int64_t batch, out_next, a_next, b_next;
};

#define COLUMNS_KERNEL(t)                                                                          \
	KERNEL(columns_##t, columns_args)                                                          \
	{                                                                                          \
		for (int64_t i = 0; i < a.m * a.n * a.batch; i++) {                                \
			int64_t r = i % a.m, c = i / a.m % a.n, at = i / a.m / a.n;                \
			C(t) sum = 0;                                                              \
			for (int64_t k = 0; k < a.k; k++)                                          \
				sum += GET(t, a.a, at * a.a_next + r * a.a_row + k * a.a_column) * \
				       GET(t, a.b, at * a.b_next + k * a.b_row + c * a.b_column);  \
			PUT(t, a.out, at *a.out_next + r + c * a.out_column, sum);                 \
		}                                                                                  \
	}
EACH_FLT(COLUMNS_KERNEL)

static const struct kind {
	int type, compute;
	size_t size;
	const char *kernel;
} kinds[] = {
    {BLAS_R_32F, BLAS_COMPUTE_32F, 4, "columns_f32"},
    {BLAS_R_32F, BLAS_COMPUTE_32F_TF32, 4, "columns_f32"},
    {BLAS_R_64F, BLAS_COMPUTE_64F, 8, "columns_f64"},
    {BLAS_R_16F, BLAS_COMPUTE_32F, 2, "columns_f16"},
    {BLAS_R_16BF, BLAS_COMPUTE_32F, 2, "columns_bf16"},
};

static const struct kind *kind_of(int type, int compute)
{
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (kinds[i].type == type && kinds[i].compute == compute)
			return &kinds[i];
	return NULL;
}

struct library {
	void *stream;
};

static void one_product(struct fake_cuda_counts *c)
{
	c->launches++;
	c->products++;
}

static int library_new(void **library)
{
	int result = fake_cuda_answer_here("library_new");

	if (result)
		return result;
	fake_cuda_note_library(1);
	*library = calloc(1, sizeof(struct library));
	return 0;
}

static int library_free(void *library)
{
	fake_cuda_note_library(-1);
	free(library);
	return 0;
}

static int stream_set(void *library, void *stream)
{
	((struct library *)library)->stream = stream;
	return 0;
}

/* True if the whole matrices are in device memory; the last column ends after its last row. */
static bool is_matrix(cuda_ptr at, size_t size, int64_t rows, int64_t columns, int64_t leading,
		      long long stride, int64_t batch)
{
	return leading >= rows &&
	       fake_cuda_is_device(at, ((size_t)(batch - 1) * (size_t)stride +
					(size_t)(columns - 1) * (size_t)leading + (size_t)rows) *
					   size);
}

static int multiply(void *library, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
		    const void *alpha, cuda_ptr a, int a_type, int64_t a_leading,
		    long long a_stride, cuda_ptr b, int b_type, int64_t b_leading,
		    long long b_stride, const void *beta, cuda_ptr c, int c_type, int64_t c_leading,
		    long long c_stride, int64_t batch, int compute, int algorithm)
{
	const bool wide = compute == BLAS_COMPUTE_64F;
	const struct kind *kind = kind_of(a_type, compute);
	const struct columns_args args = {.out = c,
					  .a = a,
					  .b = b,
					  .m = m,
					  .n = n,
					  .k = k,
					  .out_column = c_leading,
					  .a_row = trans_a ? a_leading : 1,
					  .a_column = trans_a ? 1 : a_leading,
					  .b_row = trans_b ? b_leading : 1,
					  .b_column = trans_b ? 1 : b_leading,
					  .batch = batch,
					  .out_next = c_stride,
					  .a_next = a_stride,
					  .b_next = b_stride};
	int result = fake_cuda_answer_here("multiply");

	if (result)
		return result;
	if (fake_cuda.no_products)
		return NOT_SUPPORTED;
	if (!kind || b_type != a_type || c_type != a_type || m < 1 || n < 1 || k < 1 || batch < 1 ||
	    algorithm != BLAS_GEMM_DEFAULT ||
	    (wide ? *(const double *)alpha : *(const float *)alpha) != 1 ||
	    (wide ? *(const double *)beta : *(const float *)beta) != 0 ||
	    (batch > 1 && c_stride < m * n) ||
	    !is_matrix(a, kind->size, trans_a ? k : m, trans_a ? m : k, a_leading, a_stride,
		       batch) ||
	    !is_matrix(b, kind->size, trans_b ? n : k, trans_b ? k : n, b_leading, b_stride,
		       batch) ||
	    !is_matrix(c, kind->size, m, n, c_leading, c_stride, batch) ||
	    !fake_cuda_put(((struct library *)library)->stream, host_kernel_find(kind->kernel),
			   &args))
		return INVALID_VALUE;
	fake_cuda_note(one_product);
	return 0;
}

#define ENTRY(field, symbol, args) .field = field,
const struct blas_api fake_blas = {BLAS_API(ENTRY)};
