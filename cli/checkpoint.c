/* SPDX-License-Identifier: Apache-2.0 */
/* muster checkpoint: lists checkpoints of a folder, shows tensors and their values, and compares
 * two checkpoints. */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "cli/checkpoint.h"
#include "cli/cli.h"
#include "lib/io/bundle.h"
#include "lib/io/checkpoint_state.h"

enum { SHOW_VALUES = 8 };

static int list_checkpoints(const char *folder)
{
	struct mu_checkpoint_state s = {0};
	struct mu_err err;

	if (mu_checkpoint_state_read(&s, folder, &err))
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

double checkpoint_value(const struct mu_tensor *t, int64_t i)
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

bool checkpoint_has_numbers(const struct mu_tensor *t)
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

/* Prefix of a checkpoint, from the prefix itself, one of its files, or a folder (its latest
 * checkpoint). Returns a new string. */
static char *prefix_of(const char *arg)
{
	const char *index = strstr(arg, ".index"), *data = strstr(arg, ".data-");
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
