/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig files and the in-cluster configuration. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/kube/kube_config.h"

static char folder[64];

static char *file(const char *name, const char *text)
{
	char *path = mu_xasprintf("%s/%s", folder, name);
	assert_int_equal(mu_write_file(path, text, strlen(text), NULL), 0);
	return path;
}

static int make_folder(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/kube_config_test.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	MU_AUTO_FREE char *command = mu_xasprintf("rm -rf '%s'", folder);
	return system(command);
}

static void kubeconfig__with_inline_data__is_decoded(void **state)
{
	MU_AUTO_FREE char *path = file("inline", "apiVersion: v1\n"
						 "kind: Config\n"
						 "current-context: me\n"
						 "contexts:\n"
						 "- {name: me, context: {cluster: c, user: u, "
						 "namespace: team}}\n"
						 "clusters:\n"
						 "- name: c\n"
						 "  cluster:\n"
						 "    server: https://10.0.0.1:6443/\n"
						 "    tls-server-name: api.example\n"
						 "    certificate-authority-data: aGVsbG8=\n"
						 "users:\n"
						 "- name: u\n"
						 "  user: {client-certificate-data: YWI=, "
						 "client-key-data: YWJj}\n");
	struct kube_config c;
	struct mu_err err = {0};

	if (kube_config_parse(&c, &path, 1, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(c.server, "https://10.0.0.1:6443");
	assert_string_equal(c.ns, "team");
	assert_string_equal(c.tls_server_name, "api.example");
	assert_string_equal(c.ca.data, "hello");
	assert_int_equal(c.ca.len, 5);
	assert_string_equal(c.cert.data, "ab");
	assert_string_equal(c.key.data, "abc");
	kube_config_fini(&c);
}

static void kubeconfig__of_several_files__uses_the_first_of_each_name(void **state)
{
	char *paths[3];
	struct kube_config c;
	struct mu_err err = {0};

	free(file("ca.pem", "PEM"));
	paths[0] = mu_xasprintf("%s/is-not-there", folder);
	paths[1] = file("one", "current-context: a\n"
			       "clusters:\n"
			       "- {name: c, cluster: {server: https://one, "
			       "certificate-authority: ca.pem}}\n");
	paths[2] = file("two", "current-context: b\n"
			       "contexts: [{name: a, context: {cluster: c, user: u}}]\n"
			       "clusters: [{name: c, cluster: {server: https://two}}]\n"
			       "users: [{name: u, user: {tokenFile: token, username: x}}]\n");
	if (kube_config_parse(&c, paths, 3, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(c.server, "https://one");
	assert_string_equal(c.ca.data, "PEM");
	assert_non_null(strstr(c.ca_file, "/ca.pem"));
	assert_non_null(strstr(c.token_file, "/token"));
	kube_config_fini(&c);
	for (int i = 0; i < 3; i++)
		free(paths[i]);
}

static void kubeconfig__with_a_fault__names_it(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
	    {"clusters: []\n", "no current-context"},
	    {"current-context: x\n", "there is no context 'x'"},
	    {"current-context: x\ncontexts: [{name: x, context: {cluster: yy}}]\n",
	     "there is no cluster 'yy'"},
	    {"current-context: x\ncontexts: [{name: x, context: {cluster: yy}}]\n"
	     "clusters: [{name: yy, cluster: {}}]\n",
	     "has no server"},
	    {"current-context: x\ncontexts: [{name: x, context: {cluster: yy, user: z}}]\n"
	     "clusters: [{name: yy, cluster: {server: 'https://a'}}]\n"
	     "users: [{name: z, user: {auth-provider: {name: a}}}]\n",
	     "'auth-provider'"},
	    {"current-context: x\ncontexts: [{name: x, context: {cluster: yy}}]\n"
	     "clusters: [{name: yy, cluster: {server: 'https://a', certificate-authority-data: "
	     "'*'}}]\n",
	     "is not valid base64"},
	    {"a: [", "kubeconfig: "},
	    {"just text", "no current-context"},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_FREE char *path = file("bad", cases[i].text);
		struct kube_config c = {0};
		struct mu_err err = {0};

		assert_true(kube_config_parse(&c, &path, 1, NULL, &err) < 0);
		if (!strstr(err.msg, cases[i].message))
			fail_msg("'%s' does not say '%s'", err.msg, cases[i].message);
		assert_null(c.server);
	}
}

static void in_cluster_config__reads_token_ca_and_namespace(void **state)
{
	struct kube_config c;
	struct mu_err err = {0};

	setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	setenv("KUBERNETES_SERVICE_PORT", "8443", 1);
	unlink("token");
	assert_int_equal(kube_config_in_cluster(&c, "/nowhere", &err), -MU_NOT_FOUND);
	free(file("token", "t0"));
	free(file("ca.crt", "PEM"));
	free(file("namespace", "team"));
	if (kube_config_in_cluster(&c, folder, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(c.server, "https://[fd00::1]:8443");
	assert_string_equal(c.ns, "team");
	assert_non_null(strstr(c.token_file, "/token"));
	kube_config_fini(&c);
	unsetenv("KUBERNETES_SERVICE_HOST");
}

/* As in kubectl, a file takes precedence over the service account of the pod. */
static void kubeconfig__in_a_pod__takes_precedence_over_the_service_account(void **state)
{
	MU_AUTO_FREE char *path =
	    file("mine", "current-context: x\n"
			 "contexts: [{name: x, context: {cluster: y}}]\n"
			 "clusters: [{name: y, cluster: {server: 'https://a'}}]\n");
	struct kube_config c = {0};
	struct mu_err err = {0};

	setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
	setenv("KUBECONFIG", path, 1);
	assert_ok(kube_config_load(&c, NULL, NULL, &err), &err);
	assert_string_equal(c.server, "https://a");
	kube_config_fini(&c);
	setenv("KUBECONFIG", "/nowhere", 1);
	assert_true(kube_config_load(&c, NULL, NULL, &err) < 0);
	assert_non_null(strstr(err.msg, "service account token"));
	unsetenv("KUBECONFIG");
	unsetenv("KUBERNETES_SERVICE_HOST");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(kubeconfig__with_inline_data__is_decoded),
	    cmocka_unit_test(kubeconfig__of_several_files__uses_the_first_of_each_name),
	    cmocka_unit_test(kubeconfig__with_a_fault__names_it),
	    cmocka_unit_test(in_cluster_config__reads_token_ca_and_namespace),
	    cmocka_unit_test(kubeconfig__in_a_pod__takes_precedence_over_the_service_account),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
