/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on the HTTP/2 frames of a client, at their boundaries, for any split into reads. */
#include "tests/test.h"

#include <string.h>

#include "lib/base/buf.h"
#include "task/rpc/frame_guard.h"

enum { DATA, HEADERS, SETTINGS = 4, CONTINUATION = 9 };
enum { ACK = 1, END_HEADERS = 4 };
enum { HEAD = 9, MAX_BLOCK = 64 << 10, MAX_BEFORE_ACK = 256 << 10 };
static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

static void frame(struct mu_buf *b, char type, char flags, size_t len)
{
	char head[HEAD] = {(char)(len >> 16), (char)(len >> 8), (char)len, type, flags};

	mu_buf_put(b, head, HEAD);
	while (len-- > 0)
		mu_buf_putc(b, 0);
}

static void begin(struct mu_buf *b)
{
	mu_buf_puts(b, preface);
	frame(b, SETTINGS, 0, 0);
}

/* Passes the bytes in reads of `read` bytes; returns the violated limit or NULL. */
static const char *follow(const struct mu_buf *b, size_t read)
{
	struct frame_guard g = {0};
	const char *bad = NULL;

	for (size_t at = 0; at < b->len && !bad; at += read)
		bad = frame_guard_follow(&g, (const unsigned char *)b->data + at,
					 b->len - at < read ? b->len - at : read);
	return bad;
}

static void assert_limit(const struct mu_buf *b, const char *limit)
{
	static const size_t reads[] = {1, 8, 9, 10, 4096, 1 << 30};

	for (unsigned i = 0; i < MU_COUNT(reads); i++) {
		const char *bad = follow(b, reads[i]);

		assert_int_equal(bad != NULL, limit != NULL);
		assert_true(!limit || strstr(bad, limit));
	}
}

static void header_block__of_64_kib__is_accepted(void **state)
{
	MU_AUTO_BUF b = {0};

	begin(&b);
	for (int i = 0; i < 2; i++) {
		frame(&b, HEADERS, 0, 1000);
		frame(&b, CONTINUATION, END_HEADERS, MAX_BLOCK - 1000 - 2 * HEAD);
		frame(&b, DATA, 0, 30000);
	}
	assert_limit(&b, NULL);
}

static void header_block__one_byte_over_the_limit__closes_the_connection(void **state)
{
	MU_AUTO_BUF b = {0};

	begin(&b);
	frame(&b, HEADERS, 0, 1000);
	frame(&b, CONTINUATION, END_HEADERS, MAX_BLOCK - 1000 - 2 * HEAD + 1);
	assert_limit(&b, "64 KiB");
}

static void empty_continuations__count_towards_the_limit(void **state)
{
	MU_AUTO_BUF b = {0};

	begin(&b);
	frame(&b, HEADERS, 0, 0);
	for (int i = 0; i < MAX_BLOCK / HEAD; i++)
		frame(&b, CONTINUATION, 0, 0);
	assert_limit(&b, "64 KiB");
}

static void client__that_acknowledges_settings__may_send_any_amount(void **state)
{
	MU_AUTO_BUF b = {0};

	begin(&b);
	frame(&b, SETTINGS, ACK, 0);
	for (int i = 0; i < 2; i++)
		frame(&b, DATA, 0, MAX_BEFORE_ACK);
	assert_limit(&b, NULL);
}

static void client__that_does_not_acknowledge_settings__is_limited(void **state)
{
	MU_AUTO_BUF b = {0};

	begin(&b);
	frame(&b, DATA, 0, MAX_BEFORE_ACK - b.len - HEAD);
	assert_limit(&b, NULL);
	mu_buf_putc(&b, 0);
	assert_limit(&b, "SETTINGS");
}

static void tls_bytes__are_not_parsed(void **state)
{
	MU_AUTO_BUF b = {0};

	mu_buf_putc(&b, 22);
	for (int i = 0; i < 2 * MAX_BEFORE_ACK; i++)
		mu_buf_putc(&b, CONTINUATION);
	assert_limit(&b, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(header_block__of_64_kib__is_accepted),
	    cmocka_unit_test(header_block__one_byte_over_the_limit__closes_the_connection),
	    cmocka_unit_test(empty_continuations__count_towards_the_limit),
	    cmocka_unit_test(client__that_acknowledges_settings__may_send_any_amount),
	    cmocka_unit_test(client__that_does_not_acknowledge_settings__is_limited),
	    cmocka_unit_test(tls_bytes__are_not_parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
