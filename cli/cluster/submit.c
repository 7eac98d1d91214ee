/* SPDX-License-Identifier: Apache-2.0 */
/* muster submit: checks a manifest as muster validate does, then applies it (server-side apply,
 * field manager "muster"). The API server receives the text of the manifest, as from kubectl. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cluster/cluster.h"
#include "cli/manifest.h"

enum { MANIFEST_MAX = 4 << 20 };

struct submission {
	const char *path;
	struct cluster_options options;
	bool force;
	struct mu_buf text;
	struct job_spec *spec;
	struct cluster_job job;
};

static int read_manifest(struct submission *s, struct mu_err *err)
{
	const char *ns;
	int rc = mu_buf_read_input(&s->text, s->path, MANIFEST_MAX, err);

	if (!rc)
		rc = job_spec_parse(&s->spec, mu_buf_span(&s->text), s->path, err);
	if (!rc)
		rc = validate_manifest(s->spec, err);
	if (rc)
		return rc;
	ns = mu_doc_text(s->spec->doc->root, "metadata.namespace", NULL);
	if (ns && s->options.ns && strcmp(ns, s->options.ns) != 0)
		return mu_fail(
		    err, MU_INVALID_ARGUMENT,
		    "%s: metadata.namespace is '%s' but -n is '%.63s': remove one of them", s->path,
		    ns, s->options.ns);
	if (ns)
		s->options.ns = ns;
	return 0;
}

static int apply_manifest(const struct submission *s, cJSON **out, struct mu_err *err)
{
	MU_AUTO_BUF path = {0};
	int rc;

	mu_buf_printf(&path, CLUSTER_JOB_PATH "?fieldManager=muster&fieldValidation=Strict%s",
		      s->job.ns, s->job.name, s->force ? "&force=true" : "");
	rc = kube_call(s->job.client,
		       &(struct kube_request){.method = "PATCH",
					      .path = path.data,
					      .content_type = "application/apply-patch+yaml",
					      .body = mu_buf_span(&s->text)},
		       out, err);
	if (rc == -MU_NOT_FOUND && !strstr(err->msg, "namespaces"))
		return mu_fail(err, MU_NOT_FOUND, CLUSTER_NO_JOBS);
	if (rc == -MU_ABORTED)
		return mu_append(err, "; use --force-conflicts to take over the fields");
	return rc;
}

/* before: the job before the apply, or NULL. */
static void print_outcome(const struct submission *s, const cJSON *before, const cJSON *after)
{
	const char *phase = field_text(after, "status.phase", "");
	bool ended = strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
	bool same = before && field_number(before, "metadata.generation", 0) ==
				  field_number(after, "metadata.generation", 0);
	MU_AUTO_FREE char *options = cluster_options_text(&s->options);

	printf("%s: job '%s' is %s in namespace '%s'\n", s->path, s->job.name,
	       !before ? "created"
	       : same  ? "unchanged"
		       : "changed",
	       s->job.ns);
	if (ended)
		printf("It has %s already. To run it again, delete it first:\n"
		       "  kubectl delete dtj %s -n %s\n",
		       strcmp(phase, "Failed") == 0 ? "failed" : "succeeded", s->job.name,
		       s->job.ns);
	else
		printf("Try next:\n"
		       "  muster wait %s%s\n"
		       "  muster logs %s -f%s\n",
		       s->job.name, options, s->job.name, options);
}

static int submit_manifest(struct submission *s, struct mu_err *err)
{
	cJSON *before = NULL, *after = NULL;
	int rc = read_manifest(s, err);

	if (!rc)
		rc = cluster_connect(&s->options, &s->job.client, &s->job.ns, err);
	if (rc < 0)
		return rc;
	s->job.name = mu_xstrdup(s->spec->name);
	rc = cluster_job_get(&s->job, &before, err);
	if (!rc || rc == -MU_NOT_FOUND)
		rc = apply_manifest(s, &after, err);
	if (!rc)
		print_outcome(s, before, after);
	cJSON_Delete(before);
	cJSON_Delete(after);
	return rc;
}

int cluster_submit(int argc, char **argv)
{
	struct submission s = {0};
	const struct cli_option table[] = {
	    CLUSTER_OPTIONS(&s.options), {"force-conflicts", .flag = &s.force}, {NULL}};
	struct mu_err err = {0};
	int n = cli_options("submit", argc, argv, table, 1), rc;

	if (n < 0)
		return CLI_USAGE;
	if (!n || s.options.all_namespaces)
		return cli_usage("submit", "expected one manifest");
	s.path = argv[0];
	rc = submit_manifest(&s, &err);
	cluster_job_close(&s.job);
	job_spec_free(s.spec);
	mu_buf_fini(&s.text);
	return rc < 0 ? cli_fail(&err) : CLI_OK;
}
