/* SPDX-License-Identifier: Apache-2.0 */
/* muster events: shows the scalars of TensorBoard event files as curves in the terminal. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "lib/base/map.h"
#include "lib/io/event_reader.h"
#include "lib/io/tfrecord.h"

enum { WIDTH = 48, MAX_POINTS = 10 << 20 };

struct series {
	char *tag;
	int64_t *steps;
	float *values;
	size_t n, cap;
};
struct event_accumulator {
	struct mu_map by_tag;
	struct series **list;
	size_t n, points;
};

static struct series *find_or_add_series(struct event_accumulator *b, struct mu_span tag)
{
	struct series *s = mu_map_get_n(&b->by_tag, tag.data, tag.len);

	if (s)
		return s;
	s = MU_NEW(struct series);
	s->tag = mu_xstrndup(tag.data, tag.len);
	mu_map_put_n(&b->by_tag, tag.data, tag.len, s);
	b->list = mu_xrealloc(b->list, (b->n + 1) * sizeof(struct series *));
	return b->list[b->n++] = s;
}

static void add_point(struct series *s, int64_t step, float value)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 64;
		s->steps = mu_xrealloc(s->steps, s->cap * sizeof(*s->steps));
		s->values = mu_xrealloc(s->values, s->cap * sizeof(*s->values));
	}
	s->steps[s->n] = step;
	s->values[s->n++] = value;
}

static void accumulator_fini(struct event_accumulator *b)
{
	for (size_t i = 0; i < b->n; i++) {
		free(b->list[i]->tag);
		free(b->list[i]->steps);
		free(b->list[i]->values);
		free(b->list[i]);
	}
	free(b->list);
	mu_map_fini(&b->by_tag);
}

static int read_summary(struct event_accumulator *b, const struct mu_event *e, struct mu_err *err)
{
	struct mu_summary_value v;
	size_t at = 0;
	int rc;

	while ((rc = mu_summary_next(e->body, &at, &v, err)) > 0)
		if (v.is_scalar && b->points++ < MAX_POINTS)
			add_point(find_or_add_series(b, v.tag), e->step, v.scalar);
	return rc;
}

static int read_file(struct event_accumulator *b, const char *path, struct mu_err *err)
{
	MU_AUTO(mu_tfrecord_reader_free) struct mu_tfrecord_reader *r = NULL;
	struct mu_span record;
	struct mu_event e;
	int rc = mu_tfrecord_open(&r, path, err), next_rc;

	if (rc)
		return rc;
	while ((next_rc = mu_tfrecord_next(r, &record, err)) > 0) {
		rc = mu_event_parse(&e, record, err);
		if (!rc && e.kind == MU_EVENT_SUMMARY)
			rc = read_summary(b, &e, err);
		if (rc)
			return mu_wrap(err, "%s", path);
	}
	/* A running trainer may not have written the last record completely. */
	return next_rc == -(int)MU_OUT_OF_RANGE ? 0 : next_rc;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_events(const struct dirent *d)
{
	return strstr(d->d_name, "tfevents") != NULL;
}

static int read_folder(struct event_accumulator *b, const char *folder, struct mu_err *err)
{
	struct dirent **names;
	int n = scandir(folder, &names, is_events, by_name), rc = 0;

	if (n < 0)
		return mu_fail(err, MU_NOT_FOUND, "cannot read folder '%s'", folder);
	if (!n)
		rc = mu_fail(err, MU_NOT_FOUND, "no event file (events.out.tfevents.*) in '%s'",
			     folder);
	for (int i = 0; i < n; i++) {
		MU_AUTO_FREE char *path = mu_xasprintf("%s/%s", folder, names[i]->d_name);

		if (!rc)
			rc = read_file(b, path, err);
		free(names[i]);
	}
	free(names);
	return rc;
}

/* One character for each of WIDTH columns: the mean of the points of the column. */
static void draw_curve(const struct series *s, float min, float max)
{
	static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	size_t columns = s->n < WIDTH ? s->n : WIDTH;

	for (size_t c = 0; c < columns; c++) {
		size_t from = c * s->n / columns, to = (c + 1) * s->n / columns;
		double sum = 0, level = 0; /* of 8 bars */

		for (size_t i = from; i < to; i++)
			sum += (double)s->values[i];
		if (max > min)
			level =
			    (sum / (double)(to - from) - (double)min) / (double)(max - min) * 7.999;
		fputs(bars[level > 0 ? (int)fmin(level, 7) : 0], stdout);
	}
}

static void print_all_series(const struct event_accumulator *b)
{
	for (size_t k = 0; k < b->n; k++) {
		const struct series *s = b->list[k];
		float min = INFINITY, max = -INFINITY;

		for (size_t i = 0; i < s->n; i++) {
			min = s->values[i] < min ? s->values[i] : min;
			max = s->values[i] > max ? s->values[i] : max;
		}
		printf("%s: %zu points, step %lld to %lld\n  ", s->tag, s->n,
		       (long long)s->steps[0], (long long)s->steps[s->n - 1]);
		draw_curve(s, min, max);
		printf("\n  first %.6g, last %.6g, min %.6g, max %.6g\n", (double)s->values[0],
		       (double)s->values[s->n - 1], (double)min, (double)max);
	}
	if (!b->n)
		printf("no scalars\n");
}

int cli_events(int argc, char **argv)
{
	struct event_accumulator b = {.n = 0};
	struct stat st;
	struct mu_err err;
	int rc;

	if (argc != 1)
		return cli_usage("events", "expected an event file or a folder of event files");
	mu_map_init(&b.by_tag);
	rc = stat(argv[0], &st) == 0 && S_ISDIR(st.st_mode) ? read_folder(&b, argv[0], &err)
							    : read_file(&b, argv[0], &err);
	if (!rc)
		print_all_series(&b);
	accumulator_fini(&b);
	return rc ? cli_fail(&err) : CLI_OK;
}
