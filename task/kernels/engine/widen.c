/* SPDX-License-Identifier: Apache-2.0 */
/* Runs kernels that compute in float on 16-bit floats, and kernels that read int32 or int64 on
 * indices of 8 and 16 bits.
 *
 * The inputs are saved, replaced by converted copies for the call, and restored afterwards, because
 * an input may be a constant that later steps use. */
#include <string.h>

#include "lib/ops/op_def.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"

/* The index inputs for which TensorFlow has kernels in smaller integers, by op. */
static const struct small_index {
	const char *op, *attr;
	unsigned input;
} small_indices[] = {
    {"GatherNd", "Tindices", 1},
    {"GatherV2", "Tindices", 1},
    {"OneHot", "TI", 0},
    {"SplitV", "Tlen", 1},
    {"UnsortedSegmentSum", "Tindices", 1},
    {"ArgMax", "Tidx", 1},
    {"ArgMin", "Tidx", 1},
    {"TopKV2", "Tk", 1},
};

/* The index input of the node that has 8 or 16 bits; NULL: none. */
static const struct small_index *small_index_of(const struct mu_node *n)
{
	for (unsigned i = 0; i < MU_COUNT(small_indices); i++) {
		const struct small_index *s = &small_indices[i];
		const struct mu_attr *a =
		    strcmp(n->op, s->op) == 0 ? mu_node_attr(n, s->attr) : NULL;
		if (a && a->kind == MU_ATTR_TYPE &&
		    (a->type == MU_INT8 || a->type == MU_UINT8 || a->type == MU_INT16))
			return s;
	}
	return NULL;
}

static int widen_inputs(struct kernel_call *c, struct mu_tensor *originals, struct mu_err *err)
{
	const struct small_index *index = small_index_of(c->node);

	for (unsigned i = 0; i < c->n_in; i++) {
		struct mu_tensor *t = &c->in[i].tensor, wide;
		bool is_index = index && index->input == i;
		if (c->in[i].ref || !(is_index || mu_dtype_is_16_bit_float(t->dtype)))
			continue;

		MU_RETURN_IF_ERROR(convert_tensor(&wide, is_index ? MU_INT32 : MU_FLOAT, t, err));
		originals[i] = *t;
		*t = wide;
	}
	return 0;
}

static int narrow_outputs(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_ARENA arena = {0};
	enum mu_dtype *types;
	unsigned n;

	int rc = mu_op_output_types(c->node, &arena, &types, &n, err);
	for (unsigned i = 0; !rc && i < n && i < c->n_out; i++) {
		struct mu_tensor *t = &c->out[i].tensor, narrow;
		if (!mu_dtype_is_16_bit_float(types[i]) || t->dtype != MU_FLOAT)
			continue;
		if (!(rc = convert_tensor(&narrow, types[i], t, err)))
			kernel_out_take(c, i, narrow);
	}
	return rc;
}

static int run_widened(struct kernel_call *c, struct mu_err *err)
{
	const struct kernel *k = cpu_kernel_find(c->node->op);
	if (c->n_in && (c->in[0].ref || kernel_in(c, 0)->dtype == MU_RESOURCE))
		return k->run(c, err); /* variables are not widened */
	MU_AUTO_FREE struct mu_tensor *originals = MU_NEW_ARRAY(struct mu_tensor, c->n_in + 1);
	int rc = widen_inputs(c, originals, err);

	if (!rc && !(rc = k->run(c, err)))
		rc = narrow_outputs(c, err);
	for (unsigned i = 0; i < c->n_in; i++)
		if (mu_tensor_is_set(&originals[i])) {
			mu_tensor_unref(&c->in[i].tensor);
			c->in[i].tensor = originals[i];
		}
	return rc;
}

#define TABLE(name)
#define WIDENED_TABLE(name) KERNEL_TABLE_DECLARE(name)
#include "task/kernels/engine/cpu_tables.def"
#undef WIDENED_TABLE

#define WIDENED_TABLE(name) &kernel_table_##name,
static const struct kernel_table *const widened_tables[] = {
#include "task/kernels/engine/cpu_tables.def"
};

kernel_fn *cpu_kernel_run(const struct kernel *k, const struct mu_node *n)
{
	bool has_16_bit_float = false;

	if (k->run && small_index_of(n))
		return run_widened;
	for (unsigned i = 0; i < n->n_attrs; i++)
		has_16_bit_float |= n->attrs[i].value.kind == MU_ATTR_TYPE &&
				    mu_dtype_is_16_bit_float(n->attrs[i].value.type);
	for (unsigned i = 0; k->run && has_16_bit_float && i < MU_COUNT(widened_tables); i++)
		if ((size_t)((const char *)k - (const char *)widened_tables[i]->rows) <
		    widened_tables[i]->count * widened_tables[i]->row_size)
			return run_widened;
	return k->run;
}
