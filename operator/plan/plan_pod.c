/* SPDX-License-Identifier: Apache-2.0 */
/* The name, arguments and environment of a pod or process of a job. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "lib/base/map.h"
#include "lib/io/json.h"
#include "operator/plan/planner.h"

enum { MAX_ENV = 24, ADDRESS = 320 };

static void address_of(const struct planner *p, const char *task, int index, char *out, size_t size)
{
	if (p->options->address)
		p->options->address(p->options->user, p->spec, task, index, out, size);
	else
		snprintf(out, size, "%s-%s-%d.%s.%s.svc:%d", p->spec->name, task, index,
			 p->spec->name, p->spec->namespace, JOB_DEFAULT_PORT);
}

/* TensorFlow's programs expect that the evaluator is not in the cluster. */
static bool is_member(const struct planner *p, const struct task_spec *t)
{
	return t->kind != TASK_TENSORBOARD &&
	       !(p->spec->program == PROGRAM_COMMAND && t->kind == TASK_EVALUATOR);
}

/* Lists the members that the spec defines, with `size` tasks of the type `resized` (or NULL). */
static void list_members(const struct planner *p, const struct task_spec *resized, int size,
			 struct mu_cluster *out)
{
	char address[ADDRESS];

	for (unsigned t = 0; t < p->spec->n_tasks; t++) {
		const struct task_spec *task = &p->spec->tasks[t];
		int n = !is_member(p, task) ? 0 : task == resized ? size : task->replicas;

		for (int i = 0; i < n; i++) {
			address_of(p, task->name, i, address, sizeof address);
			mu_cluster_add(out, task->name, i, address, NULL);
		}
	}
}

void plan_update_epoch(struct planner *p)
{
	MU_AUTO_BUF text = {0};
	char hash[sizeof p->status->members];

	list_members(p, NULL, 0, &p->cluster);
	mu_cluster_write_json(&p->cluster, &text);
	snprintf(hash, sizeof hash, "%016" PRIx64, mu_hash(text.data, text.len, 0));
	if (strcmp(hash, p->status->members) == 0)
		return;
	memcpy(p->status->members, hash, sizeof hash);
	/* pods are created before the status is written: an edit meanwhile needs another epoch */
	if (p->status->epoch++)
		p->plan->urgent = true;
	if (p->status->epoch < p->spec->generation)
		p->status->epoch = (int)p->spec->generation;
}

/* A pod that starts has the epoch in its environment.  A task that has an epoch had all earlier
 * ones, and a new task starts with the current one.  So the minimum epoch of all tasks never falls,
 * even for an operator that has just started and has polled no task yet. */
void plan_membership_update(struct planner *p)
{
	int min_epoch = p->status->epoch;
	bool any = false;

	plan_each_wanted (p, x) {
		if (!is_member(p, x->task) || !plan_pod_is_live(x->pod) || x->pod->epoch <= 0)
			continue;
		any = true;
		min_epoch = x->pod->epoch < min_epoch ? x->pod->epoch : min_epoch;
	}
	if (any && min_epoch > p->status->epoch_seen)
		p->status->epoch_seen = min_epoch;
	if (any && min_epoch < p->status->epoch) {
		MU_AUTO_BUF cluster = {0};
		mu_cluster_write_json(&p->cluster, &cluster);
		p->plan->membership_update =
		    plan_text(p, "{\"epoch\":%d,\"cluster\":%s}", p->status->epoch, cluster.data);
	}
}

static void put_env(struct planner *p, struct plan_pod *pod, const char *name, const char *value)
{
	assert(pod->n_env < MAX_ENV);
	pod->env[pod->n_env++] = (struct plan_env){name, mu_arena_strdup(&p->plan->arena, value)};
}

static void put_number(struct planner *p, struct plan_pod *pod, const char *name, int value)
{
	put_env(p, pod, name, plan_text(p, "%d", value));
}

