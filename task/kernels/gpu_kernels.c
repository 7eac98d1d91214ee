/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of kernels/gpu by op, and what their functions have in common. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/map.h"
#include "task/kernels/args.h"
#include "task/kernels/gpu_table.h"
#include "task/runtime/runtime.h"

#define TABLE(name) GPU_KERNEL_TABLE_DECLARE(name)
#include "task/kernels/gpu/tables.def"
#undef TABLE

static const struct gpu_kernel_table *const tables[] = {
#define TABLE(name) &gpu_kernel_table_##name,
#include "task/kernels/gpu/tables.def"
#undef TABLE
};

static struct mu_map by_op;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void build(void)
{
	const struct gpu_kernel *k;

	mu_map_init(&by_op);
	for (unsigned i = 0; (k = gpu_kernel_at(i)); i++)
		mu_map_put(&by_op, k->k.op, (void *)k);
}

const struct gpu_kernel *gpu_kernel_at(unsigned i)
{
	for (unsigned t = 0; t < MU_COUNT(tables); t++) {
		if (i < tables[t]->count)
			return &tables[t]->rows[i];
		i -= tables[t]->count;
	}
	return NULL;
}

static bool has(uint32_t set, unsigned i)
{
	return i < 32 && set >> i & 1;
}

const struct gpu_kernel *gpu_kernel_find(const struct mu_node *n)
{
	pthread_once(&once, build);
	const struct gpu_kernel *k = mu_map_get(&by_op, n->op);

	if (!k || !k->type_attr)
		return k;
	return has(k->types, mu_dtype_base(args_attr_type(n, k->type_attr, MU_DT_INVALID))) ? k
											    : NULL;
}

bool gpu_kernel_known(const char *op)
{
	pthread_once(&once, build);
	return mu_map_get(&by_op, op) != NULL;
}

/* What stands on GPUs in TensorFlow's graphs, though the host runs it here: ops on small integers,
 * what looks at tensors from outside, and kernels that there are none of yet.  A node that names a
 * GPU for one of these is no fault of its graph.  None of them may change a variable, which would
 * lie on the GPU. */
static const char *const host_ops[] = {
    "Range",
    "LinSpace",
    "BroadcastGradientArgs",
    "BroadcastArgs",
    "ConcatOffset",
    "InvertPermutation",
    "DataFormatVecPermute",
    "DataFormatDimMap",
    "Assert",
    "PrintV2",
    "_Send",
    "_Recv",
    "_HostSend",
    "_HostRecv",
    "_Arg",
    "_Retval",
    "_SwitchN",
    "ToBool",
    "PartitionedCall",
    "StatefulPartitionedCall",
    "Unique",
    "UniqueV2",
    "UniqueWithCounts",
    "UniqueWithCountsV2",
    "Bincount",
    "DenseBincount",
    "HistogramFixedWidth",
    "Bucketize",
    "PopulationCount",
    "Bitcast",
    "Empty",
    "Betainc",
    "Complex",
    "Real",
    "Imag",
    "ComplexAbs",
    "Angle",
    "Conj",
    "RGBToHSV",
    "HSVToRGB",
    "AdjustHue",
    "AdjustSaturation",
    "AdjustContrastv2",
    "CropAndResize",
    "CropAndResizeGradImage",
    "CropAndResizeGradBoxes",
    "SparseToDense",
    "SparseReshape",
    "SparseReorder",
    "SparseFillEmptyRows",
    "SparseFillEmptyRowsGrad",
    "SparseConcat",
    "SparseSplit",
    "SparseSlice",
    "Cholesky",
    "CholeskyGrad",
    "Qr",
    "Svd",
    "Lu",
    "LogMatrixDeterminant",
    "MatrixDeterminant",
    "MatrixInverse",
    "MatrixSolve",
    "MatrixTriangularSolve",
    "SelfAdjointEigV2",
    "TridiagonalMatMul",
    "TridiagonalSolve",
    "FFT",
    "FFT2D",
    "FFT3D",
    "IFFT",
    "IFFT2D",
    "IFFT3D",
    "RFFT",
    "RFFT2D",
    "RFFT3D",
    "IRFFT",
    "IRFFT2D",
    "IRFFT3D",
    "Stage",
    "Unstage",
    "StagePeek",
    "StageSize",
    "StageClear",
    "IteratorV2",
    "MakeIterator",
    "IteratorGetNext",
    "IteratorGetNextSync",
    "IteratorToStringHandle",
    "IteratorFromStringHandleV2",
};

enum kernel_gpu kernel_on_gpu(const struct mu_node *n)
{
	if (gpu_kernel_find(n))
		return KERNEL_GPU_NATIVE;
	if (gpu_kernel_known(n->op))
		return KERNEL_GPU_HOST;
	for (unsigned i = 0; i < MU_COUNT(host_ops); i++)
		if (strcmp(host_ops[i], n->op) == 0)
			return KERNEL_GPU_HOST;
	return KERNEL_GPU_NONE;
}

