/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS exports LAPACK by its Fortran names: arguments are pointers, and the lengths of strings
 * follow them.  LAPACKE would be another library. */
#include "task/kernels/matrix/lapack.h"

#include <cblas.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef const int *integer;
typedef const char *letter;
_Static_assert(sizeof(blasint) == sizeof(int), "OpenBLAS with 64-bit integers");

/* Each routine for doubles (d…) and for complex doubles (z…). */
#define ROUTINE(name, ...)                                                                         \
	void d##name##_(__VA_ARGS__);                                                              \
	void z##name##_(__VA_ARGS__);
ROUTINE(gemm, letter, letter, integer, integer, integer, const void *alpha, const void *a, integer,
	const void *b, integer, const void *beta, void *c, integer, size_t, size_t)
ROUTINE(trsm, letter, letter, letter, letter, integer, integer, const void *alpha, const void *a,
	integer, void *b, integer, size_t, size_t, size_t, size_t)
ROUTINE(potrf, letter, integer, void *a, integer, int *info, size_t)
ROUTINE(getrf, integer, integer, void *a, integer, int *pivots, int *info)
ROUTINE(getrs, letter, integer, integer, const void *a, integer, integer, void *b, integer,
	int *info, size_t)
ROUTINE(geqrf, integer, integer, void *a, integer, void *tau, void *work, integer, int *info)
void dorgqr_(integer, integer, integer, void *, integer, const void *, void *, integer, int *);
void zungqr_(integer, integer, integer, void *, integer, const void *, void *, integer, int *);
void dsyevd_(letter, letter, integer, void *, integer, double *, void *, integer, int *, integer,
	     int *, size_t, size_t);
void zheevd_(letter, letter, integer, void *, integer, double *, void *, integer, double *, integer,
	     int *, integer, int *, size_t, size_t);
void dgesdd_(letter, integer, integer, void *, integer, double *, void *, integer, void *, integer,
	     void *, integer, int *, int *, size_t);
void sgesdd_(letter, integer, integer, void *, integer, float *, void *, integer, void *, integer,
	     void *, integer, int *, int *, size_t);
void zgesdd_(letter, integer, integer, void *, integer, double *, void *, integer, void *, integer,
	     void *, integer, double *, int *, int *, size_t);
void zgeev_(letter, letter, integer, void *, integer, void *, void *, integer, void *, integer,
	    void *, integer, double *, int *, size_t, size_t);
void zgees_(letter, letter, void *select, integer, void *, integer, int *, void *, void *, integer,
	    void *, integer, double *, int *, int *, size_t, size_t);
void dgelsd_(integer, integer, integer, void *, integer, void *, integer, double *, const double *,
	     int *, void *, integer, int *, int *);
void zgelsd_(integer, integer, integer, void *, integer, void *, integer, double *, const double *,
	     int *, void *, integer, double *, int *, int *);

#define CALL(z, name, ...) ((z) ? z##name##_(__VA_ARGS__) : d##name##_(__VA_ARGS__))

static const double one[2] = {1, 0}, zero[2] = {0, 0};

static int min(int a, int b)
{
	return a < b ? a : b;
}

static int max(int a, int b)
{
	return a > b ? a : b;
}

/* ---- working memory: asked for with a length of -1, the answer is in the first element ---- */

struct work {
	double *numbers, *reals;
	int *integers;
	int n, n_reals, n_integers;
	double size[2], reals_size;
	int integers_size;
};

static struct work work_query(void)
{
	return (struct work){.n = -1, .n_reals = -1, .n_integers = -1};
}

/* Takes the answers; false: no memory, or more than LAPACK can count. */
static bool work_new(bool z, struct work *w)
{
	w->n_reals = w->reals_size < INT_MAX ? (int)w->reals_size : INT_MAX;
	w->n_integers = w->integers_size;
	if (!(w->size[0] < INT_MAX) || w->n_reals == INT_MAX)
		return false;
	w->n = max(1, (int)w->size[0]);
	w->numbers = calloc((size_t)w->n, z ? sizeof(double[2]) : sizeof(double));
	w->reals = calloc((size_t)w->n_reals + 1, sizeof *w->reals);
	w->integers = calloc((size_t)w->n_integers + 1, sizeof *w->integers);
	return w->numbers && w->reals && w->integers;
}

