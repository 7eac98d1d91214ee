/* SPDX-License-Identifier: Apache-2.0 */
/* The output of the summary and logging hooks, read from the event file and the log. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/pb.h"
#include "lib/io/event_writer.h"
#include "lib/io/png.h"
#include "lib/io/tfrecord.h"
#include "muster/train.h"
#include "tests/client/server.h"

static struct mu_err err;
static enum mu_log_level level = MU_WARN; /* log level of a run */
static char folder[64];

static int setup(void **state)
{
	strcpy(folder, "/tmp/muster-summary-XXXXXX");
	assert_non_null(mkdtemp(folder));
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static bool find_field(struct mu_span message, uint32_t number, struct mu_span *out)
{
	struct mu_pb m = mu_pb_of(message);
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f))
		if (f.number == number) {
			*out = f.bytes;
			return true;
		}
	return false;
}

/* Counts the values of a tag in the file. Each must have the field `number`; *last is the last such
 * field. */
static int count_values(const char *path, const char *tag, uint32_t number, struct mu_buf *last)
{
	MU_AUTO(mu_tfrecord_reader_free) struct mu_tfrecord_reader *r = NULL;
	struct mu_span record, summary, name;
	struct mu_pb_field f;
	int n = 0;

	assert_ok(mu_tfrecord_open(&r, path, &err), &err);
	while (mu_tfrecord_next(r, &record, &err) == 1) {
		if (!find_field(record, 5, &summary))
			continue;
		struct mu_pb m = mu_pb_of(summary);

		while (mu_pb_next(&m, &f)) {
			struct mu_span field = {0};

			if (!find_field(f.bytes, 1, &name) || name.len != strlen(tag) ||
			    memcmp(name.data, tag, name.len) != 0 ||
			    !find_field(f.bytes, number, &field))
				continue;
			n++;
			mu_buf_clear(last);
			if (field.data)
				mu_buf_put(last, field.data, field.len);
		}
	}
	return n;
}

struct program {
	struct mu_builder *b;
	struct mu_var *x;
	struct mu_out train, picture, loss;
};

static void build_graph(struct program *p)
{
	struct mu_init one = {.kind = MU_INIT_VALUE, .value = 1};
	struct mu_optimizer sgd;

	p->b = mu_builder_new();
	p->x = mu_variable(p->b, "x", MU_FLOAT, MU_SHAPE(2, 3, 1), one, true);
	p->loss = mu_sum(p->b, mu_square(p->b, mu_read(p->x)), NULL, 0);
	p->picture =
	    mu_cast(p->b, mu_mul(p->b, mu_read(p->x), mu_const_float(p->b, 200)), MU_UINT8);
	assert_ok(mu_optimizer_named("sgd", 0.25, &sgd, &err), &err);
	p->train = mu_minimize(p->b, &sgd, p->loss, mu_global_step(p->b));
	assert_ok(mu_builder_check(p->b, &err), &err);
}

static int run_steps(struct program *p, struct mu_hook **hooks, unsigned n)
{
	const char *target = test_server();
	struct mu_monitored *m;
	int rc = 0;

	mu_log_set_level(level);
	assert_ok(
	    mu_monitored_open(&m, p->b,
			      &(struct mu_monitored_options){.target = target,
							     .chief = true,
							     .train = p->train,
							     .hooks = hooks,
							     .n_hooks = n,
							     .session = {.isolate_state = true}},
			      &err),
	    &err);
	for (int i = 0; i < 4 && !rc; i++)
		rc = mu_monitored_train(m, &(struct mu_run){0}, NULL, &err);
	mu_monitored_close(m, rc != 0, NULL);
	return rc;
}

static void summaries__are_scalars_histograms_and_images(void **state)
{
	static const char *const tags[] = {"loss", "weights", "picture"};
	static const unsigned char grey[6] = {100, 100, 100, 100, 100, 100};
	struct mu_event_writer *events;
	MU_AUTO_BUF last = {0};
	MU_AUTO_BUF png = {0};
	struct mu_span encoded;
	struct program p;
	char path[256];

	build_graph(&p);
	assert_ok(mu_event_create(&events, folder, "", &err), &err);
	snprintf(path, sizeof(path), "%s", mu_event_path(events));
	struct mu_out outs[] = {p.loss, mu_read(p.x), p.picture};
	assert_ok(run_steps(&p,
			    (struct mu_hook *[]){mu_summary_hook(events, 2, tags, outs, 3),
						 mu_step_counter_hook(events, 4)},
			    2),
		  &err);
	assert_ok(mu_event_close(events, &err), &err);
	assert_int_equal(count_values(path, "loss", 2, &last), 2);
	assert_int_equal(count_values(path, "weights", 5, &last), 2);
	assert_int_equal(count_values(path, "global_step/sec", 2, &last), 3);
	assert_int_equal(count_values(path, "picture", 4, &last), 2);
	assert_true(find_field(mu_buf_span(&last), 4, &encoded));
	assert_true(encoded.len > 8);
	assert_memory_equal(encoded.data, "\x89PNG", 4);
	/* Compares the image of step 2 or 4 with our own encoding of the same bytes. */
	assert_ok(mu_png_write(&png, grey, &(struct mu_png_shape){2, 3, 1, 8, -1}, &err), &err);
	assert_int_equal(((unsigned char *)png.data)[19], 3); /* width */
	assert_memory_equal(encoded.data, png.data, 33);      /* the header: 2 x 3, grey */
	mu_builder_free(p.b);
}

static void string_summary__that_is_not_of_a_summary_op__fails(void **state)
{
	static const char *const tags[] = {"many"};
	struct mu_event_writer *events;
	struct program p;

	build_graph(&p);
	struct mu_out words = mu_const_strs(p.b, (const char *[]){"a", "b"}, 2);
	assert_ok(mu_event_create(&events, folder, "", &err), &err);
	assert_fails(
	    run_steps(&p, (struct mu_hook *[]){mu_summary_hook(events, 1, tags, &words, 1)}, 1),
	    &err, MU_INVALID_ARGUMENT, "summary 'many': string of [2]");
	assert_ok(mu_event_close(events, &err), &err);
	mu_builder_free(p.b);
}

/* The log is written to standard error. */
static void values__are_logged(void **state)
{
	static const char *const names[] = {"loss", "weights"};
	char path[128], output[4096] = "";
	int before = dup(STDERR_FILENO);
	struct program p;
	FILE *f;

	snprintf(path, sizeof(path), "%s/log", folder);
	build_graph(&p);
	struct mu_out outs[] = {p.loss, mu_read(p.x)};
	assert_non_null(freopen(path, "w", stderr));
	level = MU_INFO;
	int rc = run_steps(&p, (struct mu_hook *[]){mu_logging_hook(names, outs, 2, 3)}, 1);
	level = MU_WARN;
	mu_log_set_level(level);
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	assert_int_equal(rc, 0);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(output, 1, sizeof(output) - 1, f) > 0);
	fclose(f);
	assert_non_null(strstr(output, "step 3: loss = "));
	assert_non_null(strstr(output, "step 3: weights = ["));
	mu_builder_free(p.b);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(summaries__are_scalars_histograms_and_images),
	    T(string_summary__that_is_not_of_a_summary_op__fails),
	    T(values__are_logged),
	};

	return cmocka_run_group_tests(tests, NULL, test_server_stop);
}
