/* SPDX-License-Identifier: Apache-2.0 */
/* A distributed trainer: every task runs this program. The flags or TF_CONFIG define the task.
 *
 *	hosts="--ps_hosts=localhost:2222,localhost:2223"
 *	hosts="$hosts --worker_hosts=localhost:2224,localhost:2225"
 *	trainer $hosts --job_name=ps --task_index=0 &
 *	trainer $hosts --job_name=ps --task_index=1 &
 *	trainer $hosts --job_name=worker --task_index=0 &
 *	trainer $hosts --job_name=worker --task_index=1
 *
 * Each worker builds the same graph: parameters on the parameter servers, round robin, and the
 * computation on itself (between-graph replication). With --sync a step waits for gradients of
 * --aggregate workers. If that is one less than the number of workers, one worker is a backup.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "examples/waves.h"
#include "lib/base/log.h"
#include "muster/server.h"
#include "muster/train.h"

enum { FEATURES = 20, HIDDEN = 16, CLASSES = 5, BATCH = 32 };

struct settings {
	struct mu_cluster cluster;
	struct mu_self self;
	int64_t steps;
	bool sync;
	int aggregate;
	const char *checkpoints;
};
struct model {
	struct mu_out x, labels, loss, train;
	struct mu_var *step;
	struct mu_sync sync;
};

static volatile int stop_requested;

static void on_stop(int sig)
{
	stop_requested = 1;
}

static struct mu_out dense(struct mu_builder *b, const char *name, struct mu_out x, int64_t in,
			   int64_t out, int64_t seed)
{
	struct mu_init init = {
	    .kind = MU_INIT_UNIFORM, .value = sqrt(6.0 / (double)(in + out)), .seed = seed};
	struct mu_var *kernel, *bias;

	mu_push_name(b, name);
	kernel = mu_variable(b, "kernel", MU_FLOAT, MU_SHAPE(in, out), init, true);
	bias = mu_variable(b, "bias", MU_FLOAT, MU_SHAPE(out), MU_ZEROS, true);
	mu_pop_name(b);
	return mu_bias_add(b, mu_matmul(b, x, mu_read(kernel)), mu_read(bias));
}

static struct model build(struct mu_builder *b, const struct settings *o, const char *device)
{
	struct mu_optimizer adagrad = {.kind = MU_ADAGRAD, .rate = 0.05};
	struct mu_sync_options sync = {.aggregate = (unsigned)o->aggregate,
				       .workers = mu_cluster_num_tasks(&o->cluster, "worker"),
				       .self = (unsigned)o->self.index};
	struct model m = {.step = NULL};

	mu_replica_device_setter(b, mu_cluster_num_tasks(&o->cluster, "ps"), device);
	m.step = mu_global_step(b);
	m.x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(-1, FEATURES));
	m.labels = mu_placeholder(b, "labels", MU_INT32, MU_SHAPE(-1));
	struct mu_out hidden = mu_relu(b, dense(b, "dense", m.x, FEATURES, HIDDEN, 1));
	struct mu_out logits = dense(b, "dense_1", hidden, HIDDEN, CLASSES, 2);
	m.loss = mu_mean(b, mu_sparse_softmax_xent(b, logits, m.labels), NULL, 0);
	if (o->sync) {
		mu_minimize_sync(b, &adagrad, m.loss, m.step, &sync, &m.sync);
		m.train = m.sync.train;
	} else {
		m.train = mu_minimize(b, &adagrad, m.loss, m.step);
	}
	return m;
}

/* Random points around one centre for each class. The batch is a function of its number. */
static int batch(int64_t number, struct mu_tensor *x, struct mu_tensor *labels, struct mu_err *err)
{
	MU_AUTO_TENSOR centres = {0};
	struct mu_shape rows;
	int rc = waves(&centres, CLASSES, FEATURES, 1, 3, err);

	if (!rc)
		rc = waves(x, BATCH, FEATURES, 0.7, (double)number, err);
	if (!rc)
		rc = mu_shape_set(&rows, 1, (int64_t[]){BATCH}, err);
	if (!rc)
		rc = mu_tensor_new(labels, MU_INT32, &rows, err);
	for (int i = 0; i < BATCH && !rc; i++) {
		int class = (int)((number * 3 + i * 7) % CLASSES);
		float *point = MU_DATA(float, x) + i * FEATURES;
		const float *centre = MU_DATA(float, &centres) + class * FEATURES;

		MU_DATA(int32_t, labels)[i] = class;
		for (int j = 0; j < FEATURES; j++)
			point[j] += centre[j];
	}
	return rc;
}

