/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of matrix.h for numbers of type T; included by matrix_real.c and matrix_complex.c,
 * which also say what CONJ, RE and MAGNITUDE are.  Inner loops run along rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "task/kernels/matrix.h"

static double square(T x)
{
	return RE(x * CONJ(x));
}

/* y += f x */
static void add_row(int64_t n, T f, const T *x, T *y)
{
	for (int64_t i = 0; i < n; i++)
		y[i] += f * x[i];
}

static void swap_rows(int64_t n, T *x, T *y)
{
	for (int64_t i = 0; i < n; i++) {
		T t = x[i];
		x[i] = y[i];
		y[i] = t;
	}
}

static bool cholesky(int64_t n, void *a_)
{
	T *a = a_;

	for (int64_t i = 0; i < n; i++) {
		for (int64_t j = 0; j <= i; j++) {
			T sum = a[i * n + j];
			for (int64_t k = 0; k < j; k++)
				sum -= a[i * n + k] * CONJ(a[j * n + k]);
			if (j < i)
				a[i * n + j] = sum / a[j * n + j];
			else if (!(RE(sum) > 0))
				return false;
			else
				a[i * n + i] = sqrt(RE(sum));
		}
		for (int64_t j = i + 1; j < n; j++)
			a[i * n + j] = 0;
	}
	return true;
}

static void lu(int64_t n, void *a_, int64_t *perm, bool *odd)
{
	T *a = a_;

	*odd = false;
	for (int64_t i = 0; i < n; i++)
		perm[i] = i;
	for (int64_t k = 0; k < n; k++) {
		int64_t best = k;
		for (int64_t i = k + 1; i < n; i++)
			if (MAGNITUDE(a[i * n + k]) > MAGNITUDE(a[best * n + k]))
				best = i;
		if (best != k) {
			int64_t t = perm[k];
			perm[k] = perm[best];
			perm[best] = t;
			swap_rows(n, a + k * n, a + best * n);
			*odd = !*odd;
		}
		if (a[k * n + k] == 0)
			continue;
		for (int64_t i = k + 1; i < n; i++) {
			T f = a[i * n + k] /= a[k * n + k];
			add_row(n - k - 1, -f, a + k * n + k + 1, a + i * n + k + 1);
		}
	}
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
		  void *x_)
{
	const T *a = lu_;
	T *x = x_;

	for (int64_t i = 0; i < n; i++) {
		memcpy(x + i * columns, (const T *)b + perm[i] * columns,
		       (size_t)columns * sizeof *x);
		for (int64_t k = 0; k < i; k++)
			add_row(columns, -a[i * n + k], x + k * columns, x + i * columns);
	}
	for (int64_t i = n; i-- > 0;) {
		for (int64_t k = i + 1; k < n; k++)
			add_row(columns, -a[i * n + k], x + k * columns, x + i * columns);
		for (int64_t c = 0; c < columns; c++)
			x[i * columns + c] /= a[i * n + i];
	}
}

static void triangular(int64_t n, const void *a_, bool lower, bool adjoint, int64_t columns,
		       void *b_)
{
	bool from_top = lower != adjoint;
	const T *a = a_;
	T *b = b_;

	for (int64_t k = 0; k < n; k++) {
		int64_t i = from_top ? k : n - 1 - k;
		T pivot = adjoint ? CONJ(a[i * n + i]) : a[i * n + i];

		for (int64_t m = 0; m < k; m++) {
			int64_t j = from_top ? m : n - 1 - m; /* solved before */
			T f = adjoint ? CONJ(a[j * n + i]) : a[i * n + j];

			add_row(columns, -f, b + j * columns, b + i * columns);
		}
		for (int64_t c = 0; c < columns; c++)
			b[i * columns + c] /= pivot;
	}
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

static void adjoint(int64_t rows, int64_t cols, const void *a, void *t)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++)
			((T *)t)[j * rows + i] = CONJ(((const T *)a)[i * cols + j]);
}

static void product(int64_t m, int64_t n, int64_t k, const void *a, const void *b, void *c)
{
	memset(c, 0, (size_t)(m * n) * sizeof(T));
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < k; j++)
			add_row(n, ((const T *)a)[i * k + j], (const T *)b + j * n, (T *)c + i * n);
}

/* ---- reflections: h = 1 - tau v v*, v[0] = 1, and h* x = beta e1 with a real beta ---- */

/* x becomes v, but for its first number, which becomes beta. */
static T reflector(int64_t n, T *x)
{
	double rest = 0, beta;
	T first = x[0], tau;

	for (int64_t i = 1; i < n; i++)
		rest += square(x[i]);
	if (rest == 0 && first == RE(first))
		return 0;
	beta = sqrt(square(first) + rest);
	if (RE(first) >= 0)
		beta = -beta;
	tau = (beta - first) / beta;
	for (int64_t i = 1; i < n; i++)
		x[i] /= first - beta;
	x[0] = beta;
	return tau;
}

