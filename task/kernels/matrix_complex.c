/* SPDX-License-Identifier: Apache-2.0 */
#include <complex.h>

typedef double _Complex T;
#define CONJ(x)      conj(x)
#define RE(x)        creal(x)
#define MAGNITUDE(x) cabs(x)
#define MATRIX_OPS   matrix_complex
#include "task/kernels/matrix_body.h"

/* ---- the Schur form ---- */

/* a = q h q*, h having one diagonal below the main one. */
static void hessenberg(int64_t n, T *a, T *q, T *v, T *room)
{
	memset(q, 0, (size_t)(n * n) * sizeof *q);
	for (int64_t i = 0; i < n; i++)
		q[i * n + i] = 1;
	for (int64_t k = 0; k + 2 < n; k++) {
		int64_t m = n - k - 1;
		for (int64_t i = 0; i < m; i++)
			v[i] = a[(k + 1 + i) * n + k];
		T tau = reflector(m, v);
		for (int64_t i = 0; i < m; i++) {
			a[(k + 1 + i) * n + k] = i ? 0 : v[0];
		}
		v[0] = 1;
		reflect_left(m, m, a + (k + 1) * n + k + 1, n, v, conj(tau), room);
		reflect_right(n, m, a + k + 1, n, v, tau);
		reflect_right(n, m, q + k + 1, n, v, tau);
	}
}

static double size1(T x)
{
	return fabs(creal(x)) + fabs(cimag(x));
}

/* The eigenvalue of the two by two at the bottom that is nearer to its last number; now and then
 * another, that no turn goes in circles. */
static T shift_of(int64_t n, const T *a, int64_t k, int turns)
{
	T p = a[(k - 1) * n + k - 1], s = a[k * n + k], r = a[k * n + k - 1];
	T half = (p - s) / 2, root = csqrt(half * half + a[(k - 1) * n + k] * r);

	if (turns % 10 == 9)
		return s + size1(r);
	if (creal(half * conj(root)) < 0)
		root = -root;
	return half + root == 0 ? s : s - a[(k - 1) * n + k] * r / (half + root);
}

/* Rows, then columns i and i + 1 turned so that g * (x, y) = (r, 0). */
static void turn_both(int64_t n, T *a, T *q, int64_t i, int64_t from, int64_t to, T x, T y)
{
	double r = hypot(cabs(x), cabs(y));
	T c = r == 0 ? 1 : x / r, s = r == 0 ? 0 : y / r;

	for (int64_t j = from; j < n; j++) {
		T t = a[i * n + j], w = a[(i + 1) * n + j];
		a[i * n + j] = conj(c) * t + conj(s) * w;
		a[(i + 1) * n + j] = c * w - s * t;
	}
	for (int64_t j = 0; j < to; j++) {
		T t = a[j * n + i], w = a[j * n + i + 1];
		a[j * n + i] = c * t + s * w;
		a[j * n + i + 1] = conj(c) * w - conj(s) * t;
	}
	for (int64_t j = 0; j < n; j++) {
		T t = q[j * n + i], w = q[j * n + i + 1];
		q[j * n + i] = c * t + s * w;
		q[j * n + i + 1] = conj(c) * w - conj(s) * t;
	}
}

/* Turns until what is below (k, k) on its left is 0. */
static bool schur_value(int64_t n, int64_t k, T *a, T *q)
{
	for (int turns = 0; turns < TURNS; turns++) {
		int64_t l = k;
		for (; l > 0; l--) {
			T *below = &a[l * n + l - 1];
			double beside = size1(a[l * n + l]) + size1(a[(l - 1) * n + l - 1]);
			if (size1(*below) <= 0x1p-52 * beside || size1(*below) < 0x1p-1000) {
				*below = 0;
				break;
			}
		}
		if (l == k)
			return true;
		T shift = shift_of(n, a, k, turns), x = a[l * n + l] - shift;
		T y = a[(l + 1) * n + l];
		for (int64_t i = l; i < k; i++) {
			if (i > l) {
				x = a[i * n + i - 1];
				y = a[(i + 1) * n + i - 1];
			}
			turn_both(n, a, q, i, i > l ? i - 1 : l, i + 3 > k + 1 ? k + 1 : i + 3, x,
				  y);
			if (i > l)
				a[(i + 1) * n + i - 1] = 0;
		}
	}
	return false;
}

bool matrix_schur(int64_t n, void *a, void *q)
{
	T *room = calloc((size_t)(2 * n) + 1, sizeof *room);
	bool ok = room && all_finite(n * n, a);

	if (ok)
		hessenberg(n, a, q, room, room + n);
	for (int64_t k = n; ok && k-- > 0;)
		ok = schur_value(n, k, a, q);
	free(room);
	return ok;
}
