/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of two rows, kept until there are many and then made on some columns after the other, which
 * meanwhile stay in the nearest cache.  For matrix_body.h. */

enum { TURN_COLUMNS = 64, TURNS_KEPT = 16 }; /* kept for each row */

struct turn {
	int64_t x, y; /* rows: x' = c x + s y, y' = c y - s x */
	double c, s;
};

struct turns {
	T *v; /* or NULL: nothing is to be turned */
	int64_t columns, n, most;
	struct turn *kept;
};

static void turn_rows(int64_t n, T *restrict x, T *restrict y, double c, double s)
{
	for (int64_t i = 0; i < n; i++) {
		T t = x[i];
		x[i] = c * t + s * y[i];
		y[i] = c * y[i] - s * t;
	}
}

static bool turns_init(struct turns *t, T *v, int64_t rows, int64_t columns)
{
	*t = (struct turns){.v = v, .columns = columns, .most = TURNS_KEPT * rows + 1};
	t->kept = v ? calloc((size_t)t->most, sizeof *t->kept) : NULL;
	return !v || t->kept;
}

static void turns_make(struct turns *t)
{
	for (int64_t at = 0; at < t->columns; at += TURN_COLUMNS) {
		int64_t left = t->columns - at;

		for (int64_t i = 0; i < t->n; i++) {
			const struct turn *k = &t->kept[i];
			T *x = t->v + k->x * t->columns + at, *y = t->v + k->y * t->columns + at;

			if (left >= TURN_COLUMNS)
				turn_rows(TURN_COLUMNS, x, y, k->c, k->s);
			else
				turn_rows(left, x, y, k->c, k->s);
		}
	}
	t->n = 0;
}

static void turns_add(struct turns *t, int64_t x, int64_t y, double c, double s)
{
	if (!t->v)
		return;
	if (t->n == t->most)
		turns_make(t);
	t->kept[t->n++] = (struct turn){x, y, c, s};
}

/* Of numbers that have been brought near 1 before, so that squares neither overflow nor matter
 * where they vanish. */
static double length(double x, double y)
{
	return sqrt(x * x + y * y);
}

/* Brings the largest of n numbers near 1; the power of two that takes it back. */
static int bring_near_1(int64_t n, T *a)
{
	double most = 0;
	int power = 0;

	for (int64_t i = 0; i < n; i++) {
		most = fabs(RE(a[i])) > most ? fabs(RE(a[i])) : most;
		most = fabs(IM(a[i])) > most ? fabs(IM(a[i])) : most;
	}
	frexp(most, &power);
	if (power == 0 || most == 0)
		return 0;
	double first = ldexp(1, -power / 2), second = ldexp(1, power / 2 - power);
	for (int64_t i = 0; i < n; i++)
		a[i] = a[i] * first * second; /* one by one: a number may be as small as can be */
	return power;
}
