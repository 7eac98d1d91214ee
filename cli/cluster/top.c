/* SPDX-License-Identifier: Apache-2.0 */
/* muster top: the jobs of a cluster in descending order of speed.
 *
 * It only reads the status of the jobs. Permission to list jobs is enough, and it causes no load on
 * pods or the operator.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cluster/cluster.h"

#define LIST_PATH "/apis/muster.dev/v1"
enum { CELL = 40, ROWS_MAX = 10000 };
static const double refresh_s = 2;

struct column {
	const char *head;
	bool right;
};
static const struct column columns[] = {
    {"NAMESPACE", false}, {"NAME", false},    {"STATE", false},   {"READY", true},
    {"STEP", true},       {"PROGRESS", true}, {"STEPS/S", true},  {"EXAMPLES/S", true},
    {"LOSS", true},       {"RESTARTS", true}, {"KERNELS", false}, {"AGE", true},
};
enum { COLUMNS = MU_COUNT(columns) };
struct row {
	char cell[MU_COUNT(columns)][CELL];
	double rate;
};

static void put_number(char *cell, const cJSON *job, const char *path, const char *fmt)
{
	const double none = -1e308;
	double v = field_number(job, path, none);

	snprintf(cell, CELL, "%s", "-");
	if (v > none)
		snprintf(cell, CELL, fmt, v);
}

static void fill_row(struct row *r, const cJSON *job, double now)
{
	char age[16];

	snprintf(r->cell[0], CELL, "%.39s", field_text(job, "metadata.namespace", ""));
	snprintf(r->cell[1], CELL, "%.39s", field_text(job, "metadata.name", ""));
	snprintf(r->cell[2], CELL, "%.39s", field_text(job, "status.phase", "New"));
	snprintf(r->cell[3], CELL, "%.39s", field_text(job, "status.summary.ready", "-"));
	put_number(r->cell[4], job, "status.progress.step", "%.0f");
	snprintf(r->cell[5], CELL, "%.39s", field_text(job, "status.progress.percent", "-"));
	put_number(r->cell[6], job, "status.progress.stepsPerSecond", "%.1f");
	put_number(r->cell[7], job, "status.progress.examplesPerSecond", "%.0f");
	put_number(r->cell[8], job, "status.progress.loss", "%.4g");
	put_number(r->cell[9], job, "status.restarts", "%.0f");
	snprintf(r->cell[10], CELL, "%.39s", field_text(job, "status.summary.kernels", "-"));
	snprintf(r->cell[11], CELL, "%s", field_age(job, "metadata.creationTimestamp", now, age));
	r->rate = strcmp(r->cell[2], "Running") == 0
		      ? field_number(job, "status.progress.examplesPerSecond", 0)
		      : -1;
}

static int compare_speed(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = (x->rate < y->rate) - (x->rate > y->rate);

	order = order ? order : strcmp(x->cell[0], y->cell[0]);
	return order ? order : strcmp(x->cell[1], y->cell[1]);
}

static void put_row(struct mu_buf *out, const struct row *r, const int *width, bool with_namespace)
{
	for (int c = with_namespace ? 0 : 1; c < COLUMNS; c++) {
		const char *text = r ? r->cell[c] : columns[c].head;
		int pad = width[c] - (int)strlen(text);

		if (columns[c].right)
			mu_buf_printf(out, "%*s", pad, "");
		put_printable(out, text);
		if (c + 1 < COLUMNS)
			mu_buf_printf(out, "%*s  ", columns[c].right ? 0 : pad, "");
	}
	mu_buf_putc(out, '\n');
}

void top_print(struct mu_buf *out, const cJSON *jobs, bool with_namespace, double now)
{
	int n = cJSON_GetArraySize(jobs), width[COLUMNS], i = 0;
	struct row *rows;
	const cJSON *job;

	n = n > ROWS_MAX ? ROWS_MAX : n;
	rows = MU_NEW_ARRAY(struct row, (size_t)n + 1);
	cJSON_ArrayForEach(job, jobs)
	{
		if (i < n)
			fill_row(&rows[i++], job, now);
	}
	qsort(rows, (size_t)n, sizeof(rows[0]), compare_speed);
	for (int c = 0; c < COLUMNS; c++) {
		width[c] = (int)strlen(columns[c].head);
		for (i = 0; i < n; i++)
			if ((int)strlen(rows[i].cell[c]) > width[c])
				width[c] = (int)strlen(rows[i].cell[c]);
	}
	put_row(out, NULL, width, with_namespace);
	for (i = 0; i < n; i++)
		put_row(out, &rows[i], width, with_namespace);
	free(rows);
}

/* Keeps only the fields of the table: complete objects of thousands of jobs would need too much
 * memory. */
