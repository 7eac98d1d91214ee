/* SPDX-License-Identifier: Apache-2.0 */
/* Plain loops in place of BLAS, and stubs of LAPACK, for programs without OpenBLAS. Tests of the
 * GPU kernels compare products with these loops and never run a decomposition. */
#include "task/kernels/engine/blas.h"
#include "task/kernels/linalg/lapack.h"

void blas_select(const char *variant)
{
}

const char *blas_core(void)
{
	return "none";
}

#define PRODUCT(T)                                                                                 \
	static void product_##T(const struct product *p, const T *a, const T *b, T *c)             \
	{                                                                                          \
		for (int64_t i = 0; i < p->m; i++)                                                 \
			for (int64_t j = 0; j < p->n; j++) {                                       \
				T sum = p->add ? c[i * p->c_line + j] : 0;                         \
				for (int64_t l = 0; l < p->k; l++)                                 \
					sum +=                                                     \
					    a[p->trans_a ? l * p->a_line + i                       \
							 : i * p->a_line + l] *                    \
					    b[p->trans_b ? j * p->b_line + l : l * p->b_line + j]; \
				c[i * p->c_line + j] = sum;                                        \
			}                                                                          \
	}
PRODUCT(float)
PRODUCT(double)

void blas_product(enum mu_dtype t, const struct product *p, const void *a, const void *b, void *c)
{
	if (t == MU_FLOAT)
		product_float(p, a, b, c);
	else if (t == MU_DOUBLE)
		product_double(p, a, b, c);
}

void lapack_gemm(bool z, char trans_a, char trans_b, int m, int n, int k, const void *a,
		 const void *b, void *c)
{
}

void lapack_trsm(bool z, char side, char uplo, char trans, int m, int n, const void *a, void *b)
{
}

int lapack_potrf(bool z, int n, void *a)
{
	return LAPACK_NO_MEMORY;
}

int lapack_getrf(bool z, int n, void *a, int *pivots)
{
	return LAPACK_NO_MEMORY;
}

int lapack_getrs(bool z, char trans, int n, int columns, const void *lu, const int *pivots, void *b)
{
	return LAPACK_NO_MEMORY;
}

int lapack_qr(bool z, int m, int n, void *a, int columns, void *q)
{
	return LAPACK_NO_MEMORY;
}

int lapack_eigh(bool z, bool vectors, int n, void *a, double *values)
{
	return LAPACK_NO_MEMORY;
}

int lapack_gesdd(bool z, char job, int m, int n, void *a, double *s, void *u, void *vh)
{
	return LAPACK_NO_MEMORY;
}

int lapack_sgesdd(char job, int m, int n, float *a, float *s, float *u, float *vh)
{
	return LAPACK_NO_MEMORY;
}

int lapack_geev(int n, void *a, void *values, void *vectors)
{
	return LAPACK_NO_MEMORY;
}

int lapack_gees(int n, void *a, void *q)
{
	return LAPACK_NO_MEMORY;
}

int lapack_gelsd(bool z, int m, int n, int columns, void *a, void *b, double rcond)
{
	return LAPACK_NO_MEMORY;
}
