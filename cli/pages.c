// SPDX-License-Identifier: Apache-2.0
/* The manual page and the shell's completion, made from the table of verbs. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

/* A line that starts with a dot or an apostrophe would be a request, a backslash an escape. */
static void roff(const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", stdout);
	for (; *text; text++) {
		if (*text == '\\' || *text == '-')
			putchar('\\');
		putchar(*text);
	}
}

int cli_man(int argc, char **argv)
{
	if (argc)
		return cli_usage("man", "takes no arguments");
	printf(".TH MUSTER 1 \"\" \"muster " MUSTER_VERSION "\"\n"
	       ".SH NAME\nmuster \\- distributed training with parameter servers\n"
	       ".SH SYNOPSIS\n.B muster\n.I VERB\n[arguments]\n"
	       ".SH VERBS\n");
	for (unsigned i = 0; i < cli_n_verbs; i++) {
		const struct cli_verb *v = &cli_verbs[i];

		printf(".TP\n.B muster %s\n", v->name);
		if (*v->args) {
			printf(".I ");
			roff(v->args);
			printf("\n.br\n");
		}
		roff(v->what);
		putchar('\n');
	}
	printf(".SH EXIT STATUS\n"
	       "0 for success, 1 for a failure, 2 for a wrong command line, 130 when interrupted.\n"
	       ".SH SEE ALSO\nThe documentation in docs/ of the sources.\n");
	return CLI_OK;
}

int cli_completion(int argc, char **argv)
{
	if (argc != 1 || strcmp(argv[0], "bash") != 0)
		return cli_usage("completion", "for which shell? there is bash");
	printf("_muster() {\n"
	       "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
	       "    mapfile -t COMPREPLY < <(compgen -W '");
	for (unsigned i = 0; i < cli_n_verbs; i++)
		printf("%s%s", i ? " " : "", cli_verbs[i].name);
	printf("' -- \"$2\")\n"
	       "  else\n"
	       "    mapfile -t COMPREPLY < <(compgen -f -- \"$2\")\n"
	       "  fi\n"
	       "}\n"
	       "complete -o filenames -F _muster muster\n");
	return CLI_OK;
}
