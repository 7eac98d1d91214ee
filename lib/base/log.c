/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"

enum { RATELIMIT_MS = 10000 };

static const char *const level_names[] = {"debug", "info", "warn", "error"};
static const char *program_name = "muster";
/* Before mu_log_init, as in programs that use the library, only warnings and errors are logged. */
static _Atomic int threshold = MU_WARN;
static bool as_json;

void mu_log_set_level(enum mu_log_level level)
{
	atomic_store_explicit(&threshold, (int)level, memory_order_relaxed);
}

int mu_log_enabled(enum mu_log_level level)
{
	return (int)level >= atomic_load_explicit(&threshold, memory_order_relaxed);
}

void mu_log_init(const char *program)
{
	const char *level = getenv("MUSTER_LOG");
	const char *format = getenv("MUSTER_LOG_FORMAT");

	mu_log_set_level(MU_INFO);
	program_name = program;
	for (int i = 0; level && i < (int)MU_COUNT(level_names); i++)
		if (strcmp(level, level_names[i]) == 0)
			mu_log_set_level((enum mu_log_level)i);
	as_json = format && strcmp(format, "json") == 0;
}

static void put_json_string(struct mu_buf *b, const char *s)
{
	mu_buf_putc(b, '"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\')
			mu_buf_printf(b, "\\%c", c);
		else if (c == '\n')
			mu_buf_puts(b, "\\n");
		else if (c < 0x20)
			mu_buf_printf(b, "\\u%04x", c);
		else
			mu_buf_putc(b, (char)c);
	}
	mu_buf_putc(b, '"');
}

void mu_log(enum mu_log_level level, const char *component, const char *fmt, ...)
{
	struct timespec now;
	struct tm tm;
	va_list ap;

	if (!mu_log_enabled(level))
		return;
	MU_AUTO_BUF text = {0};
	MU_AUTO_BUF line = {0};
	va_start(ap, fmt);
	mu_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	mu_buf_put(&text, "", 0);

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	char timestamp[40];
	size_t n = strftime(timestamp, sizeof timestamp, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(timestamp + n, sizeof timestamp - n, ".%03ldZ", now.tv_nsec / 1000000);
	if (as_json) {
		mu_buf_printf(&line, "{\"ts\":\"%s\",\"level\":\"%s\",\"program\":\"%s\",",
			      timestamp, level_names[level], program_name);
		mu_buf_printf(&line, "\"component\":\"%s\",\"msg\":", component);
		put_json_string(&line, text.data);
		mu_buf_puts(&line, "}\n");
	} else {
		mu_buf_printf(&line, "%s %-5s %s: %s: %s\n", timestamp + 11, level_names[level],
			      program_name, component, text.data);
	}
	/* One write, so that the lines of two threads do not interleave. */
	if (write(STDERR_FILENO, line.data, line.len) < 0)
		return;
}

bool mu_log_line_is_info(const char *line, size_t n)
{
	static const struct {
		const char *begin;
		size_t offset;
		const char *level; /* after the time, which has a fixed length */
	} formats[] = {{"", sizeof("12:34:56.789") - 1, "Z info  "},
		       {"{\"ts\":\"", sizeof("{\"ts\":\"2026-01-31T12:34:56.789") - 1,
			"Z\",\"level\":\"info\","}};

	for (size_t i = 0; i < MU_COUNT(formats); i++) {
		const char *begin = formats[i].begin, *level = formats[i].level;
		size_t offset = formats[i].offset;

		if (n >= offset + strlen(level) && memcmp(line, begin, strlen(begin)) == 0 &&
		    memcmp(line + offset, level, strlen(level)) == 0)
			return true;
	}
	return false;
}

bool mu_log_ratelimit(_Atomic int64_t *next_ms)
{
	int64_t now = mu_clock_ms(), next = atomic_load(next_ms);

	return now >= next && atomic_compare_exchange_strong(next_ms, &next, now + RATELIMIT_MS);
}