/* Rows [0, m) of a, `pitch` apart: a -= f v (v* a).  room: n numbers. */
static void reflect_left(int64_t m, int64_t n, T *a, int64_t pitch, const T *v, T f, T *room)
{
	memset(room, 0, (size_t)n * sizeof *room);
	for (int64_t i = 0; i < m; i++)
		add_row(n, CONJ(v[i]), a + i * pitch, room);
	for (int64_t i = 0; i < m; i++)
		add_row(n, -f * v[i], room, a + i * pitch);
}

/* a -= f (a v) v* */
static void reflect_right(int64_t m, int64_t n, T *a, int64_t pitch, const T *v, T f)
{
	for (int64_t i = 0; i < m; i++) {
		T dot = 0;
		for (int64_t j = 0; j < n; j++)
			dot += a[i * pitch + j] * v[j];
		for (int64_t j = 0; j < n; j++)
			a[i * pitch + j] -= f * dot * CONJ(v[j]);
	}
}

/* Rows x and y of n numbers turned: x' = c x + s y, y' = c y - s x */
static void turn(int64_t n, T *x, T *y, double c, double s)
{
	for (int64_t i = 0; i < n; i++) {
		T t = x[i];
		x[i] = c * t + s * y[i];
		y[i] = c * y[i] - s * t;
	}
}

static bool all_finite(int64_t n, const T *a)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += 0 * square(a[i]); /* 0, or no number */
	return sum == 0;
}

/* Turns of a tridiagonal matrix, or of one of two diagonals, to find one value. */
enum { TURNS = 60 };

/* ---- eigenvalues of what is its own conjugate transpose ---- */

/* The tridiagonal matrix (d, e) that is h* a h; column k of a below the diagonal is left with
 * reflection k, whose first number is taken as 1. */
static void tridiagonal(int64_t n, T *a, double *d, double *e, T *tau, T *v, T *w)
{
	for (int64_t k = 0; k + 1 < n; k++) {
		int64_t m = n - k - 1;
		T *low = a + (k + 1) * n + k + 1, dot = 0;

		d[k] = RE(a[k * n + k]);
		for (int64_t i = 0; i < m; i++)
			v[i] = a[(k + 1 + i) * n + k];
		tau[k] = reflector(m, v);
		e[k] = RE(v[0]);
		v[0] = 1;
		for (int64_t i = 0; i < m; i++)
			a[(k + 1 + i) * n + k] = v[i];
		if (tau[k] == 0)
			continue;
		memset(w, 0, (size_t)m * sizeof *w);
		for (int64_t i = 0; i < m; i++) { /* the lower triangle counts for both */
			T sum = RE(low[i * n + i]) * v[i];
			for (int64_t j = 0; j < i; j++) {
				sum += low[i * n + j] * v[j];
				w[j] += CONJ(low[i * n + j]) * v[i];
			}
			w[i] += sum;
		}
		for (int64_t i = 0; i < m; i++) {
			w[i] *= tau[k];
			dot += CONJ(w[i]) * v[i];
		}
		add_row(m, -tau[k] * dot / 2, v, w);
		for (int64_t i = 0; i < m; i++)
			for (int64_t j = 0; j <= i; j++)
				low[i * n + j] -= v[i] * CONJ(w[j]) + w[i] * CONJ(v[j]);
	}
	if (n)
		d[n - 1] = RE(a[n * n - 1]);
}

/* One value of a tridiagonal matrix by turns with a shift (QL); the turns go to the rows of v. */
static bool ql_value(int64_t n, int64_t l, double *d, double *e, T *v)
{
	for (int turns = 0;; turns++) {
		int64_t m = l, i;
		while (m + 1 < n && !(fabs(e[m]) <= 0x1p-52 * (fabs(d[m]) + fabs(d[m + 1]))))
			m++;
		if (m == l)
			return true;
		if (turns == TURNS)
			return false;
		double g = (d[l + 1] - d[l]) / (2 * e[l]), r = hypot(g, 1), s = 1, c = 1, p = 0;
		g = d[m] - d[l] + e[l] / (g + copysign(r, g));
		for (i = m - 1; i >= l; i--) {
			double f = s * e[i], b = c * e[i];
			e[i + 1] = r = hypot(f, g);
			if (r == 0) {
				d[i + 1] -= p;
				e[m] = 0;
				break;
			}
			s = f / r;
			c = g / r;
			g = d[i + 1] - p;
			r = (d[i] - g) * s + 2 * c * b;
			p = s * r;
			d[i + 1] = g + p;
			g = c * r - b;
			if (v)
				turn(n, v + (i + 1) * n, v + i * n, c, s);
		}
		if (i >= l)
			continue;
		d[l] -= p;
		e[l] = g;
		e[m] = 0;
	}
}