static void fill_env(struct planner *p, struct plan_pod *pod, const struct mu_cluster *cluster)
{
	const struct train_spec *t = &p->spec->train;
	const struct plan_options *o = p->options;
	const char *digest = o->token_digest ? o->token_digest(o->user) : "";
	MU_AUTO_BUF tf_config = {0};
	MU_AUTO_BUF train = {0};

	pod->env = MU_ARENA_ARRAY(&p->plan->arena, struct plan_env, MAX_ENV);
	if (pod->role == ROLE_TENSORBOARD)
		return;
	mu_cluster_write_tf_config(cluster, pod->task, pod->index, &tf_config);
	put_env(p, pod, "TF_CONFIG", tf_config.data);
	put_number(p, pod, "MUSTER_EPOCH", pod->epoch);
	if (!o->address) { /* `muster run` chooses the ports itself */
		put_number(p, pod, "MUSTER_PORT", pod->port);
		put_number(p, pod, "MUSTER_STREAM_PORT", JOB_STREAM_PORT);
		put_number(p, pod, "MUSTER_HTTP_PORT", pod->http_port);
	}
	if (pod->secret)
		put_env(p, pod, "MUSTER_TLS", JOB_TLS_PATH);
	if (digest[0])
		put_env(p, pod, "MUSTER_TOKEN_SHA256", digest);
	if (pod->role == ROLE_TRAINER) {
		train_spec_write(t, &train);
		put_env(p, pod, "MUSTER_TRAIN", train.data);
	}
	if (pod->role == ROLE_COMMAND) {
		put_env(p, pod, "MUSTER_MODE", t->sync ? "sync" : "async");
		if (t->replicas_to_aggregate)
			put_number(p, pod, "MUSTER_REPLICAS_TO_AGGREGATE",
				   t->replicas_to_aggregate);
		if (t->backup_workers)
			put_number(p, pod, "MUSTER_BACKUP_WORKERS", t->backup_workers);
	}
	if (t->checkpoint_path)
		put_env(p, pod, "MUSTER_CHECKPOINT", t->checkpoint_path);
	if (pod->is_departure_pod)
		put_env(p, pod, "MUSTER_LEAVE", "1");
	if (pod->kernels.required)
		put_env(p, pod, "MUSTER_KERNELS", pod->kernels.variant);
	if (!pod->kernels.gpu)
		put_env(p, pod, "NVIDIA_VISIBLE_DEVICES", "void");
}

/* --ps_hosts=… --worker_hosts=… --job_name=… --task_index=… */
static void put_flags(struct planner *p, const struct plan_pod *pod, const char **argv, unsigned n)
{
	const struct mu_cluster *c = &p->cluster;
	struct mu_arena *a = &p->plan->arena;

	for (unsigned j = 0; j < c->n_jobs; j++) {
		MU_AUTO_BUF hosts = {0};
		for (unsigned t = 0; t < c->jobs[j].n_tasks; t++)
			mu_buf_printf(&hosts, "%s%s", t ? "," : "", c->jobs[j].tasks[t].address);
		argv[n++] = mu_arena_printf(a, "--%s_hosts=%s", c->jobs[j].name, hosts.data);
	}
	argv[n++] = mu_arena_printf(a, "--job_name=%s", pod->task);
	argv[n++] = mu_arena_printf(a, "--task_index=%d", pod->index);
}

static const char *const *command_of(struct planner *p, const struct plan_pod *pod)
{
	const struct job_spec *s = p->spec;
	unsigned n = s->command->n + (s->args ? s->args->n : 0), i = 0;
	const char **argv = MU_ARENA_ARRAY(&p->plan->arena, const char *, n + JOB_MAX_TASKS + 3);

	mu_doc_each(s->command, c) argv[i++] = c->text;
	mu_doc_each(s->args, c) argv[i++] = c->text;
	if (s->classic_flags)
		put_flags(p, pod, argv, i);
	return argv;
}

static const char *const *tensorboard_argv(struct planner *p)
{
	const char **argv = MU_ARENA_ARRAY(&p->plan->arena, const char *, 5);

	argv[0] = "tensorboard";
	argv[1] = plan_text(p, "--logdir=%s", p->spec->train.summary_path);
	argv[2] = "--bind_all";
	argv[3] = plan_text(p, "--port=%d", JOB_TENSORBOARD_PORT);
	return argv;
}

