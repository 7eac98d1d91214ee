/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials that change: a rotated token file, and a plug-in with an expired or rejected
 * credential. */
#include "tests/lib/scripted_server.h"

#include <sys/stat.h>

#include "lib/base/log.h"
#include "lib/kube/kube_server.h"

enum { MINUTE_S = 60 };

static char folder[64];

static int make_folder(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/kube_identity_test.XXXXXX");
	return make_certs(state) || !mkdtemp(folder);
}

static int remove_folder(void **state)
{
	MU_AUTO_FREE char *command = mu_xasprintf("rm -rf '%s'", folder);

	return free_certs(state) || system(command);
}

/* Returns the path. */
static char *write_file(const char *name, const char *text)
{
	char *path = mu_xasprintf("%s/%s", folder, name);

	assert_int_equal(mu_write_file(path, text, strlen(text), NULL), 0);
	assert_int_equal(chmod(path, 0700), 0);
	return path;
}

static void assert_sends(struct kube_identity *id, bool fresh, const char *token)
{
	MU_AUTO_FREE char *line = mu_xasprintf("Authorization: Bearer %s\r\n", token);
	MU_AUTO_BUF headers = {0};
	struct mu_err err = {0};

	assert_ok(kube_identity_headers(id, fresh, &headers, &err), &err);
	assert_string_equal(headers.data, line);
}

/* The kubelet writes a new token long before the old one expires, so no 401 occurs. */
static void token_file__is_read_again_after_a_minute(void **state)
{
	MU_AUTO_FREE char *path = write_file("token", "first\n");
	struct kube_config config = {.token_file = path};
	struct kube_identity id;

	kube_identity_init(&id, &config);
	assert_sends(&id, false, "first");
	free(write_file("token", "second\n"));
	assert_sends(&id, false, "first");
	id.token_read -= MINUTE_S;
	assert_sends(&id, false, "second");
	unlink(path);
	id.token_read -= MINUTE_S;
	assert_sends(&id, false, "second");
	kube_identity_fini(&id);
}

/* The plug-in prints the file `credential` and adds a line to the file `runs`. */
static struct kube_config config_with_plug_in(const char *server)
{
	MU_AUTO_FREE char *text =
	    mu_xasprintf("current-context: x\n"
			 "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
			 "clusters: [{name: c, cluster: {server: '%s'}}]\n"
			 "users: [{name: u, user: {exec: {command: ./plug-in,\n"
			 "  apiVersion: client.authentication.k8s.io/v1}}}]\n",
			 server);
	MU_AUTO_FREE char *path = write_file("config", text);
	struct kube_config config = {0};
	struct mu_err err = {0};

	free(write_file("plug-in", "#!/bin/sh\n"
				   "cd \"${0%/*}\"\n"
				   "echo >>runs\n"
				   "cat credential\n"));
	free(write_file("runs", ""));
	assert_ok(kube_config_parse(&config, &path, 1, NULL, &err), &err);
	return config;
}

static void set_credential(const char *status)
{
	MU_AUTO_FREE char *text =
	    mu_xasprintf("{\"apiVersion\":\"client.authentication.k8s.io/v1\","
			 "\"kind\":\"ExecCredential\",\"status\":%s}",
			 status);

	free(write_file("credential", text));
}

static size_t runs_of_plug_in(void)
{
	MU_AUTO_FREE char *path = mu_xasprintf("%s/runs", folder);
	MU_AUTO_BUF runs = {0};

	assert_int_equal(mu_buf_read_file(&runs, path, 1 << 10, NULL), 0);
	return runs.len;
}

static void plug_in__with_a_valid_credential__runs_again_only_before_it_expires(void **state)
{
	struct kube_config config = config_with_plug_in("https://a");
	struct kube_identity id;

	kube_identity_init(&id, &config);
	set_credential("{\"token\":\"first\",\"expirationTimestamp\":\"2100-01-01T00:00:00Z\"}");
	assert_sends(&id, false, "first");
	set_credential("{\"token\":\"second\"}");
	assert_sends(&id, false, "first");
	id.from_exec.expires = (double)time(NULL) + 5;
	assert_sends(&id, false, "second");
	assert_sends(&id, false, "second"); /* it never expires */
	assert_int_equal(runs_of_plug_in(), 2);
	kube_identity_fini(&id);
	kube_config_fini(&config);
}

static struct kube_client *client_with_plug_in(const struct server *s)
{
	MU_AUTO_FREE char *address = mu_xasprintf("https://127.0.0.1:%d", s->port);
	struct kube_config config = config_with_plug_in(address);
	struct kube_client *c;

	mu_buf_puts(&config.ca, certs.ca);
	assert_int_equal(kube_client_new(&c, &config, NULL), 0);
	return c;
}

#define UNAUTHORIZED "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"

static void plug_in__with_a_rejected_token__runs_once_more(void **state)
{
	static const char *const answers[] = {UNAUTHORIZED, UNAUTHORIZED, UNAUTHORIZED, OK(THING),
					      NULL};
	struct mu_err err = {0};
	struct kube_client *c;
	struct server s;

	start(&s, &certs, answers);
	c = client_with_plug_in(&s);
	set_credential("{\"token\":\"first\"}");
	assert_int_equal(get(c, 0, &err), -MU_UNAUTHENTICATED);
	assert_int_equal(runs_of_plug_in(), 2);
	assert_non_null(strstr(s.last, "\r\nAuthorization: Bearer first\r\n"));
	set_credential("{\"token\":\"second\"}");
	assert_ok(get(c, 0, &err), &err);
	assert_int_equal(runs_of_plug_in(), 3);
	assert_non_null(strstr(s.last, "\r\nAuthorization: Bearer second\r\n"));
	end(c, &s);
}

static void put_json_string(struct mu_buf *out, const char *text)
{
	mu_buf_putc(out, '"');
	for (; *text; text++)
		if (*text == '\n')
			mu_buf_puts(out, "\\n");
		else
			mu_buf_putc(out, *text);
	mu_buf_putc(out, '"');
}

static void plug_in__that_prints_a_certificate__identifies_the_client(void **state)
{
	static const char *const answers[] = {OK(THING), NULL};
	MU_AUTO_BUF status = {0};
	struct mu_err err = {0};
	struct kube_client *c;
	struct server s;

	start(&s, &certs, answers);
	require_client_certificate(s.tls, &certs);
	c = client_with_plug_in(&s);
	mu_buf_puts(&status, "{\"clientCertificateData\":");
	put_json_string(&status, certs.crt);
	mu_buf_puts(&status, ",\"clientKeyData\":");
	put_json_string(&status, certs.key);
	mu_buf_puts(&status, "}");
	set_credential(status.data);
	assert_ok(get(c, 0, &err), &err);
	end(c, &s);
	assert_string_not_equal(s.client, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(token_file__is_read_again_after_a_minute),
	    cmocka_unit_test(plug_in__with_a_valid_credential__runs_again_only_before_it_expires),
	    cmocka_unit_test(plug_in__with_a_rejected_token__runs_once_more),
	    cmocka_unit_test(plug_in__that_prints_a_certificate__identifies_the_client),
	};

	mu_log_set_level(MU_ERROR + 1);
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
