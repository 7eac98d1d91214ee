/* SPDX-License-Identifier: Apache-2.0 */
/* muster checkpoint: lists checkpoints of a folder, shows tensors and their values, and compares
 * two checkpoints. */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "cli/cli.h"
#include "lib/checkpoint/bundle.h"
#include "lib/checkpoint/checkpoint_state.h"
#include "lib/tensor/number.h"
#include "lib/tensor/tensor_proto.h"

enum { MAX_SHOWN_VALUES = 8 };

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

		/* checkpoint files of TensorFlow have no timestamps */
		if (when && localtime_r(&when, &tm))
			strftime(text, sizeof(text), "%F %T", &tm);
		printf("%-19s  %s%s%s\n", text, s.paths[i],
		       s.latest && strcmp(s.latest, s.paths[i]) == 0 ? "  (latest)" : "",
		       mu_bundle_exists(s.paths[i]) ? "" : "  (files are missing)");
	}
	mu_checkpoint_state_fini(&s);
	return CLI_OK;
}

static void print_number(const char *prefix, const struct mu_tensor *t, int64_t i)
{
	MU_AUTO_BUF text = {0};

	mu_tensor_put_number(&text, t, i);
	printf("%s%s", prefix, text.data);
}

static void print_values(const struct mu_tensor *t)
{
	int64_t n = t->shape.count, min_index = 0, max_index = 0;
	double sum = 0;

	if (!mu_dtype_is_number(t->dtype))
		return;
	for (int64_t i = 0; i < n; i++) {
		double v = mu_tensor_number(t, i);

		min_index = v < mu_tensor_number(t, min_index) ? i : min_index;
		max_index = v > mu_tensor_number(t, max_index) ? i : max_index;
		sum += v;
	}
	for (int64_t i = 0; i < n && i < MAX_SHOWN_VALUES; i++)
		print_number(" ", t, i);
	printf("%s\n", n > MAX_SHOWN_VALUES ? " …" : "");
	if (n > 1) {
		print_number("min ", t, min_index);
		printf(", mean %.6g", sum / (double)n);
		print_number(", max ", t, max_index);
		printf("\n");
	}
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

/* Doubles cannot represent large 64-bit integers exactly. */
static bool same_number(const struct mu_tensor *a, const struct mu_tensor *b, int64_t i)
{
	double x = mu_tensor_number(a, i), y = mu_tensor_number(b, i);

	if (a->dtype == MU_INT64 || a->dtype == MU_UINT64)
		return MU_DATA(int64_t, a)[i] == MU_DATA(int64_t, b)[i];
	return x == y || (isnan(x) && isnan(y));
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
	int64_t n_different = 0, largest_at = 0, n = a->shape.count;
	double largest = -1;

	if (!mu_dtype_is_number(a->dtype)) {
		if (same_bytes(a, b))
			return true;
		printf("~ %s %s %s\n", name, mu_dtype_name(a->dtype), mu_shape_str(&a->shape));
		return false;
	}
	for (int64_t i = 0; i < n; i++) {
		double x = mu_tensor_number(a, i), y = mu_tensor_number(b, i);
		double difference = isnan(x) || isnan(y) ? INFINITY : fabs(x - y);

		if (same_number(a, b, i))
			continue;
		n_different++;
		if (difference > largest) {
			largest = difference;
			largest_at = i;
		}
	}
	if (n_different) {
		printf("~ %s %s %s: %lld of %lld values, largest difference at %lld:", name,
		       mu_dtype_name(a->dtype), mu_shape_str(&a->shape), (long long)n_different,
		       (long long)n, (long long)largest_at);
		print_number(" ", a, largest_at);
		print_number(" -> ", b, largest_at);
		printf("\n");
	}
	return !n_different;
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
