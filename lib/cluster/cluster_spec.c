/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cluster/cluster_spec.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>

#include "lib/base/pb.h"
#include "lib/io/json.h"

void mu_cluster_fini(struct mu_cluster *c)
{
	for (unsigned j = 0; j < c->n_jobs; j++) {
		for (unsigned t = 0; t < c->jobs[j].n_tasks; t++)
			free(c->jobs[j].tasks[t].address);
		free(c->jobs[j].tasks);
		free(c->jobs[j].name);
	}
	free(c->jobs);
	*c = (struct mu_cluster){0};
}

static bool is_job_name(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > 63 || !isalpha((unsigned char)name[0]))
		return false;
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_' && *p != '-')
			return false;
	return true;
}

int mu_address_check(const char *address, struct mu_err *err)
{
	const char *colon = strrchr(address, ':');
	bool is_invalid = false;

	if (strncmp(address, "unix:", 5) == 0 && address[5])
		return 0;
	if (!colon || colon == address || strlen(address) > 300)
		return mu_fail(err, MU_INVALID_ARGUMENT, "'%.80s' is not a host:port", address);
	bool is_ipv6 = *address == '[';
	if (is_ipv6 && colon[-1] != ']')
		is_invalid = true;
	for (const char *p = address; p < colon && !is_invalid; p++) {
		unsigned char c = (unsigned char)*p;
		is_invalid = c <= ' ' || c == '/' || c == ',' || c == '"' || c == 0x7f ||
			     (c == ':' && !is_ipv6);
	}
	char *end;
	long port = strtol(colon + 1, &end, 10);
	if (is_invalid || *end || !isdigit((unsigned char)colon[1]) || port < 1 || port > 65535)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "'%.80s' is not a host:port with a port from 1 to 65535", address);
	return 0;
}

/* Returns the index of the job, or the index at which to insert it. */
static unsigned find_job(const struct mu_cluster *c, const char *name, bool *found)
{
	unsigned at = 0;

	while (at < c->n_jobs && strcmp(c->jobs[at].name, name) < 0)
		at++;
	*found = at < c->n_jobs && strcmp(c->jobs[at].name, name) == 0;
	return at;
}

static unsigned find_task(const struct mu_cluster_job *j, int index, bool *found)
{
	unsigned low = 0, high = j->n_tasks;

	while (low < high) {
		unsigned mid = (low + high) / 2;
		if (j->tasks[mid].index < index)
			low = mid + 1;
		else
			high = mid;
	}
	*found = low < j->n_tasks && j->tasks[low].index == index;
	return low;
}

int mu_cluster_add(struct mu_cluster *c, const char *job, int index, const char *address,
		   struct mu_err *err)
{
	struct mu_cluster_job *j;
	unsigned at;
	bool found;
	int rc;

	if (!is_job_name(job))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "cluster: '%.80s' is not a job name (letters, digits, _ and -)",
			       job);
	if (index < 0)
		return mu_fail(err, MU_INVALID_ARGUMENT, "cluster: job '%s': index %d is negative",
			       job, index);
	if ((rc = mu_address_check(address, err)))
		return mu_wrap(err, "cluster: job '%s', task %d", job, index);
	at = find_job(c, job, &found);
	if (!found && c->n_jobs == MU_CLUSTER_MAX_JOBS)
		return mu_fail(err, MU_INVALID_ARGUMENT, "cluster: more than %d jobs",
			       MU_CLUSTER_MAX_JOBS);
	if (!found) {
		c->jobs = mu_xrealloc(c->jobs, (c->n_jobs + 1) * sizeof c->jobs[0]);
		memmove(&c->jobs[at + 1], &c->jobs[at], (c->n_jobs - at) * sizeof c->jobs[0]);
		c->n_jobs++;
		c->jobs[at] = (struct mu_cluster_job){.name = mu_xstrdup(job)};
	}
	j = &c->jobs[at];
	at = find_task(j, index, &found);
	if (found)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "cluster: job '%s' has two addresses for task %d: %s and %.80s", job,
			       index, j->tasks[at].address, address);
	if (j->n_tasks == MU_CLUSTER_MAX_TASKS)
		return mu_fail(err, MU_INVALID_ARGUMENT, "cluster: job '%s' has more than %d tasks",
			       job, MU_CLUSTER_MAX_TASKS);
	if ((j->n_tasks & (j->n_tasks - 1)) == 0) /* the capacity is a power of two */
		j->tasks =
		    mu_xrealloc(j->tasks, (j->n_tasks ? 2 * j->n_tasks : 1) * sizeof j->tasks[0]);
	memmove(&j->tasks[at + 1], &j->tasks[at], (j->n_tasks - at) * sizeof j->tasks[0]);
	j->tasks[at] = (struct mu_cluster_task){index, mu_xstrdup(address)};
	j->n_tasks++;
	return 0;
}