/* q of a = q t q* from the reflections, conjugated and turned, so that vectors are rows. */
static void gather_vectors(int64_t n, const T *a, const T *tau, T *q, T *v, T *room, T *out)
{
	memset(q, 0, (size_t)(n * n) * sizeof *q);
	for (int64_t i = 0; i < n; i++)
		q[i * n + i] = 1;
	for (int64_t k = n - 1; k-- > 0;) {
		int64_t m = n - k - 1;
		for (int64_t i = 0; i < m; i++)
			v[i] = a[(k + 1 + i) * n + k];
		reflect_left(m, m, q + (k + 1) * n + k + 1, n, v, tau[k], room);
	}
	adjoint(n, n, q, out);
}

static bool hermitian(int64_t n, void *a_, double *d, void *v_)
{
	T *a = a_, *v = v_, *room = calloc((size_t)(4 * n + (v ? n * n : 0)) + 1, sizeof *room);
	double *e = calloc((size_t)n + 1, sizeof *e);
	bool ok = room && e;

	for (int64_t i = 0; ok && i < n; i++)
		ok = all_finite(i + 1, a + i * n);
	if (ok)
		tridiagonal(n, a, d, e, room, room + n, room + 2 * n);
	if (ok && v)
		gather_vectors(n, a, room, room + 4 * n, room + n, room + 2 * n, v);
	for (int64_t l = 0; ok && l < n; l++)
		ok = ql_value(n, l, d, e, v);
	for (int64_t i = 0; ok && i < n; i++) {
		int64_t least = i;
		for (int64_t k = i + 1; k < n; k++)
			least = d[k] < d[least] ? k : least;
		double t = d[i];
		d[i] = d[least];
		d[least] = t;
		if (v && least != i)
			swap_rows(n, v + i * n, v + least * n);
	}
	free(room);
	free(e);
	return ok;
}

/* ---- singular values ---- */

struct bidiagonal {
	int64_t m, n, rows_of_u;
	double *d, *e; /* the diagonal, and e[i] above d[i] */
	T *u, *v;      /* [rows_of_u, m], [n, n], or NULL */
};

/* a = q (d, e) p*: reflections of columns stay below the diagonal, those of rows, conjugated, right
 * of what is above it. */
static void two_diagonals(struct bidiagonal *b, T *a, T *tau_q, T *tau_p, T *v, T *room)
{
	int64_t m = b->m, n = b->n;

	for (int64_t k = 0; k < n; k++) {
		for (int64_t i = k; i < m; i++)
			v[i - k] = a[i * n + k];
		tau_q[k] = reflector(m - k, v);
		b->d[k] = RE(v[0]);
		v[0] = 1;
		for (int64_t i = k; i < m; i++)
			a[i * n + k] = v[i - k];
		reflect_left(m - k, n - k - 1, a + k * n + k + 1, n, v, CONJ(tau_q[k]), room);
		b->e[k] = 0;
		if (k + 1 == n)
			break;
		for (int64_t j = k + 1; j < n; j++)
			v[j - k - 1] = CONJ(a[k * n + j]);
		tau_p[k] = reflector(n - k - 1, v);
		b->e[k] = RE(v[0]);
		v[0] = 1;
		memcpy(a + k * n + k + 1, v, (size_t)(n - k - 1) * sizeof *v);
		reflect_right(m - k - 1, n - k - 1, a + (k + 1) * n + k + 1, n, v, tau_p[k]);
	}
}

static void vectors_of_two(struct bidiagonal *b, const T *a, const T *tau_q, const T *tau_p, T *v)
{
	int64_t m = b->m, n = b->n;

	/* u* = h1* … on the rows of the identity, from the right the last first: rows are vectors
	 */
	memset(b->u, 0, (size_t)(b->rows_of_u * m) * sizeof *b->u);
	memset(b->v, 0, (size_t)(n * n) * sizeof *b->v);
	for (int64_t i = 0; i < b->rows_of_u; i++)
		b->u[i * m + i] = 1;
	for (int64_t i = 0; i < n; i++)
		b->v[i * n + i] = 1;
	for (int64_t k = n; k-- > 0;) {
		for (int64_t i = k; i < m; i++)
			v[i - k] = a[i * n + k];
		reflect_right(b->rows_of_u - k, m - k, b->u + k * m + k, m, v, CONJ(tau_q[k]));
		if (k + 1 < n)
			reflect_right(n - k - 1, n - k - 1, b->v + (k + 1) * n + k + 1, n,
				      a + k * n + k + 1, CONJ(tau_p[k]));
	}
}

