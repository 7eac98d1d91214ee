/* SPDX-License-Identifier: Apache-2.0 */
/* The Schur form of a complex matrix, a = q t q*, and eigenvectors from it; for body.h.
 *
 * q* is kept, so that turns are of its rows.  A turn of the columns of t is made at once in the two
 * rows that the turns behind it mix, and at the end of a sweep, row by row, in the rest. */

/* a = q h q*, h having one diagonal below the main one.  room: block_room and a square. */
static void hessenberg(int64_t n, T *a, T *adjoint_q, T *tau, T *room)
{
	T *q = room, *v = room, *w = v + n;

	for (int64_t k = 0; k + 1 < n; k++) {
		int64_t m = n - k - 1;
		T *rest = a + (k + 1) * n + k + 1;

		for (int64_t i = 0; i < m; i++)
			v[i] = rest[i * n - 1];
		tau[k] = reflector(m, v);
		for (int64_t i = 0; i < m; i++)
			rest[i * n - 1] = v[i];
		v[0] = 1;
		reflect_left(m, m, rest, n, v, CONJ(tau[k]), w);
		for (int64_t i = 0; i < n; i++) {
			T *row = a + i * n + k + 1, dot = 0;
			for (int64_t j = 0; j < m; j++)
				dot += row[j] * v[j];
			dot *= tau[k];
			for (int64_t j = 0; j < m; j++)
				row[j] -= dot * CONJ(v[j]);
		}
	}
	memset(q, 0, (size_t)(n * n) * sizeof *q);
	if (n)
		q[0] = 1;
	if (n > 1)
		form_q(&(struct reflections){a + n, n, 1, n - 1, n - 1, tau}, n - 1, q + n + 1, n,
		       q + n * n);
	adjoint(n, n, q, adjoint_q);
	for (int64_t i = 2; i < n; i++)
		memset(a + i * n, 0, (size_t)(i - 1) * sizeof *a);
}

static double size1(T x)
{
	return fabs(RE(x)) + fabs(IM(x));
}

/* The eigenvalue of the two by two at the bottom that is nearer to its last number; now and then
 * another, that no turn goes in circles. */
static T shift_of(int64_t n, const T *a, int64_t k, int turns)
{
	T p = a[(k - 1) * n + k - 1], s = a[k * n + k], r = a[k * n + k - 1];
	T half = (p - s) / 2, root = csqrt(half * half + a[(k - 1) * n + k] * r);

	if (turns % 10 == 9)
		return s + size1(r);
	if (RE(half * CONJ(root)) < 0)
		root = -root;
	return half + root == 0 ? s : s - a[(k - 1) * n + k] * r / (half + root);
}

struct mixed {
	T c, s; /* c* x + s* y and c y - s x, for rows x and y */
};

static void mix_rows(int64_t n, struct mixed m, T *restrict x, T *restrict y)
{
	for (int64_t j = 0; j < n; j++) {
		T t = x[j], w = y[j];
		x[j] = CONJ(m.c) * t + CONJ(m.s) * w;
		y[j] = m.c * w - m.s * t;
	}
}

/* The same of columns at `row` and behind it. */
static void mix_columns(struct mixed m, T *row)
{
	T t = row[0], w = row[1];

	row[0] = m.c * t + m.s * w;
	row[1] = CONJ(m.c) * w - CONJ(m.s) * t;
}

/* One sweep through [l, k] of t.  mixed: room for n. */
static void schur_sweep(int64_t n, int64_t l, int64_t k, T shift, T *a, T *adjoint_q,
			struct mixed *mixed)
{
	for (int64_t i = l; i < k; i++) {
		int64_t from = i > l ? i - 1 : l;
		T x = a[i * n + from] - (i > l ? 0 : shift), y = a[(i + 1) * n + from];
		double r = sqrt(square(x) + square(y));
		struct mixed m = {r == 0 ? 1 : x / r, r == 0 ? 0 : y / r};

		mixed[i] = m;
		mix_rows(n - from, m, a + i * n + from, a + (i + 1) * n + from);
		mix_rows(n, m, adjoint_q + i * n, adjoint_q + (i + 1) * n);
		if (i > l)
			a[(i + 1) * n + from] = 0;
		for (int64_t j = i + 1; j <= i + 2 && j <= k; j++)
			mix_columns(m, a + j * n + i);
	}
	for (int64_t j = 0; j < k; j++)
		for (int64_t i = j > l ? j : l; i < k; i++)
			mix_columns(mixed[i], a + j * n + i);
}

