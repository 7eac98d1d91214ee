/* SPDX-License-Identifier: Apache-2.0 */
/* Reflections, h = 1 - tau v v*, v[0] = 1, and h* x = beta e1 with a real beta; and q r by them, so
 * many columns at a time: h1 h2 … = 1 - v t v* with t upper triangular.  For body.h. */

enum { BLOCK = 32 };

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

/* Rows [0, m) of a, `line` apart: a -= f v (v* a).  room: n numbers. */
static void reflect_left(int64_t m, int64_t n, T *a, int64_t line, const T *v, T f, T *room)
{
	memset(room, 0, (size_t)n * sizeof *room);
	for (int64_t i = 0; i < m; i++)
		add_row(n, CONJ(v[i]), a + i * line, room);
	for (int64_t i = 0; i < m; i++)
		add_row(n, -f * v[i], room, a + i * line);
}

/* k of them.  Number i of vector j is at[i * down + j * right] for i > j, 1 for i = j, and 0
 * before; m numbers each. */
struct reflections {
	const T *at;
	int64_t down, right, m, k;
	const T *tau;
};

/* Room for what follows, with matrices of n columns. */
static int64_t block_room(int64_t m, int64_t n)
{
	return BLOCK * (m + BLOCK + 2 * n) + m + n;
}

/* Vectors [from, from + k) as v (m - from x k), and their t (k x k). */
static void block_of(const struct reflections *r, int64_t from, int64_t k, T *v, T *t)
{
	int64_t m = r->m - from;

	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < k; j++)
			v[i * k + j] = i > j ? r->at[(from + i) * r->down + (from + j) * r->right]
				       : i == j ? 1
						: 0;
	multiply(SET, k, k, m, (struct part){v, k}, true, (struct part){v, k}, t, k);
	for (int64_t j = 0; j < k; j++) {
		for (int64_t i = 0; i < j; i++) {
			T sum = 0;
			for (int64_t l = i; l < j; l++)
				sum += t[i * k + l] * t[l * k + j];
			t[i * k + j] = -r->tau[from + j] * sum;
		}
		t[j * k + j] = r->tau[from + j];
		for (int64_t i = j + 1; i < k; i++)
			t[i * k + j] = 0;
	}
}

/* c (rows from `from` on, n columns) = h1 h2 … c, or its adjoint's. */
static void reflect_block(const struct reflections *r, int64_t from, int64_t k, bool adjoint,
			  int64_t n, T *c, int64_t line, T *room)
{
	int64_t m = r->m - from;
	T *v = room, *t = v + m * k, *w = t + k * k, *x = w + k * n;

	if (n == 0)
		return;
	block_of(r, from, k, v, t);
	multiply(SET, k, n, m, (struct part){v, k}, true, (struct part){c, line}, w, n);
	multiply(SET, k, n, k, (struct part){t, k}, adjoint, (struct part){w, n}, x, n);
	multiply(TAKE_AWAY, m, n, k, (struct part){v, k}, false, (struct part){x, n}, c, line);
}

/* q (m x n) = h1 h2 … on as many columns of the identity. */
static void form_q(const struct reflections *r, int64_t n, T *q, int64_t line, T *room)
{
	for (int64_t i = 0; i < r->m; i++) {
		memset(q + i * line, 0, (size_t)n * sizeof *q);
		if (i < n)
			q[i * line + i] = 1;
	}
	if (r->k <= SMALL / 2) { /* one by one */
		for (int64_t j = r->k; j-- > 0;) {
			for (int64_t i = j; i < r->m; i++)
				room[i - j] = i == j ? 1 : r->at[i * r->down + j * r->right];
			reflect_left(r->m - j, n - j, q + j * (line + 1), line, room, r->tau[j],
				     room + r->m);
		}
		return;
	}
	for (int64_t from = (r->k - 1) / BLOCK * BLOCK; from >= 0; from -= BLOCK)
		reflect_block(r, from, r->k - from < BLOCK ? r->k - from : BLOCK, false, n - from,
			      q + from * (line + 1), line, room);
}

/* The reflections that make columns [from, to) of a (m x n) triangular, left in them. */
static void qr_panel(int64_t m, int64_t n, int64_t from, int64_t to, T *a, T *tau, T *room)
{
	T *v = room, *w = v + m;

	for (int64_t j = from; j < to; j++) {
		for (int64_t i = j; i < m; i++)
			v[i - j] = a[i * n + j];
		tau[j] = reflector(m - j, v);
		for (int64_t i = j; i < m; i++)
			a[i * n + j] = v[i - j];
		v[0] = 1;
		if (tau[j] != 0)
			reflect_left(m - j, to - j - 1, a + j * n + j + 1, n, v, CONJ(tau[j]), w);
	}
}

static bool qr(int64_t m, int64_t n, void *a_, int64_t columns, void *q)
{
	int64_t k = m < n ? m : n, wide = n > columns ? n : columns;
	T *a = a_, *tau = calloc((size_t)(k + block_room(m, wide)), sizeof *tau), *room = tau + k;
	struct reflections r = {a, n, 1, m, k, tau};

	if (!tau)
		return false;
	for (int64_t from = 0; from < k; from += BLOCK) {
		int64_t to = k - from < BLOCK ? k : from + BLOCK;

		qr_panel(m, n, from, to, a, tau, room);
		reflect_block(&r, from, to - from, true, n - to, a + from * n + to, n, room);
	}
	form_q(&r, columns, q, columns, room);
	for (int64_t i = 1; i < m; i++)
		memset(a + i * n, 0, (size_t)(i < n ? i : n) * sizeof *a);
	free(tau);
	return true;
}