static int work_end(struct work *w, int info)
{
	free(w->numbers);
	free(w->reals);
	free(w->integers);
	return info;
}

/* ---- products and triangles ---- */

void lapack_gemm(bool z, char trans_a, char trans_b, int m, int n, int k, const void *a,
		 const void *b, void *c)
{
	int a_rows = max(1, trans_a == 'N' ? m : k), b_rows = max(1, trans_b == 'N' ? k : n);
	int c_rows = max(1, m);

	CALL(z, gemm, &trans_a, &trans_b, &m, &n, &k, one, a, &a_rows, b, &b_rows, zero, c, &c_rows,
	     1, 1);
}

void lapack_trsm(bool z, char side, char uplo, char trans, int m, int n, const void *a, void *b)
{
	int a_rows = max(1, side == 'L' ? m : n), b_rows = max(1, m);

	CALL(z, trsm, &side, &uplo, &trans, "N", &m, &n, one, a, &a_rows, b, &b_rows, 1, 1, 1, 1);
}

int lapack_potrf(bool z, int n, void *a)
{
	int info, rows = max(1, n);

	CALL(z, potrf, "L", &n, a, &rows, &info, 1);
	return info;
}

int lapack_getrf(bool z, int n, void *a, int *pivots)
{
	int info, rows = max(1, n);

	CALL(z, getrf, &n, &n, a, &rows, pivots, &info);
	return info;
}

int lapack_getrs(bool z, char trans, int n, int columns, const void *lu, const int *pivots, void *b)
{
	int info, rows = max(1, n);

	CALL(z, getrs, &trans, &n, &columns, lu, &rows, pivots, b, &rows, &info, 1);
	return info;
}

int lapack_qr(bool z, int m, int n, void *a, int columns, void *q)
{
	size_t column = (size_t)m * (z ? sizeof(double[2]) : sizeof(double));
	int info, rows = max(1, m), k = min(m, n), query = -1;
	void (*form)(integer, integer, integer, void *, integer, const void *, void *, integer,
		     int *) = z ? zungqr_ : dorgqr_;
	struct work w = work_query();
	double *tau = calloc((size_t)k + 1, sizeof(double[2])), form_size[2];

	CALL(z, geqrf, &m, &n, a, &rows, tau, w.size, &query, &info);
	form(&m, &columns, &k, q, &rows, tau, form_size, &query, &info);
	w.size[0] = w.size[0] > form_size[0] ? w.size[0] : form_size[0];
	info = LAPACK_NO_MEMORY;
	if (work_new(z, &w) && tau) {
		CALL(z, geqrf, &m, &n, a, &rows, tau, w.numbers, &w.n, &info);
		memcpy(q, a, column * (size_t)min(columns, n));
		form(&m, &columns, &k, q, &rows, tau, w.numbers, &w.n, &info);
	}
	free(tau);
	return work_end(&w, info);
}

/* ---- eigenvalues ---- */

static void eigh(bool z, letter job, int n, void *a, double *values, struct work *w, void *numbers,
		 double *reals, int *integers, int *info)
{
	int rows = max(1, n);

	if (z)
		zheevd_(job, "L", &n, a, &rows, values, numbers, &w->n, reals, &w->n_reals,
			integers, &w->n_integers, info, 1, 1);
	else
		dsyevd_(job, "L", &n, a, &rows, values, numbers, &w->n, integers, &w->n_integers,
			info, 1, 1);
}

int lapack_eigh(bool z, bool vectors, int n, void *a, double *values)
{
	int info;
	struct work w = work_query();
	letter job = vectors ? "V" : "N";

	eigh(z, job, n, a, values, &w, w.size, &w.reals_size, &w.integers_size, &info);
	if (work_new(z, &w))
		eigh(z, job, n, a, values, &w, w.numbers, w.reals, w.integers, &info);
	else
		info = LAPACK_NO_MEMORY;
	return work_end(&w, info);
}

int lapack_geev(int n, void *a, void *values, void *vectors)
{
	int info = LAPACK_NO_MEMORY, rows = max(1, n);
	struct work w = work_query();
	letter job = vectors ? "V" : "N";

	zgeev_("N", job, &n, a, &rows, values, NULL, &rows, vectors, &rows, w.size, &w.n,
	       &w.reals_size, &info, 1, 1);
	w.reals_size = 2.0 * n;
	if (work_new(true, &w))
		zgeev_("N", job, &n, a, &rows, values, NULL, &rows, vectors, &rows, w.numbers, &w.n,
		       w.reals, &info, 1, 1);
	else
		info = LAPACK_NO_MEMORY;
	return work_end(&w, info);
}