static int loop(struct mu_monitored *session, const struct model *m, int index, struct mu_err *err)
{
	float loss = NAN;
	int64_t local_steps = 0;
	int rc = 0;

	while (!rc && !mu_monitored_should_stop(session)) {
		MU_AUTO_TENSOR x = {0};
		MU_AUTO_TENSOR labels = {0};
		MU_AUTO_TENSOR loss_value = {0};
		struct mu_feed feeds[] = {{m->x, &x}, {m->labels, &labels}};
		struct mu_run run = {
		    .feeds = feeds, .n_feeds = 2, .fetches = &m->loss, .n_fetches = 1};

		rc = batch(1000 * index + local_steps++, &x, &labels, err);
		if (!rc)
			rc = mu_monitored_train(session, &run, &loss_value, err);
		if (!rc)
			loss = *MU_DATA(float, &loss_value);
	}
	if (!rc)
		printf("worker %d: %lld steps here, global step %lld, loss %.6f\n", index,
		       (long long)local_steps, (long long)mu_monitored_step(session), (double)loss);
	return rc;
}

static int train(const struct settings *o, struct mu_server *server, struct mu_err *err)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	char device[64];
	/* A worker needs only the parameter servers, not the other workers. */
	const char *filters[] = {"/job:ps", device};
	bool chief = o->self.index == 0;
	struct mu_monitored *session;
	struct mu_hook *hooks[4];
	unsigned n = 0;
	struct mu_err close_err;
	int rc;

	snprintf(device, sizeof(device), "/job:worker/task:%d", o->self.index);
	struct model m = build(b, o, device);
	MU_AUTO(mu_saver_free) struct mu_saver *saver = mu_saver_new(b, 5);
	hooks[n++] = mu_stop_at_step_hook(o->steps);
	hooks[n++] = mu_progress_hook(m.loss, 1, o->steps, BATCH, NULL, NULL);
	if (chief && o->checkpoints)
		hooks[n++] = mu_checkpoint_hook(saver, o->checkpoints, 0, 50, NULL, NULL);
	if (chief && o->sync)
		hooks[n++] = mu_sync_hook(&m.sync);
	rc = mu_monitored_open(&session, b,
			       &(struct mu_monitored_options){
				   .target = mu_server_target(server),
				   .chief = chief,
				   .train = m.train,
				   .sync = o->sync ? &m.sync : NULL,
				   .saver = saver,
				   .folder = o->checkpoints,
				   .hooks = hooks,
				   .n_hooks = n,
				   .stop = &stop_requested,
				   .session = {.device_filters = filters,
					       .n_device_filters = 2,
					       .transport = mu_server_transport(server)},
			       },
			       err);
	if (rc)
		return rc;
	rc = loop(session, &m, o->self.index, err);
	if (mu_monitored_close(session, rc != 0, &close_err) && !rc)
		rc = mu_fail(err, close_err.code, "%s", close_err.msg);
	return rc;
}

/* "--name=value" */
static const char *value_of(const char *arg, const char *name)
{
	size_t n = strlen(name);

	return strncmp(arg, name, n) == 0 && arg[n] == '=' ? arg + n + 1 : NULL;
}

static int read_flag(struct settings *o, const char *arg, struct mu_err *err)
{
	const char *v;
	int rc = mu_cluster_parse_flag(&o->cluster, arg, err);

	if (rc)
		return rc < 0 ? rc : 0;
	if ((v = value_of(arg, "--job_name")))
		snprintf(o->self.job, sizeof(o->self.job), "%s", v);
	else if ((v = value_of(arg, "--task_index")))
		o->self.index = atoi(v);
	else if ((v = value_of(arg, "--steps")))
		o->steps = atoll(v);
	else if ((v = value_of(arg, "--aggregate")))
		o->aggregate = atoi(v);
	else if ((v = value_of(arg, "--checkpoint_dir")))
		o->checkpoints = v;
	else if (strcmp(arg, "--sync") == 0)
		o->sync = true;
	else
		return mu_fail(err, MU_INVALID_ARGUMENT, "unknown flag '%s'", arg);
	return 0;
}

static int read_settings(struct settings *o, int argc, char **argv, struct mu_err *err)
{
	const char *config = getenv("TF_CONFIG");
	int rc = 0;

	if (config)
		rc = mu_cluster_parse_tf_config(&o->cluster, &o->self, mu_span_of(config), err);
	for (int i = 1; i < argc && !rc; i++)
		rc = read_flag(o, argv[i], err);
	if (!rc && !o->self.job[0])
		rc = mu_fail(err, MU_INVALID_ARGUMENT,
			     "this task is unknown: set --job_name and --task_index, or TF_CONFIG");
	return rc;
}

int main(int argc, char **argv)
{
	struct settings o = {.steps = 300};
	struct mu_server *server = NULL;
	struct mu_err err;
	int rc = read_settings(&o, argc, argv, &err);

	mu_log_init("trainer"); /* without it the servers log only errors */
	signal(SIGTERM, on_stop);
	if (!rc)
		rc = mu_server_start(&server, &o.cluster, o.self.job, o.self.index, &err);
	if (!rc && strcmp(o.self.job, "ps") == 0)
		mu_server_join(server);
	else if (!rc)
		rc = train(&o, server, &err);
	if (rc)
		fprintf(stderr, "trainer: %s\n", err.msg);
	mu_server_stop(server);
	mu_cluster_fini(&o.cluster);
	return rc ? 1 : 0;
}
