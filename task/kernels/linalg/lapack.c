/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS exports LAPACK by its Fortran names: arguments are pointers, and the lengths of strings
 * follow them.  LAPACKE would be another dependency. */
#include "task/kernels/linalg/lapack.h"

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

static int lapack_min(int a, int b)
{
	return a < b ? a : b;
}

static int max(int a, int b)
{
	return a > b ? a : b;
}

/* ---- workspace ---- */

/* A routine is called twice.  The first call, with lengths of -1, writes the required lengths to
 * the first elements.  The second call gets memory of these lengths. */
struct work {
	double *numbers, *reals;
	int *integers;
	int n, n_reals, n_integers;
	double reals_min; /* for routines that do not report these lengths */
	int integers_min;
	int calls;
	double number[2], real;
	int integer;
};

/* Allocates the required lengths.  False without memory or if LAPACK cannot count a length. */
static bool work_allocate(bool z, struct work *w)
{
	double n = *w->numbers, n_reals = *w->reals > w->reals_min ? *w->reals : w->reals_min;
	int n_integers = max(*w->integers, w->integers_min);

	w->numbers = w->reals = NULL;
	w->integers = NULL;
	if (!(n < INT_MAX && n_reals < INT_MAX))
		return false;
	w->n = max(1, (int)n);
	w->n_reals = (int)n_reals;
	w->n_integers = n_integers;
	w->numbers = calloc((size_t)w->n, z ? sizeof(double[2]) : sizeof(double));
	w->reals = calloc((size_t)w->n_reals + 1, sizeof *w->reals);
	w->integers = calloc((size_t)w->n_integers + 1, sizeof *w->integers);
	return w->numbers && w->reals && w->integers;
}

/* True before each of the two calls.  After the second call it frees the memory.  Without memory it
 * sets info to LAPACK_NO_MEMORY and returns false. */
static bool work_next(bool z, struct work *w, int *info)
{
	bool ok = w->calls < 2;

	if (w->calls == 0) {
		w->n = w->n_reals = w->n_integers = -1;
		w->numbers = w->number;
		w->reals = &w->real;
		w->integers = &w->integer;
	} else if (w->calls == 1 && !work_allocate(z, w)) {
		*info = LAPACK_NO_MEMORY;
		ok = false;
	}
	w->calls++;
	if (ok)
		return true;
	free(w->numbers);
	free(w->reals);
	free(w->integers);
	return false;
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
	int info = 0, rows = max(1, m), k = lapack_min(m, n);
	struct work factor = {0}, form = {0};
	double *tau = calloc((size_t)k + 1, sizeof(double[2]));

	if (!tau)
		return LAPACK_NO_MEMORY;
	while (work_next(z, &factor, &info))
		CALL(z, geqrf, &m, &n, a, &rows, tau, factor.numbers, &factor.n, &info);
	if (!info) {
		memcpy(q, a, column * (size_t)lapack_min(columns, n));
		while (work_next(z, &form, &info))
			(z ? zungqr_ : dorgqr_)(&m, &columns, &k, q, &rows, tau, form.numbers,
						&form.n, &info);
	}
	free(tau);
	return info;
}

/* ---- eigenvalues ---- */

int lapack_eigh(bool z, bool vectors, int n, void *a, double *values)
{
	int info = 0, rows = max(1, n);
	struct work w = {0};
	letter job = vectors ? "V" : "N";

	while (work_next(z, &w, &info))
		if (z)
			zheevd_(job, "L", &n, a, &rows, values, w.numbers, &w.n, w.reals,
				&w.n_reals, w.integers, &w.n_integers, &info, 1, 1);
		else
			dsyevd_(job, "L", &n, a, &rows, values, w.numbers, &w.n, w.integers,
				&w.n_integers, &info, 1, 1);
	return info;
}

int lapack_geev(int n, void *a, void *values, void *vectors)
{
	int info = 0, rows = max(1, n);
	struct work w = {.reals_min = 2.0 * n};
	letter job = vectors ? "V" : "N";

	while (work_next(true, &w, &info))
		zgeev_("N", job, &n, a, &rows, values, NULL, &rows, vectors, &rows, w.numbers, &w.n,
		       w.reals, &info, 1, 1);
	return info;
}

int lapack_gees(int n, void *a, void *q)
{
	int info = 0, sorted, rows = max(1, n);
	struct work w = {.reals_min = n};
	double *values = calloc((size_t)n + 1, sizeof(double[2]));

	if (!values)
		return LAPACK_NO_MEMORY;
	while (work_next(true, &w, &info))
		zgees_("V", "N", NULL, &n, a, &rows, &sorted, values, q, &rows, w.numbers, &w.n,
		       w.reals, NULL, &info, 1, 1);
	free(values);
	return info;
}

/* ---- singular values ---- */

int lapack_gesdd(bool z, char job, int m, int n, void *a, double *s, void *u, void *vh)
{
	int info = 0, rows = max(1, m), vh_rows = max(1, job == 'S' ? lapack_min(m, n) : n);
	double min_mn = lapack_min(m, n), max_mn = max(m, n);
	/* the length of reals in the manual of zgesdd, sufficient for every job */
	struct work w = {.reals_min = z ? min_mn * (7 + 5 * min_mn + 2 * max_mn) : 0,
			 .integers_min = 8 * lapack_min(m, n)};

	while (work_next(z, &w, &info))
		if (z)
			zgesdd_(&job, &m, &n, a, &rows, s, u, &rows, vh, &vh_rows, w.numbers, &w.n,
				w.reals, w.integers, &info, 1);
		else
			dgesdd_(&job, &m, &n, a, &rows, s, u, &rows, vh, &vh_rows, w.numbers, &w.n,
				w.integers, &info, 1);
	return info;
}

int lapack_sgesdd(char job, int m, int n, float *a, float *s, float *u, float *vh)
{
	int info = 0, rows = max(1, m), vh_rows = max(1, job == 'S' ? lapack_min(m, n) : n);
	struct work w = {.integers_min = 8 * lapack_min(m, n)};

	while (work_next(false, &w, &info)) {
		float *numbers = (float *)w.numbers;
		sgesdd_(&job, &m, &n, a, &rows, s, u, &rows, vh, &vh_rows, numbers, &w.n,
			w.integers, &info, 1);
		if (w.n == -1)
			*w.numbers = *numbers;
	}
	return info;
}

int lapack_gelsd(bool z, int m, int n, int columns, void *a, void *b, double rcond)
{
	int info = 0, a_rows = max(1, m), b_rows = max(a_rows, n), rank;
	double *s = calloc((size_t)lapack_min(m, n) + 1, sizeof *s);
	struct work w = {0};

	if (!s)
		return LAPACK_NO_MEMORY;
	while (work_next(z, &w, &info))
		if (z)
			zgelsd_(&m, &n, &columns, a, &a_rows, b, &b_rows, s, &rcond, &rank,
				w.numbers, &w.n, w.reals, w.integers, &info);
		else
			dgelsd_(&m, &n, &columns, a, &a_rows, b, &b_rows, s, &rcond, &rank,
				w.numbers, &w.n, w.integers, &info);
	free(s);
	return info;
}