/* d[l - 1] is as good as 0: turns that take e[l - 1] away. */
static void cut_off(struct bidiagonal *b, int64_t l, int64_t k, double small)
{
	double c = 0, s = 1;

	for (int64_t i = l; i <= k; i++) {
		double f = s * b->e[i - 1], g = b->d[i], h;
		b->e[i - 1] *= c;
		if (fabs(f) <= small)
			return;
		b->d[i] = h = hypot(f, g);
		c = g / h;
		s = -f / h;
		if (b->u)
			turn(b->m, b->u + (l - 1) * b->m, b->u + i * b->m, c, s);
	}
}

/* One turn through [l, k] with a shift, off the bottom two (QR). */
static void sweep(struct bidiagonal *b, int64_t l, int64_t k)
{
	double *d = b->d, *e = b->e, x = d[l], y = d[k - 1], z = d[k], h = e[k - 1], c = 1, s = 1;
	double g = k > 1 ? e[k - 2] : 0;
	double f = ((y - z) * (y + z) + (g - h) * (g + h)) / (2 * h * y);

	g = hypot(f, 1);
	f = ((x - z) * (x + z) + h * (y / (f + copysign(g, f)) - h)) / x;
	for (int64_t j = l; j < k; j++) {
		int64_t i = j + 1;
		g = c * e[j];
		h = s * e[j];
		y = d[i];
		z = hypot(f, h);
		if (j > l)
			e[j - 1] = z;
		c = z != 0 ? f / z : 1;
		s = z != 0 ? h / z : 0;
		f = x * c + g * s;
		g = g * c - x * s;
		h = y * s;
		y *= c;
		if (b->v)
			turn(b->n, b->v + j * b->n, b->v + i * b->n, c, s);
		d[j] = z = hypot(f, h);
		if (z != 0) {
			c = f / z;
			s = h / z;
		}
		f = c * g + s * y;
		x = c * y - s * g;
		if (b->u)
			turn(b->m, b->u + j * b->m, b->u + i * b->m, c, s);
	}
	e[k - 1] = f;
	d[k] = x;
}

static bool singular_value(struct bidiagonal *b, int64_t k, double small)
{
	for (int turns = 0; turns < TURNS; turns++) {
		int64_t l = k;
		while (l > 0 && fabs(b->e[l - 1]) > small && fabs(b->d[l - 1]) > small)
			l--;
		if (l > 0 && fabs(b->e[l - 1]) > small)
			cut_off(b, l, k, small);
		if (l > 0)
			b->e[l - 1] = 0;
		if (l == k) {
			for (int64_t j = 0; b->d[k] < 0 && b->v && j < b->n; j++)
				b->v[k * b->n + j] = -b->v[k * b->n + j];
			b->d[k] = fabs(b->d[k]);
			return true;
		}
		sweep(b, l, k);
	}
	return false;
}

static void sort_singular(struct bidiagonal *b)
{
	for (int64_t i = 0; i < b->n; i++) {
		int64_t most = i;
		for (int64_t k = i + 1; k < b->n; k++)
			most = b->d[k] > b->d[most] ? k : most;
		double t = b->d[i];
		b->d[i] = b->d[most];
		b->d[most] = t;
		if (b->u && most != i) {
			swap_rows(b->m, b->u + i * b->m, b->u + most * b->m);
			swap_rows(b->n, b->v + i * b->n, b->v + most * b->n);
		}
	}
}

static bool svd(int64_t m, int64_t n, void *a, bool full, double *s, void *u, void *v)
{
	T *room = calloc((size_t)(m + 3 * n) + 1, sizeof *room);
	double *e = calloc((size_t)n + 1, sizeof *e), most = 0;
	struct bidiagonal b = {m, n, full ? m : n, s, e, u, v};
	bool ok = room && e && all_finite(m * n, a);

	if (ok)
		two_diagonals(&b, a, room, room + n, room + 3 * n, room + 2 * n);
	if (ok && u)
		vectors_of_two(&b, a, room, room + n, room + 3 * n);
	for (int64_t i = 0; ok && i < n; i++)
		most = fmax(most, fabs(s[i]) + fabs(e[i]));
	for (int64_t k = n; ok && k-- > 0;)
		ok = singular_value(&b, k, most * 0x1p-53);
	if (ok)
		sort_singular(&b);
	free(room);
	free(e);
	return ok;
}

const struct matrix_ops MATRIX_OPS = {
    .cholesky = cholesky,
    .lu = lu,
    .invertible = invertible,
    .solve = solve,
    .triangular = triangular,
    .determinant = determinant,
    .hermitian = hermitian,
    .svd = svd,
    .adjoint = adjoint,
    .product = product,
};