/* Sweeps until what is left of (k, k) is 0. */
static bool schur_value(int64_t n, int64_t k, T *a, T *adjoint_q, struct mixed *mixed)
{
	for (int turns = 0; turns < TURNS; turns++) {
		int64_t l = k;
		for (; l > 0; l--) {
			T *below = &a[l * n + l - 1];
			double beside = size1(a[l * n + l]) + size1(a[(l - 1) * n + l - 1]);
			if (size1(*below) <= 0x1p-52 * beside || size1(*below) < 0x1p-500) {
				*below = 0;
				break;
			}
		}
		if (l == k)
			return true;
		schur_sweep(n, l, k, shift_of(n, a, k, turns), a, adjoint_q, mixed);
	}
	return false;
}

static bool schur(int64_t n, void *a_, void *q)
{
	T *a = a_, *tau = calloc((size_t)(n + n * n + block_room(n, n)) + 1, sizeof *tau);
	struct mixed *mixed = calloc((size_t)n + 1, sizeof *mixed);
	bool ok = tau && mixed && all_finite(n * n, a);
	int power = ok ? bring_near_1(n * n, a) : 0;
	T *adjoint_q = tau;

	if (ok) {
		hessenberg(n, a, q, tau, tau + n);
		adjoint_q = q;
	}
	for (int64_t k = n; ok && k-- > 0;)
		ok = schur_value(n, k, a, adjoint_q, mixed);
	if (ok) {
		adjoint(n, n, q, tau);
		memcpy(q, tau, (size_t)(n * n) * sizeof *tau);
	}
	double back = ldexp(1, power / 2), more = ldexp(1, power - power / 2);
	for (int64_t i = 0; ok && i < n * n; i++)
		a[i] = a[i] * back * more;
	free(tau);
	free(mixed);
	return ok;
}

/* Row k of x becomes x[k] of t x[k] = t[k][k] x[k], from the k-th number upwards. */
static void triangle_vectors(int64_t n, const T *t, T *x)
{
	double most = 0;

	for (int64_t i = 0; i < n * n; i++)
		most = fmax(most, MAGNITUDE(t[i]));
	memset(x, 0, (size_t)(n * n) * sizeof *x);
	for (int64_t k = 0; k < n; k++) {
		T *v = x + k * n;
		v[k] = 1;
		for (int64_t i = k; i-- > 0;) {
			T sum = 0, apart = t[i * n + i] - t[k * n + k];
			for (int64_t j = i + 1; j <= k; j++)
				sum += t[i * n + j] * v[j];
			if (MAGNITUDE(apart) <=
			    most * 0x1p-52) /* as good as the same value again */
				apart = most * 0x1p-52;
			v[i] = sum == 0 ? 0 : -sum / apart;
		}
	}
}

static void schur_vectors(int64_t n, void *t_, const void *q, void *x_)
{
	T *t = t_, *x = x_;

	triangle_vectors(n, t, x);
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < i; j++) {
			T other = x[i * n + j];
			x[i * n + j] = x[j * n + i];
			x[j * n + i] = other;
		}
	product_of(n, n, n, q, x, t);
	for (int64_t i = 0; i < n; i++) {
		double size = 0;
		for (int64_t r = 0; r < n; r++)
			size += square(t[r * n + i]);
		size = sqrt(size);
		for (int64_t r = 0; size > 0 && r < n; r++)
			t[r * n + i] /= size;
	}
}