int mu_cluster_add_hosts(struct mu_cluster *c, const char *job, const char *hosts,
			 struct mu_err *err)
{
	int index = 0;

	if (!*hosts)
		return mu_fail(err, MU_INVALID_ARGUMENT, "cluster: job '%.63s' has no hosts", job);
	for (;;) {
		size_t n = strcspn(hosts, ",");
		MU_AUTO_FREE char *address = mu_xstrndup(hosts, n);
		int rc = mu_cluster_add(c, job, index++, address, err);
		if (rc)
			return rc;
		if (!hosts[n])
			return 0;
		hosts += n + 1;
	}
}

int mu_cluster_parse_flag(struct mu_cluster *c, const char *arg, struct mu_err *err)
{
	const char *equals = strchr(arg, '=');

	while (*arg == '-')
		arg++;
	if (!equals || equals - arg < 7 ||
	    (strncmp(equals - 6, "_hosts", 6) && strncmp(equals - 6, "-hosts", 6)))
		return 0;
	MU_AUTO_FREE char *job = mu_xstrndup(arg, (size_t)(equals - 6 - arg));
	int rc = mu_cluster_add_hosts(c, job, equals + 1, err);
	return rc ? rc : 1;
}

static int task_index(const char *key, int *out)
{
	char *end;
	long v = strtol(key, &end, 10);

	if (!isdigit((unsigned char)*key) || *end || v > INT_MAX || (key[0] == '0' && key[1]))
		return -1;
	*out = (int)v;
	return 0;
}

/* Ignores a job without tasks, as TensorFlow does. */
static int add_job(struct mu_cluster *c, const struct mu_doc_node *job, struct mu_err *err)
{
	int index = 0;

	if (job->kind != MU_DOC_LIST && job->kind != MU_DOC_MAP)
		return mu_doc_invalid(
		    job, err, "must be a list of addresses, or a map from index to address");
	mu_doc_each(job, t)
	{
		if (t->kind != MU_DOC_STRING || strlen(t->text) != t->len)
			return mu_doc_invalid(t, err, "must be a host:port");
		if (job->kind == MU_DOC_MAP && task_index(t->key, &index))
			return mu_doc_invalid(t, err, "a task's key must be its index, got '%.40s'",
					      t->key);
		int rc = mu_cluster_add(c, job->key, index++, t->text, err);
		if (rc)
			return rc;
	}
	return 0;
}

static int add_cluster(struct mu_cluster *c, const struct mu_doc_node *map, struct mu_err *err)
{
	if (!map || map->kind != MU_DOC_MAP || !map->first)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "cluster: must be a map from job to its addresses, like "
			       "{\"ps\": [\"host:2222\"]}");
	mu_doc_each(map, job)
	{
		int rc = add_job(c, job, err);
		if (rc)
			return rc;
	}
	return 0;
}

int mu_cluster_parse_json(struct mu_cluster *out, struct mu_span text, struct mu_err *err)
{
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
	MU_AUTO_CLUSTER c = {0};
	int rc = mu_json_parse(&d, text, "cluster", err);

	if (rc)
		return rc;
	const struct mu_doc_node *member = mu_doc_key(d->root, "cluster");
	bool has_member = member && member->kind == MU_DOC_MAP;
	if ((rc = add_cluster(&c, has_member ? member : d->root, err)))
		return rc;
	*out = c;
	c = (struct mu_cluster){0};
	return 0;
}

static int read_self(struct mu_self *self, const struct mu_cluster *c,
		     const struct mu_doc_node *task, struct mu_err *err)
{
	const char *job = NULL, *index_text = NULL;
	int64_t index = 0;
	int rc;

	*self = (struct mu_self){0};
	if (!task)
		return 0;
	if ((rc = mu_doc_opt_text(task, "type", &job, err)))
		return rc;
	const struct mu_doc_node *index_node = mu_doc_key(task, "index");
	if (index_node && index_node->kind == MU_DOC_STRING) { /* some programs write "0" */
		index_text = index_node->text;
		int parsed;
		if (task_index(index_text, &parsed))
			return mu_doc_invalid(index_node, err, "must be a task index, got '%.40s'",
					      index_text);
		index = parsed;
	} else if ((rc = mu_doc_opt_int(task, "index", 0, INT_MAX, &index, err))) {
		return rc;
	}
	if (!job || !is_job_name(job))
		return mu_doc_invalid(task, err, "needs a \"type\": the job of this task");
	/* An evaluator is not a member of the cluster that it evaluates. */
	if (strcmp(job, "evaluator") && !mu_cluster_address(c, job, (int)index, err))
		return mu_wrap(err, "TF_CONFIG: task");
	memcpy(self->job, job, strlen(job) + 1);
	self->index = (int)index;
	return 0;
}

