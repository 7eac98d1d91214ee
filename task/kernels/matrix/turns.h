/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of two rows, kept until there are many and then made on some columns after the other, which
 * meanwhile stay in the nearest cache.  For body.h. */

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

/* Four turns, each of the row that the one before it left and the next: what goes on from turn to
 * turn need not be stored. */
static void turn_four(int64_t n, T *restrict a, T *restrict b, T *restrict c, T *restrict d,
		      T *restrict e, const struct turn *k)
{
	const double c0 = k[0].c, c1 = k[1].c, c2 = k[2].c, c3 = k[3].c;
	const double s0 = k[0].s, s1 = k[1].s, s2 = k[2].s, s3 = k[3].s;

	for (int64_t i = 0; i < n; i++) {
		T x = c0 * b[i] - s0 * a[i], y = c1 * c[i] - s1 * x, z = c2 * d[i] - s2 * y;

		a[i] = c0 * a[i] + s0 * b[i];
		b[i] = c1 * x + s1 * c[i];
		c[i] = c2 * y + s2 * d[i];
		d[i] = c3 * z + s3 * e[i];
		e[i] = c3 * e[i] - s3 * z;
	}
}

/* Whether the four from k on are such, and of five rows. */
static bool turns_follow(const struct turn *k)
{
	int64_t step = k->y - k->x;

	return (step == 1 || step == -1) && k[1].x == k[0].y && k[2].x == k[1].y &&
	       k[3].x == k[2].y && k[1].y - k[1].x == step && k[2].y - k[2].x == step &&
	       k[3].y - k[3].x == step;
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
		int64_t left = t->columns - at, n = left < TURN_COLUMNS ? left : TURN_COLUMNS;

		for (int64_t i = 0; i < t->n;) {
			const struct turn *k = &t->kept[i];
			int64_t next = (k->y - k->x) * t->columns;
			T *x = t->v + k->x * t->columns + at, *y = x + next;

			if (t->n - i >= 4 && turns_follow(k)) {
				turn_four(n, x, y, y + next, y + 2 * next, y + 3 * next, k);
				i += 4;
			} else {
				turn_rows(n, x, y, k->c, k->s);
				i++;
			}
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
