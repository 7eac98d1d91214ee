/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a client from command-line options, which are named as those of kubectl. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cluster/cluster.h"
#include "cli/manifest.h"

static bool is_dns_label(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return n && n <= 63 && !s[n];
}

int cluster_connect(const struct cluster_options *o, struct kube_client **out, char **ns,
		    struct mu_err *err)
{
	struct kube_config config;
	MU_AUTO_FREE char *chosen = NULL;
	int rc;

	if (o->ns && !is_dns_label(o->ns))
		return mu_fail(err, MU_INVALID_ARGUMENT, "'%.63s' is not a valid namespace name",
			       o->ns);
	rc = kube_config_load(&config, o->kubeconfig, o->context, err);
	if (rc < 0)
		return rc;
	if (!o->all_namespaces)
		chosen = mu_xstrdup(o->ns ? o->ns : config.ns ? config.ns : "default");
	rc = kube_client_new(out, &config, err);
	kube_config_fini(&config);
	if (rc == 0)
		*ns = mu_steal(&chosen);
	return rc;
}

int cluster_get(struct kube_client *c, cJSON **out, struct mu_err *err, const char *fmt, ...)
{
	char path[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return kube_call(c,
			 &(struct kube_request){.method = "GET", .path = path, .timeout_ms = 10000},
			 out, err);
}

int cluster_job_open(struct cluster_job *out, const char *verb, const char *arg,
		     const struct cluster_options *o)
{
	struct cluster_options options = *o;
	MU_AUTO_FREE char *name = NULL;
	MU_AUTO_FREE char *ns = NULL;
	struct mu_err err = {0};

	*out = (struct cluster_job){0};
	if (!arg || o->all_namespaces)
		return cli_usage(verb, "expected one job: its name, job/NAME or its manifest");
	if (manifest_resolve_job(arg, &name, &ns, &err) < 0)
		return cli_fail(&err);
	if (!*name || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.")])
		return cli_usage(verb, "'%.63s' is not a valid job name", name);
	if (!options.ns)
		options.ns = ns;
	if (cluster_connect(&options, &out->client, &out->ns, &err) < 0)
		return cli_fail(&err);
	out->name = mu_steal(&name);
	return CLI_OK;
}

void cluster_job_close(struct cluster_job *job)
{
	kube_client_free(job->client);
	free(job->ns);
	free(job->name);
}

int cluster_job_get(const struct cluster_job *job, cJSON **out, struct mu_err *err)
{
	return cluster_get(job->client, out, err, CLUSTER_JOB_PATH, job->ns, job->name);
}

int cluster_job_pods(const struct cluster_job *job, cJSON **out, struct mu_err *err)
{
	return cluster_get(job->client, out, err,
			   "/api/v1/namespaces/%s/pods?labelSelector=muster.dev%%2Fjob%%3D%s",
			   job->ns, job->name);
}

char *cluster_options_text(const struct cluster_options *o)
{
	MU_AUTO_BUF out = {0};

	if (o->ns)
		mu_buf_printf(&out, " -n %s", o->ns);
	if (o->context)
		mu_buf_printf(&out, " --context %s", o->context);
	if (o->kubeconfig)
		mu_buf_printf(&out, " --kubeconfig %s", o->kubeconfig);
	return mu_buf_take(&out);
}

bool cluster_is_transient(int rc)
{
	return rc == -MU_UNAVAILABLE || rc == -MU_DEADLINE_EXCEEDED || rc == -MU_RESOURCE_EXHAUSTED;
}
