/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN's heuristics list its algorithms, best first, without running them.  The first allowed
 * algorithm (is_allowed) is used. */
#include "task/device/gpu_convolution.h"

#include <string.h>

#include "task/device/gpu_internal.h"

enum { MAX_ALGORITHMS = 8 };
#define MAX_WORKSPACE_BYTES ((size_t)256 << 20)

struct conv {
	const struct dnn_api *api;
	struct gpu_convolution params;
	void *input, *output, *filter, *conv; /* descriptors */
	struct dnn_choice choice;
};

/* cuDNN's constants for a type: of the elements, of the sums, and of the math type. */
static const struct type_numbers {
	int storage, compute, math;
} type_numbers[MU_DT_COUNT] = {
    [MU_FLOAT] = {DNN_FLOAT, DNN_FLOAT, DNN_FMA_MATH},
    [MU_DOUBLE] = {DNN_DOUBLE, DNN_DOUBLE, DNN_DEFAULT_MATH},
    [MU_HALF] = {DNN_HALF, DNN_FLOAT, DNN_TENSOR_OP_MATH},
    [MU_BFLOAT16] = {DNN_BFLOAT16, DNN_FLOAT, DNN_TENSOR_OP_MATH},
};

/* Returns the GPU's cuDNN handle; NULL: cuDNN does not start.  It is used by one call at a time, on
 * the compute stream.  It is made at the first use, because the library starts slowly. */
static void *library_of(struct gpu *g)
{
	if (!g->dnn && !g->dnn_failed)
		g->dnn_failed =
		    g->dnn_api->library_new(&g->dnn) || g->dnn_api->stream_set(g->dnn, g->compute);
	return g->dnn_failed ? NULL : g->dnn;
}

static void free_descriptors(const struct conv *w)
{
	if (w->input)
		w->api->tensor_free(w->input);
	if (w->output)
		w->api->tensor_free(w->output);
	if (w->filter)
		w->api->filter_free(w->filter);
	if (w->conv)
		w->api->conv_free(w->conv);
}

static bool fits_int(const struct gpu_convolution *c)
{
	const int64_t all[] = {
	    c->batch,      c->channels,     c->filters,       c->groups,
	    c->row.in,     c->row.out,      c->row.size,      c->row.pad,
	    c->column.in,  c->column.out,   c->column.size,   c->column.pad,
	    c->row.stride, c->row.dilation, c->column.stride, c->column.dilation};

	for (unsigned i = 0; i < MU_COUNT(all); i++)
		if (all[i] > INT32_MAX)
			return false;
	return true;
}

static int describe(struct conv *p, struct type_numbers type)
{
	const struct dnn_api *api = p->api;
	const struct gpu_convolution *c = &p->params;
	const struct gpu_convolution_axis *r = &c->row, *q = &c->column;
	int result = 0;

	if ((result = api->tensor_new(&p->input)) || (result = api->tensor_new(&p->output)) ||
	    (result = api->filter_new(&p->filter)) || (result = api->conv_new(&p->conv)))
		return result;
	result = api->tensor_set(p->input, DNN_NHWC, type.storage, (int)c->batch, (int)c->channels,
				 (int)r->in, (int)q->in);
	if (!result)
		result = api->tensor_set(p->output, DNN_NHWC, type.storage, (int)c->batch,
					 (int)c->filters, (int)r->out, (int)q->out);
	if (!result)
		result =
		    api->filter_set(p->filter, type.storage, DNN_NHWC, (int)c->filters,
				    (int)(c->channels / c->groups), (int)r->size, (int)q->size);
	if (!result)
		result = api->conv_set(p->conv, (int)r->pad, (int)q->pad, (int)r->stride,
				       (int)q->stride, (int)r->dilation, (int)q->dilation,
				       DNN_CROSS_CORRELATION, type.compute);
	if (!result)
		result = api->conv_groups(p->conv, (int)c->groups);
	return result ? result : api->conv_math(p->conv, type.math);
}

static int list_algorithms(const struct conv *p, void *library, int *n_found,
			   struct dnn_choice *out)
{
	const struct dnn_api *api = p->api;

	switch (p->params.direction) {
	case GPU_CONVOLUTION_FORWARD:
		return api->choose_forward(library, p->input, p->filter, p->conv, p->output,
					   MAX_ALGORITHMS, n_found, out);
	case GPU_CONVOLUTION_TO_INPUT:
		return api->choose_input(library, p->filter, p->output, p->conv, p->input,
					 MAX_ALGORITHMS, n_found, out);
	default:
		return api->choose_filter(library, p->input, p->output, p->conv, p->filter,
					  MAX_ALGORITHMS, n_found, out);
	}
}

