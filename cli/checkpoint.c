/* SPDX-License-Identifier: Apache-2.0 */
/* muster checkpoint: lists checkpoints of a folder, shows tensors and their values, and compares
 * two checkpoints. */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "cli/cli.h"
#include "lib/checkpoint/bundle.h"
#include "lib/checkpoint/checkpoint_state.h"
#include "lib/tensor/tensor_proto.h"

enum { SHOW_VALUES = 8 };

static int list_checkpoints(const char *folder)
{
	struct mu_checkpoint_state s = {0};
	struct mu_err err;
	int rc = mu_checkpoint_state_read(&s, folder, &err);

	if (rc == -(int)MU_NOT_FOUND)
		mu_fail(&err, MU_NOT_FOUND, "no checkpoint in '%s': it has no file 'checkpoint'",
			folder);
	if (rc)
		return cli_fail(&err);
	for (unsigned i = 0; i < s.n; i++) {
		time_t when = (time_t)s.times[i];
		struct tm tm;
		char text[32] = "";

		if (localtime_r(&when, &tm))
			strftime(text, sizeof(text), "%F %T", &tm);
		printf("%s  %s%s%s\n", text, s.all[i],
		       s.latest && strcmp(s.latest, s.all[i]) == 0 ? "  (latest)" : "",
		       mu_bundle_exists(s.all[i]) ? "" : "  (files are missing)");
	}
	mu_checkpoint_state_fini(&s);
	return CLI_OK;
}

static double checkpoint_value(const struct mu_tensor *t, int64_t i)
{
	switch (t->dtype) {
	case MU_FLOAT:
		return (double)MU_DATA(float, t)[i];
	case MU_DOUBLE:
		return MU_DATA(double, t)[i];
	case MU_INT32:
	case MU_INT64:
		return (double)mu_tensor_int(t, i);
	default:
		return NAN;
	}
}

static bool checkpoint_has_numbers(const struct mu_tensor *t)
{
	return t->dtype == MU_FLOAT || t->dtype == MU_DOUBLE || t->dtype == MU_INT32 ||
	       t->dtype == MU_INT64;
}

static void print_values(const struct mu_tensor *t)
{
	double least = INFINITY, greatest = -INFINITY, sum = 0;
	int64_t n = t->shape.count;

	if (!checkpoint_has_numbers(t))
		return;
	for (int64_t i = 0; i < n; i++) {
		double v = checkpoint_value(t, i);

		least = v < least ? v : least;
		greatest = v > greatest ? v : greatest;
		sum += v;
	}
	for (int64_t i = 0; i < n && i < SHOW_VALUES; i++)
		printf(" %.6g", checkpoint_value(t, i));
	printf("%s\n", n > SHOW_VALUES ? " …" : "");
	if (n > 1)
		printf("min %.6g, mean %.6g, max %.6g\n", least, sum / (double)n, greatest);
}

static int show_tensors(const char *prefix, const char *tensor)
{
	MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *r = NULL;
	MU_AUTO_TENSOR t = {0};
	struct mu_err err;

	if (mu_bundle_open(&r, prefix, &err))
		return cli_fail(&err);
	if (tensor) {
		if (mu_bundle_read(r, tensor, &t, &err))
			return cli_fail(&err);
		printf("%s %s %s\n", tensor, mu_dtype_name(t.dtype), mu_shape_str(&t.shape));
		print_values(&t);
		return CLI_OK;
	}
	for (unsigned i = 0; i < mu_bundle_count(r); i++) {
		const struct mu_bundle_entry *e = mu_bundle_entry(r, i);

		printf("%-40s %-8s %-16s %12llu bytes\n", e->name, mu_dtype_name(e->dtype),
		       mu_shape_str(&e->shape), (unsigned long long)e->size);
	}
	return CLI_OK;
}

/* ---- diff: a line for each tensor that is only in the first (-) or second (+) checkpoint, or that
 * differs (~), and a summary line ---- */

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
static bool compare_values(const char *name, const struct mu_tensor *a, const struct mu_tensor *b)
{
	int64_t differ = 0, at = 0, n = a->shape.count;
	double largest = -1;

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
		if (by > largest) {
			largest = by;
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
	same = compare_values(x->name, &left, &right);
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

static int checkpoint_diff(const char *a, const char *b)
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

/* ---- arguments ---- */

/* Prefix of a checkpoint, from the prefix itself, one of its files, or a folder (its latest
 * checkpoint). Returns a new string. */
static char *prefix_of(const char *arg)
{
	const char *slash = strrchr(arg, '/'), *name = slash ? slash + 1 : arg;
	const char *index = strstr(name, ".index"), *data = strstr(name, ".data-");
	char *latest = NULL;

	if (index && !index[6])
		return mu_xstrndup(arg, (size_t)(index - arg));
	if (data)
		return mu_xstrndup(arg, (size_t)(data - arg));
	if (!mu_bundle_exists(arg) && mu_checkpoint_latest(&latest, arg, NULL) == 0 && latest)
		return latest;
	return mu_xstrdup(arg);
}

int cli_checkpoint(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[0], "ls") == 0)
		return list_checkpoints(argv[1]);
	if ((argc == 2 || argc == 3) && strcmp(argv[0], "show") == 0) {
		MU_AUTO_FREE char *prefix = prefix_of(argv[1]);

		return show_tensors(prefix, argc == 3 ? argv[2] : NULL);
	}
	if (argc == 3 && strcmp(argv[0], "diff") == 0) {
		MU_AUTO_FREE char *a = prefix_of(argv[1]);
		MU_AUTO_FREE char *b = prefix_of(argv[2]);

		return checkpoint_diff(a, b);
	}
	return cli_usage("checkpoint",
			 "expected 'ls DIR', 'show PREFIX [TENSOR]' or 'diff PREFIX PREFIX'");
}
