/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices taken apart into triangles, and systems of triangles; for body.h. */

enum {
	SMALL = 16, /* rows that are done one by one */
	PANEL = 8,  /* columns in which pivots are looked for: a line of reals */
};

/* ---- systems ---- */

struct triangle {
	bool lower, adjoint, unit; /* unit: ones on its diagonal, whatever is there */
};

static void solve_small(int64_t n, struct triangle t, struct part a, int64_t columns, T *b,
			int64_t line)
{
	bool from_top = t.lower != t.adjoint;

	for (int64_t k = 0; k < n; k++) {
		int64_t i = from_top ? k : n - 1 - k;

		for (int64_t m = 0; m < k; m++) {
			int64_t j = from_top ? m : n - 1 - m; /* solved before */
			T f = t.adjoint ? CONJ(a.at[j * a.line + i]) : a.at[i * a.line + j];

			add_row(columns, -f, b + j * line, b + i * line);
		}
		T pivot = t.adjoint ? CONJ(a.at[i * a.line + i]) : a.at[i * a.line + i];
		for (int64_t c = 0; c < columns && !t.unit; c++)
			b[i * line + c] /= pivot;
	}
}

/* x of a x = b in place of b, half of the rows after the other. */
static void solve_triangle(int64_t n, struct triangle t, struct part a, int64_t columns, T *b,
			   int64_t line)
{
	int64_t h = half_of(n);

	if (n <= SMALL) {
		solve_small(n, t, a, columns, b, line);
		return;
	}
	struct part corner = {t.lower ? a.at + h * a.line : a.at + h, a.line};
	struct part rest = {a.at + h * (a.line + 1), a.line};
	T *top = b, *low = b + h * line;
	if (t.lower != t.adjoint) {
		solve_triangle(h, t, a, columns, top, line);
		multiply(TAKE_AWAY, n - h, columns, h, corner, t.adjoint, (struct part){top, line},
			 low, line);
		solve_triangle(n - h, t, rest, columns, low, line);
	} else {
		solve_triangle(n - h, t, rest, columns, low, line);
		multiply(TAKE_AWAY, h, columns, n - h, corner, t.adjoint, (struct part){low, line},
			 top, line);
		solve_triangle(h, t, a, columns, top, line);
	}
}

static void triangular(int64_t n, const void *a, bool lower, bool adjoint, int64_t columns, void *b)
{
	solve_triangle(n, (struct triangle){.lower = lower, .adjoint = adjoint},
		       (struct part){a, n}, columns, b, columns);
}

static void banded(int64_t n, int64_t bands, const void *a_, bool lower, bool adjoint,
		   int64_t columns, void *b_)
{
	bool from_top = lower != adjoint;
	const T *a = a_;
	T *b = b_;

	for (int64_t k = 0; k < n; k++) {
		int64_t i = from_top ? k : n - 1 - k;

		for (int64_t d = 1; d < bands && d <= k; d++) {
			int64_t j = from_top ? i - d : i + d; /* solved before */
			const T *diagonal = a + (lower ? d : bands - 1 - d) * n;
			T f = adjoint ? CONJ(diagonal[j]) : diagonal[i];

			add_row(columns, -f, b + j * columns, b + i * columns);
		}
		T pivot = a[(lower ? 0 : bands - 1) * n + i];
		for (int64_t c = 0; c < columns; c++)
			b[i * columns + c] /= adjoint ? CONJ(pivot) : pivot;
	}
}

/* ---- Cholesky: u* u, of which only the upper triangle is looked at, so that it goes by rows ----
 */

static bool root_small(int64_t n, T *a, int64_t line)
{
	for (int64_t k = 0; k < n; k++) {
		T *row = a + k * line;

		if (!(RE(row[k]) > 0))
			return false;
		double pivot = sqrt(RE(row[k]));
		row[k] = pivot;
		for (int64_t j = k + 1; j < n; j++)
			row[j] /= pivot;
		for (int64_t i = k + 1; i < n; i++)
			add_row(n - i, -CONJ(row[i]), row + i, a + i * line + i);
	}
	return true;
}

/* The upper triangle of c (n x n) -= x* x, x having k rows. */
static void take_square(int64_t n, int64_t k, struct part x, T *c, int64_t line)
{
	int64_t h = half_of(n);
	struct part right = {x.at + h, x.line};

	if (n <= 8 * SMALL) {
		multiply(TAKE_AWAY, n, n, k, x, true, x, c, line);
		return;
	}
	take_square(h, k, x, c, line);
	multiply(TAKE_AWAY, h, n - h, k, x, true, right, c + h, line);
	take_square(n - h, k, right, c + h * (line + 1), line);
}