int lapack_gees(int n, void *a, void *q)
{
	int info, sorted, rows = max(1, n);
	struct work w = work_query();
	double *values = calloc((size_t)n + 1, sizeof(double[2]));

	zgees_("V", "N", NULL, &n, a, &rows, &sorted, values, q, &rows, w.size, &w.n, &w.reals_size,
	       NULL, &info, 1, 1);
	w.reals_size = n;
	if (work_new(true, &w) && values)
		zgees_("V", "N", NULL, &n, a, &rows, &sorted, values, q, &rows, w.numbers, &w.n,
		       w.reals, NULL, &info, 1, 1);
	else
		info = LAPACK_NO_MEMORY;
	free(values);
	return work_end(&w, info);
}

/* ---- singular values ---- */

static void gesdd(bool z, char job, int m, int n, void *a, double *s, void *u, void *vh,
		  struct work *w, void *numbers, int *info)
{
	int rows = max(1, m), vh_rows = max(1, job == 'S' ? min(m, n) : n);

	if (z)
		zgesdd_(&job, &m, &n, a, &rows, s, u, &rows, vh, &vh_rows, numbers, &w->n, w->reals,
			w->integers, info, 1);
	else
		dgesdd_(&job, &m, &n, a, &rows, s, u, &rows, vh, &vh_rows, numbers, &w->n,
			w->integers, info, 1);
}

int lapack_gesdd(bool z, char job, int m, int n, void *a, double *s, void *u, void *vh)
{
	double low = min(m, n), high = max(m, n);
	struct work w = work_query();
	int info;

	gesdd(z, job, m, n, a, s, u, vh, &w, w.size, &info);
	/* as the manual of zgesdd has it, for every job */
	w.reals_size = z ? low * (7 + 5 * low + 2 * high) : 0;
	w.integers_size = 8 * min(m, n);
	if (work_new(z, &w))
		gesdd(z, job, m, n, a, s, u, vh, &w, w.numbers, &info);
	else
		info = LAPACK_NO_MEMORY;
	return work_end(&w, info);
}

int lapack_sgesdd(char job, int m, int n, float *a, float *s, float *u, float *vh)
{
	int info, rows = max(1, m), vh_rows = max(1, job == 'S' ? min(m, n) : n);
	struct work w = work_query();
	float size = 0;

	sgesdd_(&job, &m, &n, a, &rows, s, u, &rows, vh, &vh_rows, &size, &w.n, NULL, &info, 1);
	w.size[0] = size;
	w.integers_size = 8 * min(m, n);
	if (work_new(false, &w))
		sgesdd_(&job, &m, &n, a, &rows, s, u, &rows, vh, &vh_rows, w.numbers, &w.n,
			w.integers, &info, 1);
	else
		info = LAPACK_NO_MEMORY;
	return work_end(&w, info);
}

static void gelsd(bool z, int m, int n, int columns, void *a, void *b, double *s, double rcond,
		  struct work *w, void *numbers, double *reals, int *integers, int *info)
{
	int a_rows = max(1, m), b_rows = max(a_rows, n), rank;

	if (z)
		zgelsd_(&m, &n, &columns, a, &a_rows, b, &b_rows, s, &rcond, &rank, numbers, &w->n,
			reals, integers, info);
	else
		dgelsd_(&m, &n, &columns, a, &a_rows, b, &b_rows, s, &rcond, &rank, numbers, &w->n,
			integers, info);
}

int lapack_gelsd(bool z, int m, int n, int columns, void *a, void *b, double rcond)
{
	double *s = calloc((size_t)min(m, n) + 1, sizeof *s);
	struct work w = work_query();
	int info;

	gelsd(z, m, n, columns, a, b, s, rcond, &w, w.size, &w.reals_size, &w.integers_size, &info);
	if (work_new(z, &w) && s)
		gelsd(z, m, n, columns, a, b, s, rcond, &w, w.numbers, w.reals, w.integers, &info);
	else
		info = LAPACK_NO_MEMORY;
	free(s);
	return work_end(&w, info);
}
