/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#include "lib/io/crc32c.h"

static void crc32c__of_published_texts__is_the_published_value(void **state)
{
	unsigned char zeros[32] = {0}, ones[32];

	memset(ones, 0xff, sizeof ones);
	assert_int_equal(mu_crc32c(0, "", 0), 0);
	assert_int_equal(mu_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(mu_crc32c(0, zeros, 32), 0x8a9136aa); /* RFC 3720 B.4 */
	assert_int_equal(mu_crc32c(0, ones, 32), 0x62a8ab43);
}

static void crc32c__by_table_and_by_instruction__is_equal(void **state)
{
	enum { N = 20000 };
	unsigned char *p = malloc(N);

	for (int i = 0; i < N; i++)
		p[i] = (unsigned char)(i * 7 + (i >> 8) * 13);
	for (size_t at = 0; at < 9; at++)
		for (size_t n = 0; n < N - 9; n += n < 40 ? 1 : 977)
			assert_int_equal(mu_crc32c(1, p + at, n), mu_crc32c_table(1, p + at, n));
	free(p);
}

static void crc32c__extended_piece_by_piece__is_that_of_the_whole(void **state)
{
	const char text[] = "the quick brown fox jumps over the lazy dog";
	uint32_t crc = 0;

	for (size_t i = 0; i < sizeof text; i++)
		crc = mu_crc32c(crc, text + i, 1);
	assert_int_equal(crc, mu_crc32c(0, text, sizeof text));
}

static void crc32c__of_two_parts_combined__is_that_of_the_whole(void **state)
{
	enum { N = 5000 };
	unsigned char p[N];

	for (int i = 0; i < N; i++)
		p[i] = (unsigned char)(i * 11 + (i >> 8) * 29);
	for (size_t cut = 0; cut <= N; cut += cut < 20 || cut > N - 20 ? 1 : 613)
		assert_int_equal(
		    mu_crc32c_join(mu_crc32c(0, p, cut), mu_crc32c(0, p + cut, N - cut), N - cut),
		    mu_crc32c(0, p, N));
}

static void crc32c__masked_and_unmasked__is_the_same(void **state)
{
	for (uint32_t c = 1; c; c = c < 0x80000000u ? c * 3 + 1 : 0)
		assert_int_equal(mu_crc32c_unmask(mu_crc32c_mask(c)), c);
	assert_int_not_equal(mu_crc32c_mask(5), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(crc32c__of_published_texts__is_the_published_value),
	    cmocka_unit_test(crc32c__by_table_and_by_instruction__is_equal),
	    cmocka_unit_test(crc32c__extended_piece_by_piece__is_that_of_the_whole),
	    cmocka_unit_test(crc32c__of_two_parts_combined__is_that_of_the_whole),
	    cmocka_unit_test(crc32c__masked_and_unmasked__is_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
