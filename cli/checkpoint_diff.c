/* SPDX-License-Identifier: Apache-2.0 */
/* muster checkpoint diff: one line for each tensor that is only in the first (-) or second (+)
 * checkpoint, or that differs (~), and a summary line. */
#include <math.h>
#include <stdio.h>

#include "cli/checkpoint.h"
#include "cli/cli.h"
#include "lib/io/bundle.h"
#include "lib/tensor/tensor_proto.h"

struct counts {
	unsigned same, changed, only_a, only_b;
};

static bool same_number(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

/* Compares tensors without numbers by their serialized form. */
static bool same_bytes(const struct mu_tensor *a, const struct mu_tensor *b)
{
	MU_AUTO_BUF x = {0};
	MU_AUTO_BUF y = {0};

	mu_tensor_write(&x, a);
	mu_tensor_write(&y, b);
	return x.len == y.len && (!x.len || memcmp(x.data, y.data, x.len) == 0);
}

/* Compares two tensors of the same type and shape. True if they are equal, else prints the
 * difference. */
static bool same_values(const char *name, const struct mu_tensor *a, const struct mu_tensor *b)
{
	int64_t differ = 0, at = 0, n = a->shape.count;
	double most = -1;

	if (!checkpoint_has_numbers(a)) {
		if (same_bytes(a, b))
			return true;
		printf("~ %s %s %s\n", name, mu_dtype_name(a->dtype), mu_shape_str(&a->shape));
		return false;
	}
	for (int64_t i = 0; i < n; i++) {
		double x = checkpoint_value(a, i), y = checkpoint_value(b, i);
		double by = isnan(x) || isnan(y) ? INFINITY : fabs(x - y);

		if (same_number(x, y))
			continue;
		differ++;
		if (by > most) {
			most = by;
			at = i;
		}
	}
	if (differ)
		printf(
		    "~ %s %s %s: %lld of %lld values, largest difference at %lld: %.6g -> %.6g\n",
		    name, mu_dtype_name(a->dtype), mu_shape_str(&a->shape), (long long)differ,
		    (long long)n, (long long)at, checkpoint_value(a, at), checkpoint_value(b, at));
	return !differ;
}

static void print_entry(const char *sign, const struct mu_bundle_entry *e)
{
	printf("%s %s %s %s\n", sign, e->name, mu_dtype_name(e->dtype), mu_shape_str(&e->shape));
}

/* Compares a tensor that both checkpoints contain. */
static int compare_entry(struct mu_bundle_reader *a, struct mu_bundle_reader *b,
			 const struct mu_bundle_entry *x, const struct mu_bundle_entry *y,
			 struct counts *n, struct mu_err *err)
{
	MU_AUTO_TENSOR left = {0};
	MU_AUTO_TENSOR right = {0};
	bool same;
	int rc;

	if (x->dtype != y->dtype || !mu_shape_eq(&x->shape, &y->shape)) {
		print_entry("-", x);
		print_entry("+", y);
		n->changed++;
		return 0;
	}
	rc = mu_bundle_read(a, x->name, &left, err);
	if (!rc)
		rc = mu_bundle_read(b, y->name, &right, err);
	if (rc)
		return rc;
	same = same_values(x->name, &left, &right);
	n->same += same;
	n->changed += !same;
	return 0;
}

/* Merges the two entry lists, which are sorted by name. */
static int compare_entries(struct mu_bundle_reader *a, struct mu_bundle_reader *b, struct counts *n,
			   struct mu_err *err)
{
	unsigned i = 0, j = 0, n_a = mu_bundle_count(a), n_b = mu_bundle_count(b);
	int rc = 0;

	while (!rc && (i < n_a || j < n_b)) {
		const struct mu_bundle_entry *x = i < n_a ? mu_bundle_entry(a, i) : NULL;
		const struct mu_bundle_entry *y = j < n_b ? mu_bundle_entry(b, j) : NULL;
		int order = !x ? 1 : !y ? -1 : strcmp(x->name, y->name);

		if (order == 0)
			rc = compare_entry(a, b, x, y, n, err);
		else
			print_entry(order < 0 ? "-" : "+", order < 0 ? x : y);
		n->only_a += order < 0;
		n->only_b += order > 0;
		i += order <= 0;
		j += order >= 0;
	}
	return rc;
}

int checkpoint_diff(const char *a, const char *b)
{
	MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *left = NULL;
	MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *right = NULL;
	struct counts n = {0};
	struct mu_err err;

	if (mu_bundle_open(&left, a, &err) || mu_bundle_open(&right, b, &err) ||
	    compare_entries(left, right, &n, &err)) {
		cli_fail(&err);
		return CLI_USAGE; /* as diff(1) and cmp(1): 1 means that they differ */
	}
	printf("%u equal, %u changed, %u only in %s, %u only in %s\n", n.same, n.changed, n.only_a,
	       a, n.only_b, b);
	return n.changed || n.only_a || n.only_b ? CLI_FAILED : CLI_OK;
}
