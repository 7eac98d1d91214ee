/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/ops/equation.h"

#include <string.h>

static int letter_of(char c)
{
	if (c >= 'a' && c <= 'z')
		return c - 'a';
	return c >= 'A' && c <= 'Z' ? 26 + c - 'A' : -1;
}

static int read_term(const char *s, size_t len, struct mu_term *t, struct mu_err *err)
{
	bool has_ellipsis = false;

	t->n = 0;
	for (size_t i = 0; i < len; i++) {
		int label = letter_of(s[i]);

		if (label < 0 && (i + 3 > len || memcmp(s + i, "...", 3) != 0 || has_ellipsis))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Invalid character or ellipsis in the equation at '%.40s'",
				       s + i);
		if (t->n > MU_MAX_RANK)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "the equation has more than %d axes for a tensor",
				       MU_MAX_RANK);
		if (label < 0) {
			has_ellipsis = true;
			label = MU_ELLIPSIS;
			i += 2;
		}
		t->label[t->n++] = (unsigned char)label;
	}
	return 0;
}

bool mu_term_has(const struct mu_term *t, unsigned char label)
{
	return t->n && memchr(t->label, label, (size_t)t->n);
}

static int check_result(const struct mu_equation *e, struct mu_err *err)
{
	for (int i = 0; i < e->out.n; i++) {
		bool is_input_label = false;

		for (unsigned k = 0; k < e->n_in; k++)
			is_input_label |= mu_term_has(&e->in[k], e->out.label[i]);
		if (!is_input_label && e->out.label[i] != MU_ELLIPSIS)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "a subscript of the result does not occur in an input");
	}
	return 0;
}

int mu_equation_read(struct mu_equation *e, const char *s, unsigned n_in, struct mu_err *err)
{
	const char *arrow = strstr(s, "->"), *comma;
	int rc;

	*e = (struct mu_equation){.n_in = n_in};
	if (n_in < 1 || n_in > 2)
		return mu_fail(err, MU_INVALID_ARGUMENT, "Expected 1 or 2 inputs but got: %u",
			       n_in);
	if (!arrow)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Expecting exactly one '->' in einsum equation: %.100s", s);
	comma = memchr(s, ',', (size_t)(arrow - s));
	if (!comma != (n_in == 1))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Expecting %u input subscripts in equation: %.100s", n_in, s);
	if ((rc = read_term(s, (size_t)((comma ? comma : arrow) - s), &e->in[0], err)) ||
	    (comma && (rc = read_term(comma + 1, (size_t)(arrow - comma - 1), &e->in[1], err))) ||
	    (rc = read_term(arrow + 2, strlen(arrow + 2), &e->out, err)))
		return rc;
	return check_result(e, err);
}
