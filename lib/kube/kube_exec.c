/* SPDX-License-Identifier: Apache-2.0 */
/* The plug-in runs in its own process group, so its child processes are killed with it at the time
 * limit.  Its outputs go to files in memory.  The first line of its standard error becomes the
 * message of a failure. */
#include "lib/kube/kube_exec.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/rfc3339.h"
#include "lib/io/json.h"
#include "lib/io/json_build.h"

enum {
	WORDS_MAX = 256,
	OUTPUT_MAX = 1 << 20,
	TIMEOUT_MS = 30000,
	WAIT_INTERVAL_MS = 5,
};
#define API "client.authentication.k8s.io/"

extern char **environ;

struct kube_exec {
	struct mu_arena arena; /* of all strings */
	const char *command, *api_version, *hint;
	char **argv, **envp; /* NULL-terminated; envp: added to the environment of this process */
};

void kube_exec_free(struct kube_exec *e)
{
	if (!e)
		return;
	mu_arena_fini(&e->arena);
	free(e);
}

void kube_credential_fini(struct kube_credential *c)
{
	if (c->token)
		explicit_bzero(c->token, strlen(c->token));
	if (c->key.len)
		explicit_bzero(c->key.data, c->key.len);
	free(c->token);
	mu_buf_fini(&c->cert);
	mu_buf_fini(&c->key);
	memset(c, 0, sizeof(*c));
}

/* Returns KUBERNETES_EXEC_INFO, with the cluster only if the plug-in requests it. */
static char *make_info(const char *api_version, const struct mu_doc_node *cluster)
{
	static const char *const keys[] = {"server", "tls-server-name", "insecure-skip-tls-verify",
					   "certificate-authority-data", "proxy-url"};
	cJSON *info = mu_json_pack("{'apiVersion': %s, 'kind': 'ExecCredential',"
				   " 'spec': {'interactive': false}}",
				   api_version);
	cJSON *to = cluster ? mu_json_object_in(mu_json_object_in(info, "spec"), "cluster") : NULL;
	char *text;

	for (unsigned i = 0; cluster && i < MU_COUNT(keys); i++)
		if (mu_doc_key(cluster, keys[i]))
			cJSON_AddItemToObject(to, keys[i],
					      mu_json_from_doc(mu_doc_key(cluster, keys[i])));
	text = cJSON_PrintUnformatted(info);
	cJSON_Delete(info);
	return text;
}

/* Reads the arguments and variables of the plug-in; adds KUBERNETES_EXEC_INFO. */
static int read_words(struct kube_exec *e, const struct mu_doc_node *exec,
		      const struct mu_doc_node *cluster, struct mu_err *err)
{
	const struct mu_doc_node *args = mu_doc_get(exec, "args"), *env = mu_doc_get(exec, "env");
	MU_AUTO_FREE char *info = make_info(e->api_version, cluster);
	unsigned n = 0;

	if ((args && (args->kind == MU_DOC_MAP || args->n > WORDS_MAX)) ||
	    (env && (env->kind == MU_DOC_MAP || env->n > WORDS_MAX)))
		return mu_doc_invalid(exec, err, "args and env must be lists of at most %d",
				      WORDS_MAX);
	e->argv = MU_ARENA_ARRAY(&e->arena, char *, WORDS_MAX + 2);
	e->argv[n++] = mu_arena_strdup(&e->arena, e->command);
	mu_doc_each(args, a)
	{
		if (a->kind != MU_DOC_STRING)
			return mu_doc_invalid(a, err, "must be a string");
		e->argv[n++] = mu_arena_strdup(&e->arena, a->text);
	}
	n = 0;
	e->envp = MU_ARENA_ARRAY(&e->arena, char *, WORDS_MAX + 2);
	mu_doc_each(env, v) e->envp[n++] = mu_arena_printf(
	    &e->arena, "%s=%s", mu_doc_text(v, "name", ""), mu_doc_text(v, "value", ""));
	e->envp[n++] = mu_arena_printf(&e->arena, "KUBERNETES_EXEC_INFO=%s", info);
	return 0;
}

int kube_exec_read(struct kube_exec **out, const struct mu_doc_node *exec, const char *file,
		   const struct mu_doc_node *cluster, struct mu_err *err)
{
	const char *command = mu_doc_text(exec, "command", "");
	const char *version = mu_doc_text(exec, "apiVersion", "");
	const char *slash = strrchr(file, '/');
	bool is_relative = strchr(command, '/') && command[0] != '/' && slash;
	MU_AUTO(kube_exec_free) struct kube_exec *e = NULL;

	if (!*command)
		return mu_doc_invalid(exec, err, "exec has no command");
	if (strcmp(version, API "v1") != 0 && strcmp(version, API "v1beta1") != 0)
		return mu_doc_invalid(exec, err,
				      "exec.apiVersion must be " API "v1 or v1beta1, not '%.80s'",
				      version);
	if (strcmp(mu_doc_text(exec, "interactiveMode", ""), "Always") == 0)
		return mu_doc_invalid(
		    exec, err,
		    "exec.interactiveMode is Always, but there is no terminal: use a "
		    "plug-in that asks for no input");
	e = MU_NEW(struct kube_exec);
	mu_arena_init(&e->arena);
	e->command = mu_arena_printf(&e->arena, "%.*s%s", is_relative ? (int)(slash + 1 - file) : 0,
				     file, command);
	e->api_version = mu_arena_strdup(&e->arena, version);
	e->hint = mu_arena_strdup(&e->arena, mu_doc_text(exec, "installHint", ""));
	MU_RETURN_IF_ERROR(read_words(
	    e, exec, mu_doc_bool(exec, "provideClusterInfo", false) ? cluster : NULL, err));
	*out = mu_steal(&e);
	return 0;
}

