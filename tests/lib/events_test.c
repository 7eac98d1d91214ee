/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <string.h>
#include <unistd.h>

#include "lib/checkpoint/checkpoint_state.h"
#include "lib/io/event_reader.h"
#include "lib/io/event_writer.h"
#include "lib/io/tfrecord.h"

static char folder[] = "/tmp/events_testXXXXXX";
static struct mu_err err;

static void events__written__read_back_in_order(void **state)
{
	MU_AUTO(mu_tfrecord_reader_free) struct mu_tfrecord_reader *r = NULL;
	struct mu_event_writer *w;
	struct mu_summary_value v;
	struct mu_span record;
	struct mu_event e;
	size_t at = 0;

	assert_ok(mu_event_create(&w, folder, ".t", &err), &err);
	assert_ok(mu_event_graph(w, 0, MU_SPAN("g"), &err), &err);
	assert_ok(mu_event_session_log(w, 0, MU_SESSION_CHECKPOINT, "/c", &err), &err);
	assert_ok(mu_event_scalar(w, 7, "loss", 0.25f, &err), &err);
	assert_ok(mu_event_flush(w, &err), &err);
	assert_ok(mu_tfrecord_open(&r, mu_event_path(w), &err), &err);
	unlink(mu_event_path(w));
	const enum mu_event_kind kinds[] = {MU_EVENT_VERSION, MU_EVENT_GRAPH, MU_EVENT_SESSION_LOG,
					    MU_EVENT_SUMMARY};
	for (int i = 0; i < 4; i++) {
		assert_int_equal(mu_tfrecord_next(r, &record, &err), 1);
		assert_ok(mu_event_parse(&e, record, &err), &err);
		assert_int_equal(e.kind, kinds[i]);
		assert_true(e.wall_time > 1e9);
	}
	assert_int_equal(e.step, 7);
	assert_int_equal(mu_summary_next(e.body, &at, &v, &err), 1);
	assert_true(mu_span_is(v.tag, "loss") && v.is_scalar && v.scalar == 0.25f);
	assert_int_equal(mu_summary_next(e.body, &at, &v, &err), 0);
	assert_ok(mu_event_close(w, &err), &err);
}

static void state_file__written__reads_back_with_full_paths(void **state)
{
	struct mu_checkpoint_state s = {0}, read;
	MU_AUTO_FREE char *inside = mu_xasprintf("%s/model-1", folder);
	MU_AUTO_FREE char *path = mu_xasprintf("%s/checkpoint", folder);
	MU_AUTO_BUF text = {0};

	mu_checkpoint_state_add(&s, inside, 10.5, 0, NULL, NULL);
	mu_checkpoint_state_add(&s, "/else/\"q\\\xc3\xa9-2", 11, 0, NULL, NULL);
	assert_ok(mu_checkpoint_state_write(&s, folder, &err), &err);
	assert_ok(mu_buf_read_file(&text, path, 1 << 20, &err), &err);
	assert_non_null(strstr(text.data, "all_model_checkpoint_paths: \"model-1\"\n"));
	assert_ok(mu_checkpoint_state_read(&read, folder, &err), &err);
	assert_int_equal(read.n, 2);
	assert_string_equal(read.paths[0], inside);
	assert_string_equal(read.latest, "/else/\"q\\\xc3\xa9-2");
	assert_true(read.times[0] == 10.5 && read.times[1] == 11);
	mu_checkpoint_state_fini(&s);
	mu_checkpoint_state_fini(&read);
	unlink(path);
}

static void state_file__over_its_maximum__returns_the_oldest(void **state)
{
	struct mu_checkpoint_state s = {0};
	char **dropped;
	unsigned n;

	mu_checkpoint_state_add(&s, "a", 1, 2, &dropped, &n);
	assert_int_equal(n, 0);
	mu_checkpoint_state_add(&s, "b", 2, 2, NULL, NULL);
	mu_checkpoint_state_add(&s, "a", 3, 2, NULL, NULL); /* again: now the newest */
	mu_checkpoint_state_add(&s, "c", 4, 2, &dropped, &n);
	assert_int_equal(n, 1);
	assert_string_equal(dropped[0], "b");
	assert_string_equal(s.latest, "c");
	free(dropped[0]);
	free(dropped);
	mu_checkpoint_state_fini(&s);
}

static void state_file__missing_or_malformed__is_an_error(void **state)
{
	MU_AUTO_FREE char *path = mu_xasprintf("%s/checkpoint", folder);
	static const char *const wrong[] = {"model_checkpoint_path \"x\"", "a: \"x", "\x80",
					    "a:", "a: \"\\0\""};
	struct mu_checkpoint_state s;
	char *latest = path;

	assert_fails(mu_checkpoint_state_read(&s, folder, &err), &err, MU_NOT_FOUND, path);
	assert_ok(mu_checkpoint_latest(&latest, folder, &err), &err);
	assert_null(latest);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_ok(mu_write_file(path, wrong[i], strlen(wrong[i]), &err), &err);
		assert_fails(mu_checkpoint_state_read(&s, folder, &err), &err, MU_DATA_LOSS,
			     ":1: not a checkpoint state");
	}
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(events__written__read_back_in_order),
	    cmocka_unit_test(state_file__written__reads_back_with_full_paths),
	    cmocka_unit_test(state_file__over_its_maximum__returns_the_oldest),
	    cmocka_unit_test(state_file__missing_or_malformed__is_an_error),
	};

	if (!mkdtemp(folder))
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
