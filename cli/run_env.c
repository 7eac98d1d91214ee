/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char *run_env_expand(const char *text)
{
	struct mu_buf out = {0};

	for (const char *p = text, *end; *p; p++) {
		MU_AUTO_FREE char *name = NULL;
		const char *value = NULL;

		if (p[0] == '$' && p[1] == '$') {
			mu_buf_putc(&out, *++p);
			continue;
		}
		if (p[0] == '$' && p[1] == '(' && (end = strchr(p, ')'))) {
			name = mu_xstrndup(p + 2, (size_t)(end - p - 2));
			value = getenv(name);
		}
		mu_buf_puts(&out, value ? value : "");
		if (value)
			p = end;
		else
			mu_buf_putc(&out, *p);
	}
	return mu_buf_take(&out);
}

/* The value of a fieldRef, or NULL for a field that a process does not have. */
static const char *field_value(const struct plan_pod *pod, const char *namespace, const char *field)
{
	const struct {
		const char *field, *value;
	} fields[] = {
	    {"metadata.name", pod->name},   {"metadata.namespace", namespace},
	    {"spec.nodeName", "localhost"}, {"spec.serviceAccountName", "default"},
	    {"status.hostIP", "127.0.0.1"}, {"status.hostIPs", "127.0.0.1"},
	    {"status.podIP", "127.0.0.1"},  {"status.podIPs", "127.0.0.1"},
	};

	for (unsigned i = 0; i < MU_COUNT(fields); i++)
		if (strcmp(field, fields[i].field) == 0)
			return fields[i].value;
	return NULL;
}

/* Sets a variable whose value comes from the pod, or from an object of the cluster. */
static void set_from(const struct plan_pod *pod, const char *namespace, const char *name,
		     const struct mu_doc_node *from)
{
	const char *field = mu_doc_text(from, "fieldRef.fieldPath", "");
	const char *value = field_value(pod, namespace, field);

	if (value)
		setenv(name, value, 1);
	else if (!getenv(name) && !mu_doc_bool(from->first, "optional", false))
		fprintf(stderr, "%s is not set: a process has no %s; export %s before muster run\n",
			name,
			*field        ? field
			: from->first ? from->first->key
				      : "valueFrom",
			name);
}

void run_env_set(const struct plan_pod *pod, const char *namespace)
{
	mu_doc_each(pod->spec ? mu_doc_key(pod->spec->container, "env") : NULL, e)
	{
		const char *name = mu_doc_text(e, "name", NULL);
		const struct mu_doc_node *from = mu_doc_key(e, "valueFrom");
		MU_AUTO_FREE char *value = run_env_expand(mu_doc_text(e, "value", ""));

		if (name && from)
			set_from(pod, namespace, name, from);
		else if (name)
			setenv(name, value, 1);
	}
}

void run_env_change_folder(const struct plan_pod *pod)
{
	const char *folder =
	    pod->spec ? mu_doc_text(pod->spec->container, "workingDir", NULL) : NULL;

	if (folder && chdir(folder))
		fprintf(stderr, "workingDir %s is not used: %s\n", folder, strerror(errno));
}
