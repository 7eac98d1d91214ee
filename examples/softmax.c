/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax regression with between-graph replication: the trainer of the classic tutorial, in C.
 *
 * Each worker runs this program beside its task server. Variables are on the ps tasks, and worker 0
 * is the chief. Each worker trains on its own batches until the global step is reached.
 *
 *	softmax grpc://localhost:2223 worker-index number-of-ps checkpoint-folder [workers]
 *
 * If the number of workers is given, the training is synchronous: each step averages one gradient
 * of each worker.
 */
#include <stdio.h>
#include <stdlib.h>

#include "muster/data.h"
#include "muster/train.h"

enum { STEPS = 3000, BATCH = 32, PIXELS = 64, DIGITS = 10 };

static int train(const char *target, int index, unsigned ps, const char *folder, unsigned workers,
		 struct mu_err *err)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_dataset digits, test;
	struct mu_optimizer sgd;
	struct mu_sync sync;
	struct mu_monitored *session;
	struct mu_out op;
	char device[64];
	const char *filters[] = {"/job:ps", device};
	int rc;

	/* The model: variables on the ps tasks, all other ops on this task. */
	snprintf(device, sizeof(device), "/job:worker/task:%d", index);
	mu_replica_device_setter(b, ps, device);
	struct mu_var *step = mu_global_step(b);
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(-1, PIXELS));
	struct mu_out y = mu_placeholder(b, "y", MU_INT32, MU_SHAPE(-1));
	struct mu_var *w = mu_variable(b, "W", MU_FLOAT, MU_SHAPE(PIXELS, DIGITS), MU_ZEROS, true);
	struct mu_var *c = mu_variable(b, "b", MU_FLOAT, MU_SHAPE(DIGITS), MU_ZEROS, true);
	struct mu_out logits = mu_bias_add(b, mu_matmul(b, x, mu_read(w)), mu_read(c));
	struct mu_out loss = mu_mean(b, mu_sparse_softmax_xent(b, logits, y), NULL, 0);
	mu_optimizer_named("sgd", 0.5, &sgd, err);
	if (workers) {
		mu_minimize_sync(
		    b, &sgd, loss, step,
		    &(struct mu_sync_options){.workers = workers, .self = (unsigned)index}, &sync);
		op = sync.train;
	} else {
		op = mu_minimize(b, &sgd, loss, step);
	}
	MU_AUTO(mu_saver_free) struct mu_saver *saver = mu_saver_new(b, 5);

	/* The chief initialises or restores the model; the other workers wait. */
	struct mu_hook *hooks[4] = {mu_progress_hook(loss, 1, STEPS, BATCH, NULL, NULL),
				    mu_stop_at_step_hook(STEPS)};
	unsigned n_hooks = 2;
	if (index == 0)
		hooks[n_hooks++] = mu_checkpoint_hook(saver, folder, 60, 0, NULL, NULL);
	if (index == 0 && workers)
		hooks[n_hooks++] = mu_sync_hook(&sync);
	rc = mu_monitored_open(&session, b,
			       &(struct mu_monitored_options){
				   .target = target,
				   .chief = index == 0,
				   .train = op,
				   .sync = workers ? &sync : NULL,
				   .saver = saver,
				   .folder = folder,
				   .hooks = hooks,
				   .n_hooks = n_hooks,
				   .session = {.device_filters = filters, .n_device_filters = 2},
			       },
			       err);
	if (rc)
		return rc;
	struct mu_records file = {.pattern = "examples/data/digits.csv.gz"};
	rc = mu_dataset_csv(&digits, &test, &file, 0.2, 0, err);
	if (rc) {
		mu_monitored_close(session, true, NULL);
		return rc;
	}
	struct mu_batches *batches = NULL;
	rc = mu_batches_open(
	    &batches, &digits,
	    &(struct mu_batch_options){.batch = BATCH, .seed = (uint64_t)index + 1}, err);
	while (!rc && !mu_monitored_should_stop(session)) {
		const struct mu_tensor *px, *py;

		rc = mu_batches_next(batches, &px, &py, err);
		struct mu_feed feeds[] = {{x, px}, {y, py}};
		if (!rc)
			rc = mu_monitored_train(
			    session, &(struct mu_run){.feeds = feeds, .n_feeds = 2}, NULL, err);
	}
	mu_batches_free(batches);
	mu_dataset_fini(&digits);
	mu_dataset_fini(&test);
	struct mu_err close_err;
	if (mu_monitored_close(session, rc != 0, &close_err) && !rc)
		rc = mu_fail(err, close_err.code, "%s", close_err.msg);
	return rc;
}

int main(int argc, char **argv)
{
	struct mu_err err;

	if (argc < 5 || argc > 6) {
		fprintf(stderr,
			"softmax: expected TARGET WORKER-INDEX NUMBER-OF-PS FOLDER [WORKERS]\n");
		return 2;
	}
	if (train(argv[1], atoi(argv[2]), (unsigned)atoi(argv[3]), argv[4],
		  argc > 5 ? (unsigned)atoi(argv[5]) : 0, &err)) {
		fprintf(stderr, "softmax: %s\n", err.msg);
		return 1;
	}
	return 0;
}