/* Returns true if the algorithm works, its workspace is within the limit, it is deterministic if
 * required, and it does not round floats to a shorter type without permission. */
static bool is_allowed(const struct dnn_choice *c, const struct gpu *g, int math)
{
	return c->status == 0 && c->workspace <= MAX_WORKSPACE_BYTES &&
	       (!g->is_deterministic || c->deterministic == DNN_DETERMINISTIC) &&
	       (math != DNN_FMA_MATH || c->math == math || c->math == DNN_DEFAULT_MATH);
}

/* Chooses an algorithm.  On tensor cores also sets the math type of the descriptor to that of the
 * algorithm, because cuDNN uses the descriptor's. */
static bool choose_algorithm(struct conv *p, const struct gpu *g, void *library, int math)
{
	struct dnn_choice all[MAX_ALGORITHMS];
	int n_found = 0;

	if (list_algorithms(p, library, &n_found, all))
		return false;
	for (int i = 0; i < n_found && i < MAX_ALGORITHMS; i++)
		if (is_allowed(&all[i], g, math)) {
			p->choice = all[i];
			return math != DNN_TENSOR_OP_MATH ||
			       p->api->conv_math(p->conv, all[i].math) == 0;
		}
	return false;
}

static int run_algorithm(const struct conv *p, void *library, const struct gpu_convolution_at *at,
			 cuda_ptr work)
{
	static const float single[] = {0, 1};
	static const double wide[] = {0, 1};
	const bool is_wide = p->params.type == MU_DOUBLE;
	const void *one = is_wide ? (const void *)&wide[1] : &single[1];
	const void *zero = is_wide ? (const void *)&wide[0] : &single[0];
	const struct dnn_api *api = p->api;
	const int algorithm = p->choice.algorithm;
	const size_t workspace = p->choice.workspace;

	switch (p->params.direction) {
	case GPU_CONVOLUTION_FORWARD:
		return api->forward(library, one, p->input, at->input, p->filter, at->filter,
				    p->conv, algorithm, work, workspace, zero, p->output,
				    at->output);
	case GPU_CONVOLUTION_TO_INPUT:
		return api->to_input(library, one, p->filter, at->filter, p->output, at->output,
				     p->conv, algorithm, work, workspace, zero, p->input,
				     at->input);
	default:
		return api->to_filter(library, one, p->input, at->input, p->output, at->output,
				      p->conv, algorithm, work, workspace, zero, p->filter,
				      at->filter);
	}
}

bool gpu_convolution_is_enabled = true;

bool gpu_convolution_is_available(const struct gpu *g)
{
	return gpu_convolution_is_enabled && g->dnn_api && !g->dnn_failed;
}

/* Frees the workspace after the launch: the next user of the memory runs later on the stream. */
static int launch(struct gpu *g, struct conv *p, const struct gpu_convolution_at *at,
		  const char *holder, bool *is_launched, struct mu_err *err)
{
	const struct mu_shape bytes = mu_shape_vec((int64_t)p->choice.workspace);
	MU_AUTO_TENSOR work = {0};
	int rc;

	if (p->choice.workspace && (rc = gpu_tensor_new(g, MU_UINT8, &bytes, holder, &work, err)))
		return rc;
	*is_launched = !run_algorithm(p, g->dnn, at, gpu_address(&work));
	return 0;
}

int gpu_convolution(struct gpu *g, const struct gpu_convolution *c,
		    const struct gpu_convolution_at *at, const char *holder, bool *is_launched,
		    struct mu_err *err)
{
	struct type_numbers numbers = type_numbers[c->type];
	struct conv p = {.api = g->dnn_api, .params = *c};
	int rc = gpu_enter(g, err);

	*is_launched = false;
	if (rc || !fits_int(c))
		return rc;
	if (c->type == MU_FLOAT && g->tf32)
		numbers.math = DNN_DEFAULT_MATH;
	pthread_mutex_lock(&g->library_lock);
	void *library = library_of(g);
	if (library && !describe(&p, numbers) && choose_algorithm(&p, g, library, numbers.math))
		rc = launch(g, &p, at, holder, is_launched, err);
	free_descriptors(&p);
	pthread_mutex_unlock(&g->library_lock);
	return rc;
}
