/* SPDX-License-Identifier: Apache-2.0 */
/* Eigenvalues of what is its own conjugate transpose, of which only the lower triangle is looked
 * at; for body.h. */

/* Row i of the triangle `low`: what the step before takes away (its v and w), and its part of
 * w = low v. */
static void tridiagonal_row(int64_t i, T *restrict low, const T *restrict v_before,
			    const T *restrict w_before, const T *restrict v, T *restrict w)
{
	T vi = v_before[i], wi = w_before[i], mine = v[i], sum = 0;

	for (int64_t j = 0; j < i; j++) {
		T x = low[j] - (vi * CONJ(w_before[j]) + wi * CONJ(v_before[j]));
		low[j] = x;
		sum += x * v[j];
		w[j] += CONJ(x) * mine;
	}
	low[i] -= vi * CONJ(wi) + wi * CONJ(vi);
	w[i] += sum + RE(low[i]) * mine;
}

/* The tridiagonal matrix (d, e) that is h* a h; column k of a below the diagonal is left with
 * reflection k, whose first number is taken as 1.  What a reflection does to the rest of a is done
 * when the next one goes through it.  room: 4 n zeros. */
static void tridiagonal(int64_t n, T *a, double *d, double *e, T *tau, T *room)
{
	T *v = room, *w = v + n, *v_before = w + n, *w_before = v_before + n;

	for (int64_t k = 0; k < n; k++) {
		int64_t m = n - k - 1;
		T *low = a + (k + 1) * (n + 1), vk = *v_before, wk = *w_before, dot = 0, *t;

		for (int64_t i = 0; i <= m; i++)
			a[(k + i) * n + k] -= v_before[i] * CONJ(wk) + w_before[i] * CONJ(vk);
		d[k] = RE(a[k * n + k]);
		if (m == 0)
			break;
		v_before++; /* they begin in row k + 1 from here */
		w_before++;
		for (int64_t i = 0; i < m; i++)
			v[i] = a[(k + 1 + i) * n + k];
		tau[k] = reflector(m, v);
		e[k] = RE(v[0]);
		v[0] = 1;
		for (int64_t i = 0; i < m; i++)
			a[(k + 1 + i) * n + k] = v[i];
		memset(w, 0, (size_t)m * sizeof *w);
		for (int64_t i = 0; i < m; i++)
			tridiagonal_row(i, low + i * n, v_before, w_before, v, w);
		for (int64_t i = 0; i < m; i++) {
			w[i] *= tau[k];
			dot += CONJ(w[i]) * v[i];
		}
		add_row(m, -tau[k] * dot / 2, v, w);
		t = v_before - 1;
		v_before = v;
		v = t;
		t = w_before - 1;
		w_before = w;
		w = t;
	}
}

/* One value of a tridiagonal matrix by turns with a shift (QL); the turns go to the rows of
 * vectors. */
static bool ql_value(int64_t n, int64_t l, double *d, double *e, struct turns *t)
{
	for (int turns = 0;; turns++) {
		int64_t m = l, i;
		while (m + 1 < n && !(fabs(e[m]) <= 0x1p-52 * (fabs(d[m]) + fabs(d[m + 1]))))
			m++;
		if (m == l)
			return true;
		if (turns == TURNS)
			return false;
		double g = (d[l + 1] - d[l]) / (2 * e[l]), r = length(g, 1), s = 1, c = 1, p = 0;
		g = d[m] - d[l] + e[l] / (g + copysign(r, g));
		for (i = m - 1; i >= l; i--) {
			double f = s * e[i], b = c * e[i];
			e[i + 1] = r = length(f, g);
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
			turns_add(t, i + 1, i, c, s);
		}
		if (i >= l)
			continue;
		d[l] -= p;
		e[l] = g;
		e[m] = 0;
	}
}

static void sort_rising(int64_t n, double *d, T *v)
{
	for (int64_t i = 0; i < n; i++) {
		int64_t least = i;
		for (int64_t k = i + 1; k < n; k++)
			least = d[k] < d[least] ? k : least;
		double t = d[i];
		d[i] = d[least];
		d[least] = t;
		if (v && least != i)
			swap_rows(n, v + i * n, v + least * n);
	}
}

static bool hermitian(int64_t n, void *a_, double *d, void *v_)
{
	int64_t more = 5 * n + (v_ ? n * n + block_room(n, n) : 0) + 1;
	T *a = a_, *v = v_, *tau = calloc((size_t)more, sizeof *tau), *q = tau + 5 * n;
	double *e = calloc((size_t)n + 1, sizeof *e);
	struct turns t = {0};
	bool ok = tau && e && turns_init(&t, v, n, n);

	for (int64_t i = 0; ok && i < n; i++) { /* what lies above may be anything */
		ok = all_finite(i + 1, a + i * n);
		memset(a + i * n + i + 1, 0, (size_t)(n - i - 1) * sizeof *a);
	}
	int power = ok ? bring_near_1(n * n, a) : 0;
	if (ok)
		tridiagonal(n, a, d, e, tau, tau + n);
	if (ok && v) { /* rows are to be the conjugates of vectors */
		memset(q, 0, (size_t)(n * n) * sizeof *q);
		if (n)
			q[0] = 1;
		if (n > 1)
			form_q(&(struct reflections){a + n, n, 1, n - 1, n - 1, tau}, n - 1,
			       q + n + 1, n, q + n * n);
		adjoint(n, n, q, v);
	}
	for (int64_t l = 0; ok && l < n; l++)
		ok = ql_value(n, l, d, e, &t);
	if (ok && v)
		turns_make(&t);
	if (ok)
		sort_rising(n, d, v);
	for (int64_t i = 0; ok && i < n; i++)
		d[i] = ldexp(d[i], power);
	free(tau);
	free(e);
	free(t.kept);
	return ok;
}
