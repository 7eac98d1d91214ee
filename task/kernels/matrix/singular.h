/* SPDX-License-Identifier: Apache-2.0 */
/* Singular values, by way of two diagonals; for body.h. */

struct bidiagonal {
	int64_t m, n, rows_of_u;
	double *d, *e; /* the diagonal, and e[i] above d[i] */
	T *u, *v;      /* [rows_of_u, m], [n, n], or NULL */
	struct turns turns_u, turns_v;
};

/* Row `a` of n numbers, reflected from the left (a -= f w) and then from the right by v, tau. */
static void reflect_row(int64_t n, T *restrict a, T f, const T *restrict w, const T *restrict v,
			T tau)
{
	T dot = 0;

	for (int64_t j = 0; j < n; j++) {
		a[j] -= f * w[j];
		dot += a[j] * v[j];
	}
	dot *= tau;
	for (int64_t j = 0; j < n; j++)
		a[j] -= dot * CONJ(v[j]);
}

/* a = q (d, e) p*: reflections of columns stay below the diagonal, those of rows, conjugated, right
 * of what is above it.  room: m + 2 n. */
static void two_diagonals(struct bidiagonal *b, T *a, T *tau_q, T *tau_p, T *room)
{
	int64_t m = b->m, n = b->n;
	T *v = room, *w = v + m, *right = w + n;

	for (int64_t k = 0; k < n; k++) {
		int64_t rest = n - k - 1;
		T *row = a + k * n + k + 1, f;

		for (int64_t i = k; i < m; i++)
			v[i - k] = a[i * n + k];
		tau_q[k] = reflector(m - k, v);
		b->d[k] = RE(v[0]);
		v[0] = 1;
		for (int64_t i = k; i < m; i++)
			a[i * n + k] = v[i - k];
		b->e[k] = 0;
		if (rest == 0)
			break;
		f = CONJ(tau_q[k]);
		memset(w, 0, (size_t)rest * sizeof *w);
		for (int64_t i = k; i < m; i++)
			add_row(rest, CONJ(v[i - k]), row + (i - k) * n, w);
		add_row(rest, -f, w, row);
		for (int64_t j = 0; j < rest; j++)
			right[j] = CONJ(row[j]);
		tau_p[k] = reflector(rest, right);
		b->e[k] = RE(right[0]);
		right[0] = 1;
		memcpy(row, right, (size_t)rest * sizeof *row);
		for (int64_t i = k + 1; i < m; i++)
			reflect_row(rest, row + (i - k) * n, f * v[i - k], w, right, tau_p[k]);
	}
}

/* u = q*, v = p*.  room: a square of m, and block_room. */
static void vectors_of_two(struct bidiagonal *b, const T *a, const T *tau_q, const T *tau_p,
			   T *room)
{
	int64_t m = b->m, n = b->n;
	T *q = room, *more = q + m * b->rows_of_u;

	form_q(&(struct reflections){a, n, 1, m, n, tau_q}, b->rows_of_u, q, b->rows_of_u, more);
	adjoint(m, b->rows_of_u, q, b->u);
	memset(q, 0, (size_t)(n * n) * sizeof *q);
	if (n)
		q[0] = 1;
	if (n > 1)
		form_q(&(struct reflections){a + 1, 1, n, n - 1, n - 1, tau_p}, n - 1, q + n + 1, n,
		       more);
	adjoint(n, n, q, b->v);
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
		b->d[i] = h = length(f, g);
		c = g / h;
		s = -f / h;
		turns_add(&b->turns_u, l - 1, i, c, s);
	}
}

/* One turn through [l, k] with a shift, off the bottom two (QR). */
static void sweep(struct bidiagonal *b, int64_t l, int64_t k)
{
	double *d = b->d, *e = b->e, x = d[l], y = d[k - 1], z = d[k], h = e[k - 1], c = 1, s = 1;
	double g = k > 1 ? e[k - 2] : 0;
	double f = ((y - z) * (y + z) + (g - h) * (g + h)) / (2 * h * y);

	g = length(f, 1);
	f = ((x - z) * (x + z) + h * (y / (f + copysign(g, f)) - h)) / x;
	for (int64_t j = l; j < k; j++) {
		int64_t i = j + 1;
		g = c * e[j];
		h = s * e[j];
		y = d[i];
		z = length(f, h);
		if (j > l)
			e[j - 1] = z;
		c = z != 0 ? f / z : 1;
		s = z != 0 ? h / z : 0;
		f = x * c + g * s;
		g = g * c - x * s;
		h = y * s;
		y *= c;
		turns_add(&b->turns_v, j, i, c, s);
		d[j] = z = length(f, h);
		if (z != 0) {
			c = f / z;
			s = h / z;
		}
		f = c * g + s * y;
		x = c * y - s * g;
		turns_add(&b->turns_u, j, i, c, s);
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
			return true;
		}
		sweep(b, l, k);
	}
	return false;
}

static void sort_singular(struct bidiagonal *b)
{
	for (int64_t i = 0; i < b->n; i++) {
		for (int64_t j = 0; b->d[i] < 0 && b->v && j < b->n; j++)
			b->v[i * b->n + j] = -b->v[i * b->n + j];
		b->d[i] = fabs(b->d[i]);
	}
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
	int64_t rows_of_u = full ? m : n, all = u ? m * rows_of_u + block_room(m, rows_of_u) : 0;
	T *tau = calloc((size_t)(m + 4 * n + all) + 1, sizeof *tau), *room = tau + 2 * n;
	double *e = calloc((size_t)n + 1, sizeof *e), most = 0;
	struct bidiagonal b = {m, n, rows_of_u, s, e, u, v, {0}, {0}};
	bool ok = tau && e && all_finite(m * n, a) && turns_init(&b.turns_u, u, n, m) &&
		  turns_init(&b.turns_v, v, n, n);
	int power = ok ? bring_near_1(m * n, a) : 0;

	if (ok)
		two_diagonals(&b, a, tau, tau + n, room);
	if (ok && u)
		vectors_of_two(&b, a, tau, tau + n, room);
	for (int64_t i = 0; ok && i < n; i++)
		most = fmax(most, fabs(s[i]) + fabs(e[i]));
	for (int64_t k = n; ok && k-- > 0;)
		ok = singular_value(&b, k, most * 0x1p-53);
	if (ok && u) {
		turns_make(&b.turns_u);
		turns_make(&b.turns_v);
	}
	if (ok)
		sort_singular(&b);
	for (int64_t i = 0; ok && i < n; i++)
		s[i] = ldexp(s[i], power);
	free(tau);
	free(e);
	free(b.turns_u.kept);
	free(b.turns_v.kept);
	return ok;
}