static void add_job(void *arg, const cJSON *object)
{
	static const char *const status_fields[] = {"phase", "summary", "progress", "restarts"};
	cJSON *job = cJSON_CreateObject(), *status, *metadata;

	metadata = cJSON_Duplicate(field_at(object, "metadata"), true);
	cJSON_DeleteItemFromObjectCaseSensitive(metadata, "managedFields");
	cJSON_DeleteItemFromObjectCaseSensitive(metadata, "annotations");
	cJSON_AddItemToObject(job, "metadata", metadata ? metadata : cJSON_CreateObject());
	status = cJSON_AddObjectToObject(job, "status");
	for (unsigned i = 0; i < MU_COUNT(status_fields); i++) {
		const cJSON *v =
		    cJSON_GetObjectItemCaseSensitive(field_at(object, "status"), status_fields[i]);
		if (v)
			cJSON_AddItemToObject(status, status_fields[i], cJSON_Duplicate(v, true));
	}
	cJSON_AddItemToArray(arg, job);
}

static int show_jobs(struct kube_client *c, const char *ns, bool live, struct mu_err *err)
{
	MU_AUTO_FREE char *path =
	    ns ? mu_xasprintf(LIST_PATH "/namespaces/%s/distributedtrainingjobs", ns)
	       : mu_xstrdup(LIST_PATH "/distributedtrainingjobs");
	MU_AUTO_FREE char *version = NULL;
	MU_AUTO_BUF out = {0};
	cJSON *jobs = cJSON_CreateArray();
	int rc = kube_list(c, path, NULL, add_job, jobs, &version, err);

	if (rc == 0) {
		if (live)
			mu_buf_puts(&out, "\033[H\033[2J");
		top_print(&out, jobs, !ns, (double)time(NULL));
		if (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout))
			rc = mu_fail(err, MU_ABORTED, "standard output is closed");
	}
	cJSON_Delete(jobs);
	if (rc == -MU_NOT_FOUND)
		rc = mu_fail(err, MU_NOT_FOUND, CLUSTER_NO_JOBS);
	return rc;
}

int cluster_top(int argc, char **argv)
{
	struct cluster_options o = {0};
	struct kube_client *c = NULL;
	MU_AUTO_FREE char *ns = NULL;
	struct mu_err err = {0};
	bool once = !isatty(STDOUT_FILENO);
	const struct cli_option table[] = {CLUSTER_OPTIONS(&o), {"once", .flag = &once}, {NULL}};
	bool is_shown = false;
	int rc;

	if (cli_options("top", argc, argv, table, 0) < 0)
		return CLI_USAGE;
	if (cluster_connect(&o, &c, &ns, &err) < 0)
		return cli_fail(&err);
	do { /* a failed refresh leaves the last jobs on the screen */
		rc = show_jobs(c, ns, !once, &err);
		is_shown = is_shown || rc == 0;
	} while ((rc == 0 || (is_shown && cluster_is_transient(rc))) && !once &&
		 kube_client_sleep(c, refresh_s));
	kube_client_free(c);
	return rc < 0 ? cli_fail(&err) : CLI_OK;
}