static bool root(int64_t n, T *a, int64_t line)
{
	int64_t h = half_of(n);

	if (n <= SMALL)
		return root_small(n, a, line);
	if (!root(h, a, line))
		return false;
	solve_triangle(h, (struct triangle){.adjoint = true}, (struct part){a, line}, n - h, a + h,
		       line);
	take_square(n - h, h, (struct part){a + h, line}, a + h * (line + 1), line);
	return root(n - h, a + h * (line + 1), line);
}

static bool cholesky(int64_t n, void *a_)
{
	T *a = a_;

	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < i; j++)
			a[j * n + i] = CONJ(a[i * n + j]);
	if (!root(n, a, n))
		return false;
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < i; j++) {
			a[i * n + j] = CONJ(a[j * n + i]);
			a[j * n + i] = 0;
		}
	return true;
}

/* ---- by rows in another order ---- */

struct order {
	int64_t n, *perm;
	T *a;
	bool odd;
};

static void exchange(struct order *o, int64_t k, int64_t with)
{
	int64_t t = o->perm[k];

	o->perm[k] = o->perm[with];
	o->perm[with] = t;
	swap_rows(o->n, o->a + k * o->n, o->a + with * o->n);
	o->odd = !o->odd;
}

static void lu_panel(struct order *o, int64_t from, int64_t to)
{
	int64_t n = o->n;
	T *a = o->a;

	for (int64_t k = from; k < to; k++) {
		int64_t best = k;
		double most = MAGNITUDE(a[k * n + k]);
		for (int64_t i = k + 1; i < n; i++)
			if (MAGNITUDE(a[i * n + k]) > most) {
				best = i;
				most = MAGNITUDE(a[i * n + k]);
			}
		if (best != k)
			exchange(o, k, best);
		if (a[k * n + k] == 0)
			continue;
		for (int64_t i = k + 1; i < n; i++) {
			T f = a[i * n + k] /= a[k * n + k];
			for (int64_t j = k + 1; j < to; j++)
				a[i * n + j] -= f * a[k * n + j];
		}
	}
}

/* Columns [from, to), those before them being done. */
static void lu_columns(struct order *o, int64_t from, int64_t to)
{
	int64_t n = o->n, half = half_of(to - from), mid = from + half;
	T *a = o->a;

	if (to - from <= PANEL) {
		lu_panel(o, from, to);
		return;
	}
	lu_columns(o, from, mid);
	solve_triangle(half, (struct triangle){.lower = true, .unit = true},
		       (struct part){a + from * n + from, n}, to - mid, a + from * n + mid, n);
	multiply(TAKE_AWAY, n - mid, to - mid, half, (struct part){a + mid * n + from, n}, false,
		 (struct part){a + from * n + mid, n}, a + mid * n + mid, n);
	lu_columns(o, mid, to);
}

static void lu(int64_t n, void *a, int64_t *perm, bool *odd)
{
	struct order o = {.n = n, .perm = perm, .a = a};

	for (int64_t i = 0; i < n; i++)
		perm[i] = i;
	lu_columns(&o, 0, n);
	*odd = o.odd;
}

static bool invertible(int64_t n, const void *lu_)
{
	const T *a = lu_;

	for (int64_t i = 0; i < n; i++)
		if (a[i * n + i] == 0 || a[i * n + i] != a[i * n + i])
			return false;
	return true;
}

static void solve(int64_t n, const void *lu_, const int64_t *perm, int64_t columns, const void *b,
		  void *x)
{
	struct part a = {lu_, n};

	for (int64_t i = 0; i < n; i++)
		memcpy((T *)x + i * columns, (const T *)b + perm[i] * columns,
		       (size_t)columns * sizeof(T));
	solve_triangle(n, (struct triangle){.lower = true, .unit = true}, a, columns, x, columns);
	solve_triangle(n, (struct triangle){.lower = false}, a, columns, x, columns);
}

static void determinant(int64_t n, const void *lu_, bool odd, void *sign, double *log_size)
{
	const T *a = lu_;
	T s = odd ? -1 : 1;
	double sum = 0;

	for (int64_t i = 0; i < n; i++) {
		double size = MAGNITUDE(a[i * n + i]);
		s = size == 0 ? 0 : s * (a[i * n + i] / size);
		sum += log(size);
	}
	*(T *)sign = s;
	*log_size = sum;
}
