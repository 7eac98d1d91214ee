/* SPDX-License-Identifier: Apache-2.0 */
/* Common functions of all verbs: failures, usage errors and options. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

/* Prints one line, even if a server's message has several. */
int cli_fail(const struct mu_err *err)
{
	fputs("muster: ", stderr);
	for (const char *at = err->msg; *at; at++)
		fputc(*at == '\n' || *at == '\t' ? ' ' : *at, stderr);
	fputc('\n', stderr);
	return CLI_FAILED;
}

int cli_usage(const char *verb, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "muster %s: ", verb);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "; see 'muster help %s'\n", verb);
	return CLI_USAGE;
}

int cli_option(int argc, char **argv, int *i, const char *name, const char **value)
{
	const char *arg = argv[*i];
	size_t n = strlen(name);

	if (strncmp(arg, "--", 2) != 0 || strncmp(arg + 2, name, n) != 0)
		return 0;
	if (arg[2 + n] == '=') {
		*value = arg + 3 + n;
		return 1;
	}
	if (arg[2 + n])
		return 0;
	if (*i + 1 >= argc)
		return -1;
	*value = argv[++*i];
	return 1;
}

void put_safe(struct mu_buf *out, const char *text)
{
	for (; *text; text++)
		mu_buf_putc(out, (unsigned char)*text < ' ' || *text == 127 ? ' ' : *text);
}