/* Returns the environment of this process plus the variables of the plug-in (WORDS_MAX + 1). */
static char **merged_environment(char *const *added)
{
	size_t n = 0, m = 0;
	char **merged;

	while (environ[n])
		n++;
	merged = MU_NEW_ARRAY(char *, n + WORDS_MAX + 2);
	for (char **e = environ; *e; e++) {
		bool is_replaced = false;
		for (char *const *a = added; *a; a++)
			is_replaced = is_replaced || strncmp(*e, *a, strcspn(*a, "=") + 1) == 0;
		if (!is_replaced)
			merged[m++] = *e;
	}
	for (char *const *a = added; *a; a++)
		merged[m++] = *a;
	return merged;
}

static int spawn(const struct kube_exec *e, pid_t *pid, int out, int errors, struct mu_err *err)
{
	MU_AUTO_FREE char **env = merged_environment(e->envp);
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t empty_mask;
	int rc;

	sigemptyset(&empty_mask);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, out, 1);
	posix_spawn_file_actions_adddup2(&files, errors, 2);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &empty_mask);
	rc = posix_spawnp(pid, e->command, &files, &attr, e->argv, env);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	if (rc)
		return mu_fail(err, MU_NOT_FOUND, "the plug-in %.80s does not start: %s%s%.100s",
			       e->command, strerror(rc), *e->hint ? "; " : "", e->hint);
	return 0;
}

static bool is_small(int file)
{
	struct stat st;

	return fstat(file, &st) == 0 && st.st_size <= OUTPUT_MAX;
}

/* Waits for the end of the process; returns false if it was killed at a limit of time or size. */
static bool reap(pid_t pid, int out, int errors, int *status)
{
	const struct timespec interval = {.tv_nsec = WAIT_INTERVAL_MS * 1000000L};
	long long deadline = mu_clock_ms() + TIMEOUT_MS;

	while (mu_clock_ms() < deadline && is_small(out) && is_small(errors)) {
		pid_t ended = waitpid(pid, status, WNOHANG);

		if (ended == pid || (ended < 0 && errno != EINTR))
			return true;
		nanosleep(&interval, NULL);
	}
	kill(-pid, SIGKILL);
	while (waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
	return false;
}

static void read_output(int file, struct mu_buf *to)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	mu_buf_read_file(to, path, OUTPUT_MAX, NULL);
}

/* Runs the plug-in and collects its output. */
static int run_and_read(const struct kube_exec *e, struct mu_buf *printed, struct mu_err *err)
{
	int out = memfd_create("stdout", MFD_CLOEXEC), errors = memfd_create("stderr", MFD_CLOEXEC);
	int status = 0, rc;
	MU_AUTO_BUF text = {0};
	pid_t pid;

	rc = out < 0 || errors < 0 ? mu_fail_errno(err, errno, "memfd_create")
				   : spawn(e, &pid, out, errors, err);
	if (rc == 0 && !reap(pid, out, errors, &status)) {
		rc = mu_fail(err, MU_DEADLINE_EXCEEDED,
			     "the plug-in %.80s did not end within %d s and 1 MiB", e->command,
			     TIMEOUT_MS / 1000);
	} else if (rc == 0 && status) {
		read_output(errors, &text);
		rc = mu_fail(err, MU_UNAUTHENTICATED, "the plug-in %.80s failed (%s %d): %.*s",
			     e->command, WIFEXITED(status) ? "exit code" : "signal",
			     WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
			     text.len ? (int)strcspn(text.data, "\n") : 0, text.data);
	} else if (rc == 0) {
		read_output(out, printed);
	}
	close(out);
	close(errors);
	return rc;
}

int kube_credential_read(struct kube_credential *out, const struct kube_exec *e,
			 struct mu_span printed, struct mu_err *err)
{
	MU_AUTO(mu_doc_free) struct mu_doc *doc = NULL;
	const char *token, *cert, *key, *expires;
	struct mu_err ignored = {0};
	double expiry;

	if (mu_json_parse(&doc, printed, e->command, &ignored) < 0)
		return mu_fail(err, MU_UNAUTHENTICATED, "the plug-in %.80s printed no JSON",
			       e->command);
	token = mu_doc_text(doc->root, "status.token", "");
	cert = mu_doc_text(doc->root, "status.clientCertificateData", "");
	key = mu_doc_text(doc->root, "status.clientKeyData", "");
	expires = mu_doc_text(doc->root, "status.expirationTimestamp", "");
	expiry = mu_rfc3339_read(expires);
	if (strcmp(mu_doc_text(doc->root, "apiVersion", ""), e->api_version) != 0 ||
	    strcmp(mu_doc_text(doc->root, "kind", ""), "ExecCredential") != 0 ||
	    (!*token && !*cert) || !*cert != !*key)
		return mu_fail(err, MU_UNAUTHENTICATED,
			       "the plug-in %.80s printed no ExecCredential of %s with a token or "
			       "a certificate with its key",
			       e->command, e->api_version);
	if (*expires && expiry <= 0)
		return mu_fail(err, MU_UNAUTHENTICATED,
			       "the plug-in %.80s printed an invalid expirationTimestamp: '%.40s'",
			       e->command, expires);
	*out =
	    (struct kube_credential){.token = *token ? mu_xstrdup(token) : NULL, .expires = expiry};
	mu_buf_puts(&out->cert, cert);
	mu_buf_puts(&out->key, key);
	return 0;
}

int kube_exec_run(const struct kube_exec *e, struct kube_credential *out, struct mu_err *err)
{
	MU_AUTO_BUF printed = {0};
	int rc = run_and_read(e, &printed, err);

	return rc < 0 ? rc : kube_credential_read(out, e, mu_buf_span(&printed), err);
}
