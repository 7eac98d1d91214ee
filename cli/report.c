/* SPDX-License-Identifier: Apache-2.0 */
/* Common functions of all verbs: failures, usage errors and options. */
#include <assert.h>
#include <getopt.h>
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

int cli_options(const char *verb, int argc, char **argv, const struct cli_option *table,
		int max_words)
{
	enum { MAX_OPTIONS = 8, FIRST_LONG_OPTION = 256 };
	struct option options[MAX_OPTIONS + 1] = {0};
	char letters[2 * MAX_OPTIONS + 2] = ":";
	int opt, n;

	for (int i = 0; table[i].name; i++) {
		bool value = table[i].value != NULL;

		assert(i < MAX_OPTIONS);
		options[i] = (struct option){table[i].name, value, NULL, FIRST_LONG_OPTION + i};
		if (table[i].letter)
			sprintf(strchr(letters, 0), "%c%s", table[i].letter, value ? ":" : "");
	}
	optind = opterr = 0;
	while ((opt = getopt_long(argc + 1, argv - 1, letters, options, NULL)) != -1) {
		const struct cli_option *o =
		    opt >= FIRST_LONG_OPTION ? &table[opt - FIRST_LONG_OPTION] : table;

		if (opt == ':' || opt == '?') {
			/* within "-xf" getopt has not gone on to the next word */
			const char letter[] = {'-', (char)optopt, 0};
			bool is_letter = optopt > 0 && optopt < FIRST_LONG_OPTION;

			cli_usage(verb, opt == ':' ? "%s needs a value" : "unknown option '%s'",
				  is_letter ? letter : argv[optind - 2]);
			return -1;
		}
		while (opt < FIRST_LONG_OPTION && o->letter != opt)
			o++;
		if (o->value)
			*o->value = optarg;
		else
			*o->flag = true;
	}
	n = argc + 1 - optind;
	memmove(argv, argv + optind - 1, (size_t)n * sizeof(argv[0]));
	if (n <= max_words)
		return n;
	cli_usage(verb, "unexpected '%s'", argv[max_words]);
	return -1;
}

void put_printable(struct mu_buf *out, const char *text)
{
	for (; *text; text++)
		mu_buf_putc(out, (unsigned char)*text < ' ' || *text == 127 ? ' ' : *text);
}
