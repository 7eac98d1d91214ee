/* SPDX-License-Identifier: Apache-2.0 */
/* GeneratorDataset: init_func returns a state, next_func returns an element for the state, and
 * finalize_func releases the state.  next_func fails with OUT_OF_RANGE to end the elements.
 * Distribution strategies use it to read the iterator of another dataset. */

#include "task/kernels/data/dataset.h"

enum { INIT_FUNC, NEXT_FUNC, FINALIZE_FUNC };

struct generator {
	bool started, ended;
	unsigned n;
	struct mu_tensor state[MAX_COMPONENTS];
};

static int check_generator(struct dataset *d, struct mu_err *err)
{
	if (function_outputs(d->f[INIT_FUNC].f) > MAX_COMPONENTS)
		return mu_invalid(err, "states of over %d tensors", MAX_COMPONENTS);
	return 0;
}

/* Calls a function on the state, which remains valid. */
static int call_with_state(struct dataset_iterator *it, unsigned which, struct mu_tensor *out,
			   unsigned n_out, struct mu_err *err)
{
	struct generator *g = it->state;
	MU_AUTO_FREE struct mu_tensor *in = MU_NEW_ARRAY(struct mu_tensor, g->n + 1);

	element_ref(in, g->state, g->n);
	return dataset_apply(it, which, in, g->n, out, n_out, err);
}

/* Calls finalize_func once: at the end of the elements, or when the iterator closes. */
static int generator_finish(struct dataset_iterator *it, struct mu_err *err)
{
	struct generator *g = it->state;
	unsigned n = function_outputs(it->d->f[FINALIZE_FUNC].f);
	MU_AUTO_FREE struct mu_tensor *out = MU_NEW_ARRAY(struct mu_tensor, n + 1);

	if (!g->started || g->ended)
		return 0;
	g->ended = true;

	MU_RETURN_IF_ERROR(call_with_state(it, FINALIZE_FUNC, out, n, err));
	element_drop(out, n);
	return 0;
}

static int generator_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct generator *g = it->state;
	int rc;

	if (g->ended)
		return 0;
	if (!g->started) {
		unsigned n = function_outputs(it->d->f[INIT_FUNC].f);
		MU_RETURN_IF_ERROR(dataset_apply(it, INIT_FUNC, NULL, 0, g->state, n, err));
		g->n = n;
		g->started = true;
	}
	rc = call_with_state(it, NEXT_FUNC, out, it->d->n_out, err);
	if (rc == -MU_OUT_OF_RANGE)
		return generator_finish(it, err);
	return rc ? rc : 1;
}

static void generator_close(struct dataset_iterator *it)
{
	struct generator *g = it->state;
	struct mu_err err; /* no caller is left to report it to */

	generator_finish(it, &err);
	element_drop(g->state, g->n);
}

static const struct dataset_kind rows[] = {
    {DATASET("GeneratorDataset"), .state_size = sizeof(struct generator),
     .function = {{"init_func", "Tinit_func_args"},
		  {"next_func", "Tnext_func_args"},
		  {"finalize_func", "Tfinalize_func_args"}},
     .check = check_generator, .next = generator_next, .close = generator_close},
};
KERNEL_TABLE(data_generator, rows)