int mu_cluster_parse_tf_config(struct mu_cluster *out, struct mu_self *self, struct mu_span text,
			       struct mu_err *err)
{
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;
	MU_AUTO_CLUSTER c = {0};
	struct mu_self task_self;
	int rc = mu_json_parse(&d, text, "TF_CONFIG", err);

	if (rc)
		return rc;
	if (add_cluster(&c, mu_doc_key(d->root, "cluster"), err))
		return mu_wrap(err, "TF_CONFIG");
	struct mu_doc_node *task;
	if ((rc = mu_doc_opt_map(d->root, "task", &task, err)) ||
	    (rc = read_self(&task_self, &c, task, err)))
		return rc;
	*out = c;
	c = (struct mu_cluster){0};
	if (self)
		*self = task_self;
	return 0;
}

const struct mu_cluster_job *mu_cluster_job(const struct mu_cluster *c, const char *job)
{
	bool found;
	unsigned at = find_job(c, job, &found);

	return found ? &c->jobs[at] : NULL;
}

unsigned mu_cluster_num_tasks(const struct mu_cluster *c, const char *job)
{
	const struct mu_cluster_job *j = mu_cluster_job(c, job);

	return j ? j->n_tasks : 0;
}

const char *mu_cluster_address(const struct mu_cluster *c, const char *job, int index,
			       struct mu_err *err)
{
	const struct mu_cluster_job *j = mu_cluster_job(c, job);
	MU_AUTO_BUF names = {0};
	bool found = false;

	if (j) {
		unsigned at = find_task(j, index, &found);
		if (found)
			return j->tasks[at].address;
		mu_fail(err, MU_NOT_FOUND, "job '%s' has no task %d; it has %u, the last is %d",
			job, index, j->n_tasks, j->tasks[j->n_tasks - 1].index);
		return NULL;
	}
	for (unsigned i = 0; i < c->n_jobs; i++)
		mu_buf_printf(&names, "%s%s", i ? ", " : "", c->jobs[i].name);
	mu_fail(err, MU_NOT_FOUND, "no job '%.63s' in the cluster; it has: %.300s", job,
		names.len ? names.data : "none");
	return NULL;
}

/* Returns {"worker": ["host:port", …]}; a job with gaps in its indices is a map: {"worker": {"7":
 * "host:port"}}. */
static cJSON *cluster_tree(const struct mu_cluster *c)
{
	cJSON *tree = cJSON_CreateObject();

	for (unsigned i = 0; i < c->n_jobs; i++) {
		const struct mu_cluster_job *j = &c->jobs[i];
		bool is_dense = j->tasks[j->n_tasks - 1].index == (int)j->n_tasks - 1;
		cJSON *tasks = is_dense ? cJSON_AddArrayToObject(tree, j->name)
					: cJSON_AddObjectToObject(tree, j->name);

		for (unsigned t = 0; t < j->n_tasks; t++) {
			cJSON *address = cJSON_CreateStringReference(j->tasks[t].address);
			char index[16];

			snprintf(index, sizeof(index), "%d", j->tasks[t].index);
			if (is_dense)
				cJSON_AddItemToArray(tasks, address);
			else
				cJSON_AddItemToObject(tasks, index, address);
		}
	}
	return tree;
}

void mu_cluster_write_json(const struct mu_cluster *c, struct mu_buf *out)
{
	cJSON *tree = cluster_tree(c);

	mu_json_print(out, tree);
	cJSON_Delete(tree);
}

void mu_cluster_write_tf_config(const struct mu_cluster *c, const char *job, int index,
				struct mu_buf *out)
{
	cJSON *config = cJSON_CreateObject(), *task;

	cJSON_AddItemToObject(config, "cluster", cluster_tree(c));
	task = cJSON_AddObjectToObject(config, "task");
	cJSON_AddStringToObject(task, "type", job);
	cJSON_AddNumberToObject(task, "index", index);
	mu_json_print(out, config);
	cJSON_Delete(config);
}

/* ClusterDef{job = 1}, JobDef{name = 1, tasks = 2}, a map entry{key = 1, value = 2} */
void mu_cluster_write_def(const struct mu_cluster *c, struct mu_buf *out)
{
	for (unsigned j = 0; j < c->n_jobs; j++) {
		const struct mu_cluster_job *job = &c->jobs[j];
		size_t in_def = mu_pb_begin(out, 1);

		mu_pb_put_str(out, 1, job->name);
		for (unsigned t = 0; t < job->n_tasks; t++) {
			size_t in_job = mu_pb_begin(out, 2);

			mu_pb_put_int(out, 1, job->tasks[t].index);
			mu_pb_put_str(out, 2, job->tasks[t].address);
			mu_pb_end(out, in_job);
		}
		mu_pb_end(out, in_def);
	}
}
