/* SPDX-License-Identifier: Apache-2.0 */
/* The manual pages, generated from the table of verbs. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/verb_help.h"

/* Escapes roff: a dot or apostrophe at the start of a line is a request, a backslash an escape. */
static void print_roff(const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", stdout);
	for (; *text; text++) {
		if (*text == '\\' || *text == '-')
			putchar('\\');
		putchar(*text);
	}
}

static void print_tagged(const char *tag, const char *description)
{
	printf(".TP\n.B ");
	print_roff(tag);
	putchar('\n');
	print_roff(description);
	putchar('\n');
}

static int print_main_page(void)
{
	printf(".TH MUSTER 1 \"\" \"muster " MUSTER_VERSION "\"\n"
	       ".SH NAME\nmuster \\- distributed training with parameter servers\n"
	       ".SH SYNOPSIS\n.B muster\n.I VERB\n[arguments]\n"
	       ".SH VERBS\n");
	for (unsigned i = 0; i < cli_n_verbs; i++) {
		const struct cli_verb *v = &cli_verbs[i];

		printf(".TP\n.B muster %s\n", v->name);
		if (*v->args) {
			printf(".I ");
			print_roff(v->args);
			printf("\n.br\n");
		}
		print_roff(v->summary);
		putchar('\n');
	}
	printf(".SH EXIT STATUS\n"
	       "0 for success, 1 for a failure, 2 for a wrong command line, 130 when interrupted.\n"
	       ".SH SEE ALSO\nmuster\\-VERB(1), the documentation in docs/ of the sources.\n");
	return CLI_OK;
}

static bool has_options(const char *verb)
{
	for (const struct verb_option *o = verb_options; o->verb; o++)
		if (strcmp(o->verb, verb) == 0)
			return true;
	return false;
}

static int print_verb_page(const struct cli_verb *v)
{
	const struct verb_text *t = verb_texts;

	while (t->verb && strcmp(t->verb, v->name) != 0)
		t++;
	printf(".TH MUSTER-%s 1 \"\" \"muster " MUSTER_VERSION "\"\n.SH NAME\nmuster\\-%s \\- ",
	       v->name, v->name);
	print_roff(v->summary);
	printf("\n.SH SYNOPSIS\n.B muster %s\n.I ", v->name);
	print_roff(*v->args ? v->args : " ");
	printf("\n.SH DESCRIPTION\n");
	print_roff(t->verb ? t->text : v->summary);
	if (has_options(v->name))
		printf("\n.SH OPTIONS");
	putchar('\n');
	for (const struct verb_option *o = verb_options; o->verb; o++)
		if (strcmp(o->verb, v->name) == 0)
			print_tagged(o->option, o->description);
	printf(".SH EXIT STATUS\n");
	print_roff(t->verb && t->status ? t->status : "0 for success, 1 for a failure.");
	printf("\n2 for a wrong command line.\n");
	if (t->verb && t->example) {
		printf(".SH EXAMPLE\n");
		print_roff(t->example);
		putchar('\n');
	}
	printf(".SH SEE ALSO\nmuster(1)\n");
	return CLI_OK;
}

int cli_man(int argc, char **argv)
{
	const struct cli_verb *v;

	if (argc > 1)
		return cli_usage("man", "expected at most one verb");
	if (!argc)
		return print_main_page();
	v = cli_verb_named(argv[0]);
	return v ? print_verb_page(v) : cli_usage("man", "unknown verb '%s'", argv[0]);
}
