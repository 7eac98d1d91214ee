/* SPDX-License-Identifier: Apache-2.0 */
/* The exec plug-in of a kubeconfig user: shell scripts stand in for cloud providers' programs. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/kube/kube_config.h"
#include "lib/kube/kube_exec.h"

static char folder[64];

static int make_folder(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/kube_exec_test.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	MU_AUTO_FREE char *command = mu_xasprintf("rm -rf '%s'", folder);
	return system(command);
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	MU_AUTO_FREE char *path = mu_xasprintf("%s/%s", folder, name);

	assert_int_equal(mu_write_file(path, text, strlen(text), NULL), 0);
	assert_int_equal(chmod(path, mode), 0);
}

/* Loads a kubeconfig whose user has this exec, with a plug-in of this body in its folder. */
static int load(struct kube_config *c, const char *exec, const char *script, struct mu_err *err)
{
	MU_AUTO_FREE char *path = mu_xasprintf("%s/config", folder);
	MU_AUTO_FREE char *body = mu_xasprintf("#!/bin/sh\n%s\n", script);
	MU_AUTO_FREE char *text = mu_xasprintf(
	    "current-context: x\n"
	    "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
	    "clusters: [{name: c, cluster: {server: 'https://a', tls-server-name: b}}]\n"
	    "users: [{name: u, user: {exec: %s}}]\n",
	    exec);

	write_file("plug-in", body, 0755);
	write_file("config", text, 0600);
	return kube_config_parse(c, &path, 1, NULL, err);
}

#define V1 "apiVersion: client.authentication.k8s.io/v1, command: ./plug-in"
#define ANSWER(status)                                                                             \
	"printf '%s' '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"               \
	"\"ExecCredential\",\"status\":" status "}'"

static int run(const char *exec, const char *script, struct kube_credential *out,
	       struct mu_err *err)
{
	struct kube_config c = {0};
	int rc = load(&c, exec, script, err);

	if (rc == 0)
		rc = kube_exec_run(c.exec, out, err);
	kube_config_fini(&c);
	return rc;
}

static void plug_in__that_prints_a_token__gives_the_credential(void **state)
{
	struct kube_credential got = {0};
	struct mu_err err = {0};

	if (run("{" V1 "}",
		ANSWER("{\"token\":\"secret\",\"expirationTimestamp\":\"2030-01-02T03:04:05Z\"}"),
		&got, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(got.token, "secret");
	assert_true(got.expires == 1893553445);
	kube_credential_fini(&got);
}

static void plug_in__that_prints_a_certificate__gives_the_credential(void **state)
{
	struct kube_credential got = {0};
	struct mu_err err = {0};

	if (run("{" V1 "}",
		ANSWER("{\"clientCertificateData\":\"CERT\",\"clientKeyData\":\"KEY\"}"), &got,
		&err) < 0)
		fail_msg("%s", err.msg);
	assert_null(got.token);
	assert_string_equal(got.cert.data, "CERT");
	assert_string_equal(got.key.data, "KEY");
	assert_true(got.expires == 0);
	kube_credential_fini(&got);
}

static void plug_in__when_run__gets_arguments_environment_and_cluster(void **state)
{
	struct kube_credential got = {0};
	struct mu_err err = {0};

	setenv("REGION", "ours", 1);
	if (run("{" V1 ", args: [a b, c], env: [{name: REGION, value: theirs}], "
		"provideClusterInfo: true}",
		"case $KUBERNETES_EXEC_INFO in *'\"server\":\"https://a\"'*) said=$2-$REGION-$#;; "
		"esac\n"
		"printf '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
		"\"ExecCredential\",\"status\":{\"token\":\"%s\"}}' \"$said\"",
		&got, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(got.token, "c-theirs-2");
	kube_credential_fini(&got);
	unsetenv("REGION");
}

static void plug_in__that_fails__is_named_with_its_output(void **state)
{
	static const struct {
		const char *exec, *script, *message;
	} cases[] = {
	    {"{" V1 "}", "echo 'log in first' >&2; exit 3", "failed (exit code 3): log in first"},
	    {"{" V1 "}", "kill -9 $$", "failed (signal 9)"},
	    {"{" V1 "}", "echo hello", "no JSON"},
	    {"{" V1 "}", "echo '{}'", "no ExecCredential"},
	    {"{" V1 "}", ANSWER("{}"), "with a token or a certificate with its key"},
	    {"{" V1 "}", ANSWER("{\"clientCertificateData\":\"x\"}"), "with a token or"},
	    {"{" V1 "}", ANSWER("{\"token\":\"x\",\"expirationTimestamp\":\"soon\"}"), "'soon'"},
	    {"{" V1 "}", ANSWER("{\"token\":\"x\",\"expirationTimestamp\":\"2030-01-02T3:4:5Z\"}"),
	     "T3:4:5Z'"},
	    {"{" V1 "}", "head -c 2000000 /dev/zero", "did not end"},
	    {"{apiVersion: client.authentication.k8s.io/v1, command: is-not-there-at-all, "
	     "installHint: get it at example.org}",
	     "", "get it at example.org"},
	    {"{apiVersion: client.authentication.k8s.io/v1}", "", "exec has no command"},
	    {"{apiVersion: v7, command: x}", "", "v1 or v1beta1, not 'v7'"},
	    {"{" V1 ", interactiveMode: Always}", "", "there is no terminal"},
	    {"{" V1 ", args: [3]}", "", "must be a string"},
	    {"{" V1 ", args: {}}", "", "must be lists"},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct kube_credential got = {0};
		struct mu_err err = {0};

		assert_true(run(cases[i].exec, cases[i].script, &got, &err) < 0);
		if (!strstr(err.msg, cases[i].message))
			fail_msg("'%s' does not say '%s'", err.msg, cases[i].message);
		assert_null(got.token);
	}
}

static void user__with_impersonation__is_parsed(void **state)
{
	MU_AUTO_FREE char *path = mu_xasprintf("%s/config", folder);
	struct kube_config c;
	struct mu_err err = {0};

	write_file(
	    "config",
	    "contexts: [{name: x, context: {cluster: c, user: u}}, {name: y, context: {}}]\n"
	    "current-context: y\n"
	    "clusters: [{name: c, cluster: {server: 'https://a'}}]\n"
	    "users: [{name: u, user: {token: t, as: jane, as-uid: '7', as-groups: [g, h]}}]\n",
	    0600);
	if (kube_config_parse(&c, &path, 1, "x", &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(c.as, "jane");
	assert_string_equal(c.as_uid, "7");
	assert_string_equal(c.as_groups[1], "h");
	assert_null(c.as_groups[2]);
	kube_config_fini(&c);
	write_file("config",
		   "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
		   "clusters: [{name: c, cluster: {server: 'https://a'}}]\n"
		   "users: [{name: u, user: {token: t, as-groups: [g, h]}}]\n",
		   0600);
	assert_true(kube_config_parse(&c, &path, 1, NULL, &err) < 0);
	assert_non_null(strstr(err.msg, "need 'as'"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(plug_in__that_prints_a_token__gives_the_credential),
	    cmocka_unit_test(plug_in__that_prints_a_certificate__gives_the_credential),
	    cmocka_unit_test(plug_in__when_run__gets_arguments_environment_and_cluster),
	    cmocka_unit_test(plug_in__that_fails__is_named_with_its_output),
	    cmocka_unit_test(user__with_impersonation__is_parsed),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