bool gpu_kernel_in_on_device(const struct gpu_kernel *k, unsigned port, enum mu_dtype t)
{
	return k && !has(k->host_in, port) && !has(k->host_types, mu_dtype_base(t)) &&
	       (has(k->device_in, port) || has(GPU_PLAIN, mu_dtype_base(t)));
}

bool gpu_kernel_out_on_device(const struct gpu_kernel *k, unsigned port, enum mu_dtype t)
{
	return k && !has(k->host_out, port) &&
	       (has(k->device_out, port) || has(GPU_PLAIN, mu_dtype_base(t)));
}

/* ---- for GPU kernels ---- */

struct gpu *gpu_of_node(const struct mu_node *n, const struct runtime *rt)
{
	unsigned count = rt ? gpu_count(rt->gpus) : 0;
	const char *at = count ? strstr(n->device, "GPU:") : NULL;
	long number;

	if (!at)
		return NULL;
	number = strtol(at + 4, NULL, 10);
	return number >= 0 && number < (long)count ? gpu_at(rt->gpus, (unsigned)number) : NULL;
}

const char *gpu_type_name(enum mu_dtype t)
{
	static const char *const names[MU_DT_COUNT] = {
	    [MU_FLOAT] = "f32", [MU_DOUBLE] = "f64", [MU_HALF] = "f16", [MU_BFLOAT16] = "bf16",
	    [MU_INT64] = "i64", [MU_INT32] = "i32",  [MU_BOOL] = "u8",  [MU_UINT8] = "u8",
	};

	return (unsigned)t < MU_DT_COUNT ? names[t] : NULL;
}

int gpu_find(struct gpu *g, const char *name, enum mu_dtype type, void **out, struct mu_err *err)
{
	const char *t = gpu_type_name(type);
	char full[96];

	if (!t)
		return mu_fail(err, MU_UNIMPLEMENTED, "%s has no GPU kernel for type %s", name,
			       mu_dtype_name(type));
	snprintf(full, sizeof full, "%s_%s", name, t);
	return gpu_kernel(g, full, out, err);
}

int gpu_find_width(struct gpu *g, const char *name, enum mu_dtype type, void **out,
		   struct mu_err *err)
{
	char full[96];

	snprintf(full, sizeof full, "%s_%zu", name, 8 * mu_dtype_size(type));
	return gpu_kernel(g, full, out, err);
}

int gpu_one_prepare(const struct mu_node *n, struct runtime *rt, const char *name,
		    const char *type_attr, void **state, struct mu_err *err)
{
	struct gpu_one o = {gpu_of_node(n, rt), NULL, args_attr_type(n, type_attr, MU_DT_INVALID)};
	int rc = gpu_find(o.gpu, name, o.type, &o.kernel, err);

	if (rc)
		return rc;
	*state = mu_xmalloc(sizeof o);
	memcpy(*state, &o, sizeof o);
	return 0;
}

int gpu_run_sized(struct gpu *g, void *kernel, int64_t n, const void *args, size_t size,
		  struct mu_err *err)
{
	return n ? gpu_launch_sized(g, kernel, gpu_grid_for(g, n), args, size, err) : 0;
}

int gpu_run_width_sized(struct gpu *g, const char *name, enum mu_dtype type, int64_t n,
			const void *args, size_t size, struct mu_err *err)
{
	void *kernel;
	int rc = gpu_find_width(g, name, type, &kernel, err);

	return rc ? rc : gpu_run_sized(g, kernel, n, args, size, err);
}

int gpu_out(struct kernel_call *c, unsigned i, enum mu_dtype dtype, const struct mu_shape *shape,
	    struct mu_tensor **out, struct mu_err *err)
{
	int rc = gpu_tensor_new(gpu_here(c), dtype, shape, c->node->name, &c->out[i].tensor, err);

	if (!rc)
		*out = &c->out[i].tensor;
	return rc;
}

int gpu_out_reuse(struct kernel_call *c, unsigned i, unsigned from, enum mu_dtype dtype,
		  const struct mu_shape *shape, struct mu_tensor **out, struct mu_err *err)
{
	struct mu_tensor *in = &c->in[from].tensor;
	struct mu_tbuf *b = in->buf;

	if (c->in[from].kept || !b || !b->device || b->dtype != dtype || b->count != shape->count ||
	    in->shape.count != shape->count || in->data != b->data || !mu_tensor_is_sole(in))
		return gpu_out(c, i, dtype, shape, out, err);
	struct mu_tensor *to = *out = &c->out[i].tensor;
	to->dtype = dtype;
	to->buf = b;
	to->data = in->data;
	mu_shape_copy(&to->shape, shape);
	in->buf = NULL;
	return 0;
}

int gpu_scratch(struct kernel_call *c, enum mu_dtype dtype, int64_t count, struct mu_tensor *out,
		struct mu_err *err)
{
	struct mu_shape s = mu_shape_vec(count);

	return gpu_tensor_new(gpu_here(c), dtype, &s, c->node->name, out, err);
}