static enum plan_role role_of(const struct job_spec *s, const struct task_spec *t)
{
	if (t->kind == TASK_TENSORBOARD)
		return ROLE_TENSORBOARD;
	if (s->program == PROGRAM_COMMAND)
		return ROLE_COMMAND;
	if (s->program == PROGRAM_TRAIN &&
	    (t->kind == TASK_WORKER || t->kind == TASK_CHIEF || t->kind == TASK_EVALUATOR))
		return ROLE_TRAINER;
	return ROLE_SERVER;
}

const char *plan_image(const struct planner *p, const struct task_spec *t, bool gpu)
{
	if (t->image)
		return t->image;
	if (t->kind == TASK_TENSORBOARD)
		return p->options->image_tensorboard;
	return gpu && p->options->image_gpu ? p->options->image_gpu : p->options->image;
}

static struct plan_pod *make_pod(struct planner *p, const struct task_index *x,
				 int pending_departure_size, const struct kernel_choice *kernels)
{
	static const char *const server[] = {"muster-task", NULL};
	static const char *const trainer[] = {"muster", "train", NULL};
	struct plan_pod *pod = MU_ARENA_NEW(&p->plan->arena, struct plan_pod);
	const struct task_spec *t = x->task;
	bool tensorboard = t->kind == TASK_TENSORBOARD;
	MU_AUTO_CLUSTER old_cluster = {0};

	*pod = (struct plan_pod){
	    .name = plan_pod_name(p, t->name, x->index),
	    .task = t->name,
	    .index = x->index,
	    .role = role_of(p->spec, t),
	    .image = plan_image(p, t, kernels->gpu),
	    .kernels = *kernels,
	    .spec = t,
	    .volume_claim = p->spec->volume_claim,
	    .mount_path = p->spec->volume_claim ? p->spec->train.checkpoint_path : NULL,
	    .secret = plan_has_tls(p) && !tensorboard ? p->status->security.secret : NULL,
	    .members = p->spec->gang && !tensorboard ? p->spec->replicas : 0,
	    .port = JOB_DEFAULT_PORT,
	    .http_port = tensorboard ? JOB_TENSORBOARD_PORT : JOB_DEFAULT_HTTP_PORT,
	    .epoch = tensorboard ? 0 : p->status->epoch,
	    .is_member = is_member(p, t),
	    .is_departure_pod = pending_departure_size > 0,
	};
	pod->argv = pod->role == ROLE_TENSORBOARD ? tensorboard_argv(p)
		    : pod->role == ROLE_COMMAND   ? command_of(p, pod)
		    : pod->role == ROLE_TRAINER   ? trainer
						  : server;
	if (pending_departure_size) /* the cluster as it was before the scale-down */
		list_members(p, t, pending_departure_size, &old_cluster);
	fill_env(p, pod, pending_departure_size ? &old_cluster : &p->cluster);
	return pod;
}

void plan_create_pod(struct planner *p, const struct task_index *x, int pending_departure_size)
{
	const struct index_status *e = x->record;
	struct kernel_choice kernels;
	struct plan_action *a;
	struct plan_pod *pod;

	/* A later time is from before the clock was set back.  The delay of a departure pod is not
	 * that of a worker. */
	if (e->retry_at > p->now && e->retry_at <= p->now + PLAN_BACKOFF_MAX_S &&
	    (pending_departure_size || !e->pending_departure_size)) {
		plan_requeue_at(p, e->retry_at);
		return;
	}
	if (p->options->creates_max && p->n_creates == p->options->creates_max && !p->spec->gang)
		return;
	if (!plan_choose_kernels(p, x, pending_departure_size > 0, &kernels))
		return;
	p->n_creates++;
	pod = make_pod(p, x, pending_departure_size, &kernels);
	if (pod->role == ROLE_TENSORBOARD) {
		a = plan_add_action(p, ACTION_CREATE_SERVICE, NULL, 0, "Created",
				    "the name under which users find TensorBoard");
		a->name = plan_text(p, "%s-%s", p->spec->name, x->task->name);
		a->pod = pod;
	}
	plan_add_action(p, ACTION_CREATE_POD, x->task->name, x->index, "Created",
			plan_text(p, "kernels %s", kernels.reason))
	    ->pod = pod;
	if (!pending_departure_size)
		memcpy(x->status->kernels, kernels.variant, sizeof x->status->kernels);
}
