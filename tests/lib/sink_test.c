/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/checkpoint/sink.h"
#include "lib/io/crc32c.h"

enum { MIB = 1 << 20 };

static struct mu_err err;

static char *noise(size_t n)
{
	char *p = malloc(n + 1);
	uint32_t x = 1;

	for (size_t i = 0; i < n; i++) {
		x = x * 1664525 + 1013904223;
		p[i] = (char)(x >> 24);
	}
	return p;
}

static void expect_file(const char *path, const char *want, size_t n)
{
	MU_AUTO_FREE char *got = malloc(n + 1);
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	assert_int_equal(fread(got, 1, n + 1, f), n);
	fclose(f);
	assert_memory_equal(got, want, n);
}

static void sink__of_any_length__has_the_bytes_and_their_checksum(void **state)
{
	static const size_t lengths[] = {0,           1,        4096,     4 * MIB - 1, 4 * MIB,
					 4 * MIB + 1, 12 * MIB, 16 * MIB, 21 * MIB + 7};
	char path[] = "/tmp/sink_testXXXXXX";

	close(mkstemp(path));
	for (size_t i = 0; i < MU_COUNT(lengths); i++) {
		MU_AUTO(mu_sink_free) struct mu_sink *s = NULL;
		MU_AUTO_FREE char *data = noise(lengths[i]);
		uint32_t crc = 0;
		size_t done = 0;
		assert_ok(mu_sink_open(&s, path, &err), &err);
		for (size_t k = 1; done < lengths[i]; k = 7 * k % (3 * MIB) + 1) {
			size_t n = lengths[i] - done < k ? lengths[i] - done : k;
			assert_ok(mu_sink_put(s, data + done, n, &crc, &err), &err);
			done += n;
		}
		assert_int_equal(mu_sink_length(s), lengths[i]);
		assert_ok(mu_sink_sync(s, &err), &err);
		expect_file(path, data, lengths[i]);
		assert_int_equal(crc, mu_crc32c_table(0, data, lengths[i]));
	}
	unlink(path);
}

static void sink__on_a_full_disk__fails_and_ends(void **state)
{
	static const size_t lengths[] = {1, 9 * MIB, 40 * MIB};

	for (size_t i = 0; i < MU_COUNT(lengths); i++) {
		MU_AUTO(mu_sink_free) struct mu_sink *s = NULL;
		MU_AUTO_FREE char *data = noise(lengths[i]);
		uint32_t crc = 0;
		assert_ok(mu_sink_open(&s, "/dev/full", &err), &err);
		int rc = mu_sink_put(s, data, lengths[i], &crc, &err);
		if (!rc)
			rc = mu_sink_sync(s, &err);
		assert_int_equal(rc, -MU_RESOURCE_EXHAUSTED);
		assert_non_null(strstr(err.msg, "/dev/full"));
	}
}

static void sink__freed_while_it_writes__ends(void **state)
{
	MU_AUTO(mu_sink_free) struct mu_sink *s = NULL;
	MU_AUTO_FREE char *data = noise(12 * MIB);
	char path[] = "/tmp/sink_testXXXXXX";
	uint32_t crc = 0;

	close(mkstemp(path));
	assert_ok(mu_sink_open(&s, path, &err), &err);
	assert_ok(mu_sink_put(s, data, 12 * MIB, &crc, &err), &err);
	mu_sink_free(mu_steal(&s));
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sink__of_any_length__has_the_bytes_and_their_checksum),
	    cmocka_unit_test(sink__on_a_full_disk__fails_and_ends),
	    cmocka_unit_test(sink__freed_while_it_writes__ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
