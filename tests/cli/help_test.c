/* SPDX-License-Identifier: Apache-2.0 */
/* Help, manual pages and shell completion of the command, and their common options. */
#include "tests/cli/job.h"

static void manual_and_completion__contain_every_verb(void **state)
{
	MU_AUTO_BUF page = {0};
	MU_AUTO_BUF words = {0};

	assert_int_equal(muster(&words, "completion", "bash"), 0);
	assert_output_has(words, "run scale validate");
	assert_output_has(words, "complete -o filenames");
	const char *argv[] = {"muster", "man", NULL};
	int fd;
	pid_t pid = start(argv, &fd);
	assert_int_equal(finish(pid, fd, &page), 0);
	assert_output_has(page, ".B muster run");
	assert_output_has(page, "\\-\\-fresh");
}

/* The options of `muster help VERB` are in the manual page of the verb and are completed. */
static void every_option__is_documented_and_completed(void **state)
{
	static const struct {
		const char *verb, *option, *page, *typed;
	} options[] = {
	    {"run", "--fresh", "\\-\\-fresh\nmove", "--f"},
	    {"run", "--scale", "\\-\\-scale TASK=N", "--s"},
	    {"validate", "--plan", "\\-\\-plan", "--p"},
	    {"top", "--once", "\\-\\-once", "--o"},
	    {"explain", "--context", "\\-\\-context NAME", "--c"},
	    {"wait", "--kubeconfig", "\\-\\-kubeconfig FILE", "--k"},
	    {"train", "--target", "\\-\\-target HOST:PORT", "--ta"},
	    {"train", "--manifest", "\\-\\-manifest JOB.yaml", "--m"},
	    {"checkpoint", "diff", "diff: 0 when they are equal", "di"},
	    {"man", "events", "of one verb", "ev"},
	};

	for (size_t i = 0; i < MU_COUNT(options); i++) {
		MU_AUTO_BUF page = {0};
		char command[8192], output[256] = "";
		FILE *f;

		assert_int_equal(muster(&page, "man", options[i].verb), 0);
		assert_output_has(page, options[i].page);
		assert_output_has(page, ".SH EXIT STATUS");
		snprintf(command, sizeof(command),
			 "bash -c 'source <(%s completion bash); COMP_CWORD=2; "
			 "COMP_WORDS=(muster %s \"%s\"); _muster muster \"%s\" %s; "
			 "printf %%s \"${COMPREPLY[*]}\"'",
			 program, options[i].verb, options[i].typed, options[i].typed,
			 options[i].verb);
		f = popen(command, "r");
		assert_non_null(f);
		assert_non_null(fgets(output, sizeof(output), f));
		assert_int_equal(pclose(f), 0);
		if (strcmp(output, options[i].option) != 0)
			fail_msg("muster %s %s is completed to '%s', expected %s", options[i].verb,
				 options[i].typed, output, options[i].option);
	}
}

static bool is_installed(const char *shell)
{
	char command[128];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", shell);
	return system(command) == 0;
}

/* fish and zsh show a description for each word. If the shells are installed, also checks their
 * completion of "muster run --f". */
static void fish_and_zsh__complete_verbs_and_options(void **state)
{
	static const struct {
		const char *shell, *words[5], *ask;
	} shells[] = {
	    {"fish",
	     {"__fish_use_subcommand -a run -d 'run a ",
	      "__fish_seen_subcommand_from run' -a '--fresh' -d 'move the",
	      "__fish_seen_subcommand_from checkpoint' -a 'diff'",
	      "__fish_seen_subcommand_from man' -a 'events'", "a task\\'s log"},
	     "fish -c '$M completion fish | source; complete -C \"muster run --f\"' | cut -f1"},
	    {"zsh",
	     {"#compdef muster\n", "'run:run a ", "run) choice=( '--fresh:move the", "'diff:'",
	      "a task'\\''s log"},
	     "zsh -fc 'compdef() { :; }; _files() { :; }; _describe() { print -r -- "
	     "${${choice[1]}%%:*}; }; source <($M completion zsh); words=(muster run --f); "
	     "CURRENT=3; _muster'"},
	};

	setenv("M", program, 1);
	for (size_t i = 0; i < MU_COUNT(shells); i++) {
		MU_AUTO_BUF script = {0};
		char output[256] = "";
		FILE *f;

		assert_int_equal(muster(&script, "completion", shells[i].shell), 0);
		for (size_t k = 0; k < MU_COUNT(shells[i].words); k++)
			assert_output_has(script, shells[i].words[k]);
		if (!is_installed(shells[i].shell))
			continue;
		f = popen(shells[i].ask, "r");
		assert_non_null(f);
		assert_non_null(fgets(output, sizeof(output), f));
		assert_int_equal(pclose(f), 0);
		assert_string_equal(output, "--fresh\n");
	}
}

static void help__of_an_unknown_verb__reports_it(void **state)
{
	MU_AUTO_BUF output = {0};
	MU_AUTO_BUF page = {0};

	assert_int_equal(muster(&output, "help", "frobnicate"), 2);
	assert_output_has(output, "unknown verb 'frobnicate'");
	assert_int_equal(muster(&page, "help", "scale"), 0);
	assert_output_has(page, "muster scale JOB");
}

static void options__with_a_fault__are_named(void **state)
{
	static const struct {
		const char *argv[5], *message;
	} cases[] = {
	    {{"muster", "run", "--nope", "job.yaml"}, "muster run: unknown option '--nope'"},
	    {{"muster", "run", "job.yaml", "--nope"}, "muster run: unknown option '--nope'"},
	    {{"muster", "run", "job.yaml", "-xf"}, "muster run: unknown option '-x'"},
	    {{"muster", "run", "job.yaml", "--logs"}, "muster run: --logs needs a value"},
	    {{"muster", "run", "a.yaml", "b.yaml"}, "muster run: unexpected 'b.yaml'"},
	    {{"muster", "train", "--manifest=j", "x"}, "muster train: unexpected 'x'"},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_BUF output = {0};
		int fd, pid = start((const char **)cases[i].argv, &fd);

		assert_int_equal(finish(pid, fd, &output), 2);
		assert_output_has(output, cases[i].message);
	}
}

/* The table of verbs and the manual must have the same options. */
static void options__of_table_and_manual__are_the_same(void **state)
{
	const char *argv[] = {"muster", "help", NULL};
	MU_AUTO_BUF all = {0};
	char verb[64] = "", *line, *rest;
	int fd, pid = start(argv, &fd);

	assert_int_equal(finish(pid, fd, &all), 0);
	for (line = strtok_r(all.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		MU_AUTO_BUF page = {0};

		if (strncmp(line, "  muster ", 9) != 0 || sscanf(line + 9, "%63s", verb) != 1 ||
		    strcmp(verb, "help") == 0)
			continue;
		assert_int_equal(muster(&page, "man", verb), 0);
		for (char *at = line; (at = strstr(at, "-")); at += strcspn(at, " ]|")) {
			char escaped[128] = "";
			size_t n = 0;

			for (size_t k = 0; at[k] && !strchr(" ]|", at[k]); k++) {
				if (at[k] == '-')
					escaped[n++] = '\\';
				escaped[n++] = at[k];
			}
			assert_output_has(page, escaped);
		}
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(manual_and_completion__contain_every_verb),
	    T(every_option__is_documented_and_completed),
	    T(fish_and_zsh__complete_verbs_and_options),
	    T(help__of_an_unknown_verb__reports_it),
	    T(options__with_a_fault__are_named),
	    T(options__of_table_and_manual__are_the_same),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
