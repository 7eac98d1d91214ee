/* SPDX-License-Identifier: Apache-2.0 */
/* Shell completion of verbs, options and files, generated from the table of verbs. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/verb_help.h"
#include "lib/base/mem.h"

static bool expects_verb(const struct cli_verb *v)
{
	return strcmp(v->name, "help") == 0 || strcmp(v->name, "man") == 0;
}

/* Description of a word: for an option from its manual page, else "". */
static const char *word_description(const char *verb, const char *word, size_t n)
{
	for (const struct verb_option *o = verb_options; o->verb; o++)
		if (strcmp(o->verb, verb) == 0 && strncmp(o->option, word, n) == 0 &&
		    (!o->option[n] || o->option[n] == ' '))
			return o->description;
	return "";
}

/* Calls a function for each literal word of a verb's arguments: options and lower-case names. Words
 * in capitals are placeholders. */
static void for_each_word(const struct cli_verb *v,
			  void (*put)(const struct cli_verb *v, const char *word, size_t n,
				      const char *description))
{
	static const char separators[] = " []|…=";

	for (const char *at = v->args; *at;) {
		size_t n = strcspn(at, separators);

		if (n && (*at == '-' || (*at >= 'a' && *at <= 'z' &&
					 strcspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ.") >= n)))
			put(v, at, n, word_description(v->name, at, n));
		at += n;
		at += strspn(at, separators);
	}
	for (unsigned i = 0; expects_verb(v) && i < cli_n_verbs; i++)
		put(v, cli_verbs[i].name, strlen(cli_verbs[i].name), cli_verbs[i].summary);
}

static void print_bash_word(const struct cli_verb *v, const char *word, size_t n,
			    const char *description)
{
	printf("%.*s ", (int)n, word);
}

/* ---- bash ---- */

static void print_bash(void)
{
	printf("_muster() {\n"
	       "  local words\n"
	       "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
	       "    mapfile -t COMPREPLY < <(compgen -W '");
	for (unsigned i = 0; i < cli_n_verbs; i++)
		printf("%s%s", i ? " " : "", cli_verbs[i].name);
	printf("' -- \"$2\")\n"
	       "    return\n"
	       "  fi\n"
	       "  case \"${COMP_WORDS[1]}\" in\n");
	for (unsigned i = 0; i < cli_n_verbs; i++) {
		printf("    %s) words='", cli_verbs[i].name);
		for_each_word(&cli_verbs[i], print_bash_word);
		printf("' ;;\n");
	}
	printf("  esac\n"
	       "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$2\"; compgen -f -- \"$2\")\n"
	       "}\n"
	       "complete -o filenames -F _muster muster\n");
}

/* ---- zsh ---- */

/* Inside single quotes. A colon would separate the word from its description. */
static void print_zsh_word(const struct cli_verb *v, const char *word, size_t n,
			   const char *description)
{
	printf(" '%.*s", (int)n, word);
	for (putchar(':'); *description; description++)
		printf(*description == '\''  ? "'\\''"
		       : *description == ':' ? "\\:"
					     : "%c",
		       *description);
	putchar('\'');
}

static void print_zsh(void)
{
	printf("#compdef muster\n"
	       "_muster() {\n"
	       "  local -a choice\n"
	       "  if (( CURRENT == 2 )); then\n"
	       "    choice=(");
	for (unsigned i = 0; i < cli_n_verbs; i++)
		print_zsh_word(NULL, cli_verbs[i].name, strlen(cli_verbs[i].name),
			       cli_verbs[i].summary);
	printf(")\n"
	       "    _describe -t verbs verb choice\n"
	       "    return\n"
	       "  fi\n"
	       "  case \"$words[2]\" in\n");
	for (unsigned i = 0; i < cli_n_verbs; i++) {
		printf("    %s) choice=(", cli_verbs[i].name);
		for_each_word(&cli_verbs[i], print_zsh_word);
		printf(") ;;\n");
	}
	printf("  esac\n"
	       "  _describe -o -t words word choice\n"
	       "  _files\n"
	       "}\n"
	       "if [[ \"$funcstack[1]\" == _muster ]]; then _muster \"$@\"; else compdef _muster "
	       "muster; fi\n");
}

/* ---- fish ---- */

static void print_quoted(const char *text)
{
	for (putchar('\''); *text; text++)
		printf(*text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
	putchar('\'');
}

static void print_fish_word(const struct cli_verb *v, const char *word, size_t n,
			    const char *description)
{
	printf("complete -c muster -n '__fish_seen_subcommand_from %s' -a '%.*s' -d ", v->name,
	       (int)n, word);
	print_quoted(description);
	putchar('\n');
}

static void print_fish(void)
{
	for (unsigned i = 0; i < cli_n_verbs; i++) {
		printf("complete -c muster -f -n __fish_use_subcommand -a %s -d ",
		       cli_verbs[i].name);
		print_quoted(cli_verbs[i].summary);
		putchar('\n');
		for_each_word(&cli_verbs[i], print_fish_word);
	}
}

static const struct {
	const char *name;
	void (*print)(void);
} shells[] = {{"bash", print_bash}, {"fish", print_fish}, {"zsh", print_zsh}};

int cli_completion(int argc, char **argv)
{
	for (size_t i = 0; argc == 1 && i < MU_COUNT(shells); i++)
		if (strcmp(argv[0], shells[i].name) == 0) {
			shells[i].print();
			return CLI_OK;
		}
	return cli_usage("completion", "expected a shell: bash, fish or zsh");
}
