/* SPDX-License-Identifier: Apache-2.0 */
/* Slices, concatenations, transposes and gathers on the GPU: bit-identical to the CPU kernels. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/device_macros.h"
#include "tests/fake/cuda/fake_cuda.h"
#include "tests/kernels/gpu_compare.h"

/* One type of each element size. */
static const enum mu_dtype types[] = {MU_FLOAT, MU_DOUBLE, MU_BFLOAT16, MU_INT64, MU_BOOL};

enum kind { NOTHING, DATA, SCALAR, LIST, MATRIX };
struct move_case {
	const char *op;
	struct input {
		enum kind kind;
		int n;         /* rank of DATA; elements of LIST; rows of a MATRIX with 2 columns */
		int64_t v[10]; /* dimensions of DATA; else the numbers */
	} in[5];
	struct attr extra_attrs[4];
	bool narrow; /* numbers are int32 only */
};

static struct mu_tensor make_input(const struct input *i, enum mu_dtype data, enum mu_dtype number,
				   unsigned seed)
{
	struct mu_shape s;

	switch (i->kind) {
	case DATA:
		s = dims_of(i->n, i->v);
		return filled(data, &s, -9, 18, seed);
	case SCALAR:
		return ints(number, -1, i->v);
	case LIST:
		return ints(number, i->n, i->v);
	default: {
		struct mu_tensor m = ints(number, 2 * i->n, i->v);
		s = dims_of(2, (int64_t[]){i->n, 2});
		m.shape = s;
		return m;
	}
	}
}

static void run_case(const struct move_case *m, enum mu_dtype t, enum mu_dtype number)
{
	static const char *const int_attrs[] = {"Index",        "Tidx",     "Tmultiples", "Tperm",
						"Tpaddings",    "Tindices", "Tlen",       "Taxis",
						"Tblock_shape", "Tcrops",   "Tshift",     "Tindex"};
	struct attr attrs[24] = {{"T", A_TYPE, (long)t, NULL}, {"Tparams", A_TYPE, (long)t, NULL}};
	unsigned n = 0, a = 2;
	struct mu_tensor in[5];

	for (unsigned i = 0; i < MU_COUNT(int_attrs); i++)
		attrs[a++] = (struct attr){int_attrs[i], A_TYPE, (long)number, NULL};
	for (unsigned i = 0; m->extra_attrs[i].name; i++)
		attrs[a++] = m->extra_attrs[i];
	for (; n < 5 && m->in[n].kind; n++)
		in[n] = make_input(&m->in[n], t, number, n);
	compare(m->op, attrs, in, n, 0);
	while (n--)
		mu_tensor_unref(&in[n]);
}

static void run_all(const struct move_case *cases, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned t = 0; t < MU_COUNT(types); t++) {
			if (types[t] == MU_INT64 && strcmp(cases[i].op, "ConcatV2") == 0)
				continue; /* a host kernel */
			run_case(&cases[i], types[t], MU_INT32);
			if (!cases[i].narrow)
				run_case(&cases[i], types[t], MU_INT64);
		}
}

/* clang-format off */
#define X573 {DATA, 3, {5, 7, 3}}
#define INTS(...) {LIST, sizeof((int64_t[]){__VA_ARGS__}) / 8, {__VA_ARGS__}}
#define INT(v) {SCALAR, 0, {v}}
#define SET(name, v) {name, A_INT, v, NULL}

static void views__of_every_form__match_the_cpu(void **state)
{
	static const struct move_case cases[] = {
	    {.op = "Slice", .in = {X573, INTS(1, 0, 2), INTS(3, -1, 1)}},
	    {.op = "Slice", .in = {X573, INTS(1, 0, 3), INTS(3, -1, 0)}},
	    {.op = "Slice", .in = {X573, INTS(1, 0, 4), INTS(3, -1, 0)}}, /* out of range */
	    {.op = "StridedSlice", .in = {X573, INTS(4, 1, 0), INTS(0, 7, 3), INTS(-2, 3, 2)}},
	    {.op = "StridedSlice", .in = {X573, INTS(-1, 2), INTS(0, 6), INTS(1, 1)},
	     .extra_attrs = {SET("shrink_axis_mask", 1)}},
	    {.op = "StridedSlice", .in = {X573, INTS(0, 0, 1), INTS(0, 2, 3), INTS(1, 1, 1)},
	     .extra_attrs = {SET("ellipsis_mask", 1), SET("new_axis_mask", 2)}},
	    {.op = "Tile", .in = {X573, INTS(2, 1, 3)}},
	    {.op = "Tile", .in = {X573, INTS(2, 0, 3)}},
	    {.op = "Tile", .in = {X573, INTS(2, 3)}}, /* too few */
	    {.op = "Transpose", .in = {X573, INTS(2, 0, 1)}},
	    {.op = "Transpose", .in = {{DATA, 4, {2, 33, 1, 40}}, INTS(0, 3, 2, 1)}},
	    {.op = "Transpose", .in = {X573, INTS(2, 0, 0)}}, /* twice */
	    {.op = "ConjugateTranspose", .in = {X573, INTS(1, 2, 0)}},
	    {.op = "ReverseV2", .in = {X573, INTS(0, 2)}},
	    {.op = "Pad", .in = {X573, {MATRIX, 3, {0, 1, 2, 0, 0, 0}}}},
	    {.op = "PadV2", .in = {{DATA, 1, {0}}, {MATRIX, 1, {2, 3}}, {DATA, 0, {0}}}},
	    {.op = "Pad", .in = {X573, {MATRIX, 3, {0, 1, -2, 0, 0, 0}}}}, /* negative */
	    {.op = "PadV2", .in = {X573, {MATRIX, 3, {1, 1, 2, 0, 0, 4}}, {DATA, 0, {0}}}},
	    {.op = "BroadcastTo", .in = {{DATA, 2, {7, 1}}, INTS(5, 7, 3)}},
	    {.op = "BroadcastTo", .in = {{DATA, 0, {0}}, INTS(2, 0)}},
	    {.op = "BroadcastTo", .in = {X573, INTS(5, 7, 6)}}, /* does not fit */
	    {.op = "Diag", .in = {{DATA, 2, {2, 3}}}},
	    {.op = "DiagPart", .in = {{DATA, 4, {2, 3, 2, 3}}}},
	    {.op = "DiagPart", .in = {X573}}, /* no square */
	};

	run_all(cases, MU_COUNT(cases));
}

static void space_to_batch_and_mirror_pad__of_every_form__match_the_cpu(void **state)
{
	static const struct move_case cases[] = {
	    {.op = "SpaceToBatchND", .in = {{DATA, 4, {2, 4, 6, 3}}, INTS(2, 3), {MATRIX, 2, {1, 1, 0, 0}}}},
	    {.op = "SpaceToBatchND", .in = {{DATA, 3, {2, 5, 3}}, INTS(2), {MATRIX, 1, {0, 0}}}}, /* does not divide */
	    {.op = "SpaceToBatch", .in = {{DATA, 4, {2, 4, 5, 3}}, {MATRIX, 2, {1, 1, 0, 1}}}, .extra_attrs = {SET("block_size", 2)}},
	    {.op = "SpaceToBatch", .in = {{DATA, 4, {2, 0, 5, 3}}, {MATRIX, 2, {1, 1, 0, 1}}}, .extra_attrs = {SET("block_size", 2)}},
	    {.op = "BatchToSpaceND", .in = {{DATA, 4, {12, 3, 2, 3}}, INTS(2, 3), {MATRIX, 2, {1, 1, 0, 2}}}},
	    {.op = "BatchToSpace", .in = {{DATA, 4, {8, 3, 2, 1}}, {MATRIX, 2, {1, 0, 0, 0}}}, .extra_attrs = {SET("block_size", 2)}},
	    {.op = "BatchToSpace", .in = {{DATA, 4, {8, 3, 2, 1}}, {MATRIX, 2, {9, 0, 0, 0}}}, .extra_attrs = {SET("block_size", 2)}},
	    {.op = "SpaceToDepth", .in = {{DATA, 4, {2, 4, 6, 3}}}, .extra_attrs = {SET("block_size", 2)}, .narrow = true},
	    {.op = "DepthToSpace", .in = {{DATA, 4, {2, 3, 2, 8}}}, .extra_attrs = {SET("block_size", 2)}, .narrow = true},
	    {.op = "MirrorPad", .in = {X573, {MATRIX, 3, {4, 1, 0, 6, 0, 0}}}, .extra_attrs = {{"mode", A_TEXT, 0, "REFLECT"}}},
	    {.op = "MirrorPad", .in = {X573, {MATRIX, 3, {5, 1, 0, 7, 2, 0}}}, .extra_attrs = {{"mode", A_TEXT, 0, "SYMMETRIC"}}},
	    {.op = "MirrorPad", .in = {X573, {MATRIX, 3, {5, 1, 0, 7, 2, 0}}}, .extra_attrs = {{"mode", A_TEXT, 0, "REFLECT"}}}, /* too wide */
	};

	run_all(cases, MU_COUNT(cases));
}

#define ALIGN(how) {"align", A_TEXT, 0, how}
#define ONE {DATA, 0, {0}}

/* The inputs are the gradient of the padded tensor and the paddings. */
static void mirror_pad_grad__of_every_form__matches_the_cpu(void **state)
{
	static const enum mu_dtype real[] = {MU_FLOAT, MU_DOUBLE, MU_INT64};
	static const struct move_case cases[] = {
	    {.op = "MirrorPadGrad", .in = {X573, {MATRIX, 3, {2, 1, 0, 2, 0, 0}}}, .extra_attrs = {{"mode", A_TEXT, 0, "SYMMETRIC"}}},
	    {.op = "MirrorPadGrad", .in = {X573, {MATRIX, 3, {1, 1, 3, 0, 1, 0}}}, .extra_attrs = {{"mode", A_TEXT, 0, "REFLECT"}}},
	    {.op = "MirrorPadGrad", .in = {{DATA, 2, {9, 0}}, {MATRIX, 2, {3, 3, 0, 0}}}, .extra_attrs = {{"mode", A_TEXT, 0, "SYMMETRIC"}}},
	    {.op = "MirrorPadGrad", .in = {{DATA, 1, {40}}, {MATRIX, 1, {13, 12}}}, .extra_attrs = {{"mode", A_TEXT, 0, "REFLECT"}}},
	    {.op = "MirrorPadGrad", .in = {X573, {MATRIX, 3, {3, 1, 0, 0, 0, 0}}}, .extra_attrs = {{"mode", A_TEXT, 0, "REFLECT"}}}, /* too wide */
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++)
		for (unsigned t = 0; t < MU_COUNT(real); t++) {
			struct mu_tensor in[2] = {make_input(&cases[i].in[0], real[t], MU_INT32, t + 1), make_input(&cases[i].in[1], real[t], MU_INT32, 1)};
			const struct attr attrs[] = {{"T", A_TYPE, (long)real[t], NULL}, cases[i].extra_attrs[0], {0}};
			compare("MirrorPadGrad", attrs, in, 2, 2);
			mu_tensor_unref(&in[0]);
			mu_tensor_unref(&in[1]);
		}
}

static void diagonals__of_every_form__match_the_cpu(void **state)
{
	static const struct move_case cases[] = {
	    {.op = "MatrixDiag", .in = {{DATA, 2, {3, 4}}}, .narrow = true},
	    {.op = "MatrixDiag", .in = {{DATA, 2, {3, 0}}}, .narrow = true},
	    {.op = "MatrixDiag", .in = {{DATA, 0, {0}}}, .narrow = true}, /* no diagonal */
	    {.op = "MatrixDiagV3", .in = {{DATA, 3, {2, 3, 4}}, INTS(-1, 1), INT(4), INT(5), ONE}, .narrow = true},
	    {.op = "MatrixDiagV3", .in = {{DATA, 2, {3, 4}}, INTS(-1, 1), INT(-1), INT(-1), ONE}, .extra_attrs = {ALIGN("LEFT_LEFT")}, .narrow = true},
	    {.op = "MatrixDiagV3", .in = {{DATA, 2, {3, 4}}, INTS(0, 2), INT(-1), INT(-1), ONE}, .extra_attrs = {ALIGN("LEFT_RIGHT")}, .narrow = true},
	    {.op = "MatrixDiagV2", .in = {{DATA, 1, {4}}, INT(2), INT(-1), INT(-1), ONE}, .narrow = true},
	    {.op = "MatrixDiagV3", .in = {{DATA, 2, {2, 4}}, INTS(-1, 1), INT(4), INT(4), ONE}, .narrow = true}, /* too few */
	    {.op = "MatrixDiagPart", .in = {{DATA, 3, {2, 4, 3}}}, .narrow = true},
	    {.op = "MatrixDiagPart", .in = {{DATA, 1, {4}}}, .narrow = true}, /* no matrix */
	    {.op = "MatrixDiagPartV3", .in = {{DATA, 3, {2, 5, 4}}, INTS(-2, 3), ONE}, .narrow = true},
	    {.op = "MatrixDiagPartV3", .in = {{DATA, 3, {2, 4, 5}}, INTS(-3, -1), ONE}, .extra_attrs = {ALIGN("RIGHT_RIGHT")}, .narrow = true},
	    {.op = "MatrixDiagPartV2", .in = {{DATA, 2, {4, 5}}, INTS(1, 4), ONE}, .narrow = true},
	    {.op = "MatrixDiagPartV3", .in = {{DATA, 2, {4, 5}}, INTS(1, 5), ONE}, .narrow = true}, /* not in it */
	    {.op = "MatrixDiagPartV3", .in = {{DATA, 2, {4, 5}}, INTS(1, 0), ONE}, .narrow = true}, /* in no order */
	    {.op = "MatrixSetDiag", .in = {{DATA, 3, {2, 4, 3}}, {DATA, 2, {2, 3}}}, .narrow = true},
	    {.op = "MatrixSetDiag", .in = {{DATA, 3, {2, 4, 3}}, {DATA, 2, {2, 4}}}, .narrow = true}, /* too long */
	    {.op = "MatrixSetDiagV3", .in = {{DATA, 3, {2, 4, 3}}, {DATA, 3, {2, 4, 3}}, INTS(-2, 1)}, .narrow = true},
	    {.op = "MatrixSetDiagV2", .in = {{DATA, 2, {4, 3}}, {DATA, 1, {2}}, INT(1)}, .narrow = true},
	    {.op = "MatrixBandPart", .in = {{DATA, 3, {2, 4, 5}}, INT(1), INT(2)}},
	    {.op = "MatrixBandPart", .in = {{DATA, 3, {2, 4, 5}}, INT(-1), INT(0)}},
	    {.op = "MatrixBandPart", .in = {{DATA, 3, {2, 4, 5}}, INT(0), INT(-3)}},
	    {.op = "MatrixBandPart", .in = {{DATA, 3, {2, 0, 5}}, INT(0), INT(1)}},
	    {.op = "MatrixBandPart", .in = {{DATA, 3, {2, 4, 5}}, INT(5), INT(0)}}, /* too many */
	};

	run_all(cases, MU_COUNT(cases));
}

static void rolls_and_reversals__of_every_form__match_the_cpu(void **state)
{
	static const struct move_case cases[] = {
	    {.op = "Roll", .in = {X573, INTS(2), INTS(1)}},
	    {.op = "Roll", .in = {X573, INTS(-1, 9, 3), INTS(0, 1, -2)}},
	    {.op = "Roll", .in = {X573, INT(-1), INT(2)}},
	    {.op = "Roll", .in = {{DATA, 2, {0, 3}}, INT(1), INT(0)}},
	    {.op = "Roll", .in = {X573, INT(1), INT(3)}}, /* no such axis */
	    {.op = "Roll", .in = {X573, INTS(1, 2), INTS(0)}}, /* not as many */
	    {.op = "ReverseSequence", .in = {X573, INTS(0, 1, 7, 6, 3)}, .extra_attrs = {SET("seq_dim", 1), SET("batch_dim", 0)}},
	    {.op = "ReverseSequence", .in = {X573, INTS(5, 0, 4)}, .extra_attrs = {SET("seq_dim", 0), SET("batch_dim", 2)}},
	    {.op = "ReverseSequence", .in = {X573, INTS(5, 0, 6)}, .extra_attrs = {SET("seq_dim", 0), SET("batch_dim", 2)}}, /* too long */
	    {.op = "ReverseSequence", .in = {X573, INTS(5, 0)}, .extra_attrs = {SET("seq_dim", 0), SET("batch_dim", 2)}}, /* too few */
	    {.op = "ReverseSequence", .in = {{DATA, 2, {0, 3}}, INTS(0, 0, 0)}, .extra_attrs = {SET("seq_dim", 0), SET("batch_dim", 1)}},
	};

	run_all(cases, MU_COUNT(cases));
}

static void dynamic_partition__of_every_type__matches_the_cpu(void **state)
{
	static const int64_t to[] = {2, 0, 2, 2, 0}, pairs[] = {3, 3}, bad[] = {0, 4, 1, 0, 0};
	const struct mu_shape s = dims_of(3, (int64_t[]){5, 7, 3}), none = dims_of(2, (int64_t[]){0, 4});

	for (unsigned t = 0; t < MU_COUNT(types); t++) {
		const struct attr attrs[] = {{"T", A_TYPE, (long)types[t], NULL}, SET("num_partitions", 4), {0}};
		struct mu_tensor in[] = {filled(types[t], &s, -9, 18, t), ints(MU_INT32, 5, to), ints(MU_INT32, 5, bad),
					 filled(types[t], &none, 0, 1, t), ints(MU_INT32, 0, pairs)};
		compare("DynamicPartition", attrs, in, 2, 0);
		compare("DynamicPartition", attrs, (struct mu_tensor[]){in[0], in[2]}, 2, 0);
		compare("DynamicPartition", attrs, in + 3, 2, 0);
		for (unsigned k = 0; k < MU_COUNT(in); k++)
			mu_tensor_unref(&in[k]);
	}
}

/* If an index occurs twice, the last row is used; a row without an index is zero. */
static void dynamic_stitch__of_every_type__matches_the_cpu(void **state)
{
	static const int64_t first[] = {6, 0, 2}, second[] = {2, 2, 5, 0}, bad[] = {1, -1, 2};
	const struct mu_shape three = dims_of(3, (int64_t[]){3, 2, 5}), four = dims_of(3, (int64_t[]){4, 2, 5});
	const struct mu_shape empty = dims_of(2, (int64_t[]){3, 0});

	for (unsigned t = 0; t < MU_COUNT(types); t++)
		for (unsigned o = 0; o < 2; o++) {
			const char *op = o ? "ParallelDynamicStitch" : "DynamicStitch";
			const struct attr attrs[] = {{"T", A_TYPE, (long)types[t], NULL}, SET("N", 2), {0}};
			const struct attr alone[] = {attrs[0], SET("N", 1), {0}};
			struct mu_tensor in[] = {ints(MU_INT32, 3, first), ints(MU_INT32, 4, second),
						 filled(types[t], &three, -9, 18, t), filled(types[t], &four, -9, 18, t + 1),
						 ints(MU_INT32, 3, bad), filled(types[t], &empty, 0, 1, 1)};
			compare(op, attrs, in, 4, 0);
			compare(op, attrs, (struct mu_tensor[]){in[1], in[0], in[2], in[3]}, 4, 0); /* do not fit */
			compare(op, alone, (struct mu_tensor[]){in[0], in[2]}, 2, 0);
			compare(op, alone, (struct mu_tensor[]){in[4], in[2]}, 2, 0);
			compare(op, alone, (struct mu_tensor[]){in[0], in[5]}, 2, 0);
			for (unsigned k = 0; k < MU_COUNT(in); k++)
				mu_tensor_unref(&in[k]);
		}
}

static void strided_slice_grad__of_every_form__matches_the_cpu(void **state)
{
	static const struct move_case cases[] = {
	    {.op = "StridedSliceGrad", .in = {INTS(9), INTS(1), INTS(8), INTS(3)}},
	    {.op = "StridedSliceGrad", .in = {INTS(9), INTS(-1), INTS(0), INTS(-2)}},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++)
		for (unsigned t = 0; t < MU_COUNT(types); t++)
			for (unsigned wide = 0; wide < 2; wide++) {
				enum mu_dtype number = wide ? MU_INT64 : MU_INT32;
				const struct attr attrs[] = {{"T", A_TYPE, (long)types[t], NULL},
							     {"Index", A_TYPE, (long)number, NULL},
							     {0}};
				struct mu_shape s = mu_shape_vec(i ? 4 : 3);
				struct mu_tensor in[5];
				for (unsigned k = 0; k < 4; k++)
					in[k] = make_input(&cases[i].in[k], types[t], number, k);
				in[4] = filled(types[t], &s, -9, 18, t);
				compare("StridedSliceGrad", attrs, in, 5, 0);
				for (unsigned k = 0; k < 5; k++)
					mu_tensor_unref(&in[k]);
			}
}

static void joins_and_splits__along_every_axis__match_the_cpu(void **state)
{
	static const struct move_case cases[] = {
	    {.op = "ConcatV2", .in = {X573, {DATA, 3, {5, 2, 3}}, INT(1)}, .extra_attrs = {SET("N", 2)}},
	    {.op = "ConcatV2", .in = {X573, {DATA, 3, {5, 0, 3}}, INT(-2)}, .extra_attrs = {SET("N", 2)}},
	    {.op = "ConcatV2", .in = {X573, X573, INT(0)}, .extra_attrs = {SET("N", 2)}},
	    {.op = "ConcatV2", .in = {X573, X573, INT(2)}, .extra_attrs = {SET("N", 2)}},
	    {.op = "ConcatV2", .in = {X573, X573, INT(3)}, .extra_attrs = {SET("N", 2)}}, /* no such axis */
	    {.op = "Concat", .in = {INT(2), X573, {DATA, 3, {5, 7, 1}}}, .extra_attrs = {SET("N", 2)}, .narrow = true},
	    {.op = "ParallelConcat", .in = {{DATA, 2, {1, 6}}, {DATA, 2, {1, 6}}}, .extra_attrs = {SET("N", 2)}},
	    {.op = "ParallelConcat", .in = {{DATA, 2, {1, 6}}, {DATA, 2, {2, 6}}}, .extra_attrs = {SET("N", 2)}}, /* two rows */
	    {.op = "Pack", .in = {X573, X573}, .extra_attrs = {SET("N", 2)}},
	    {.op = "Pack", .in = {X573, X573, X573}, .extra_attrs = {SET("N", 3), SET("axis", -1)}},
	    {.op = "Pack", .in = {X573, {DATA, 3, {5, 7, 1}}}, .extra_attrs = {SET("N", 2)}}, /* of two shapes */
	    {.op = "Unpack", .in = {{DATA, 3, {5, 4, 3}}}, .extra_attrs = {SET("num", 4), SET("axis", 1)}},
	    {.op = "Split", .in = {INT(1), {DATA, 3, {5, 6, 3}}}, .extra_attrs = {SET("num_split", 3)}, .narrow = true},
	    {.op = "Split", .in = {INT(0), X573}, .extra_attrs = {SET("num_split", 3)}, .narrow = true}, /* does not divide */
	    {.op = "SplitV", .in = {X573, INTS(2, 0, -1), {SCALAR, 0, {1}}}, .extra_attrs = {SET("num_split", 3)}, .narrow = true},
	    {.op = "SplitV", .in = {X573, INTS(2, 0, 9), {SCALAR, 0, {1}}}, .extra_attrs = {SET("num_split", 3)}, .narrow = true},
	};

	run_all(cases, MU_COUNT(cases));
}

static void gathers__along_every_axis__match_the_cpu(void **state)
{
	static const struct move_case cases[] = {
	    {.op = "Gather", .in = {X573, INTS(4, 0, 0, 3)}},
	    {.op = "GatherV2", .in = {X573, INTS(2, 0, 1, 1), INT(0)}},
	    {.op = "GatherV2", .in = {X573, INTS(2, 0, 1, 1), INT(-1)}},
	    {.op = "GatherV2", .in = {X573, INT(6), INT(1)}},
	    {.op = "GatherV2", .in = {X573, {MATRIX, 5, {6, 0, 1, 1, 3, 2, 0, 6, 5, 4}}, INT(1)},
	     .extra_attrs = {SET("batch_dims", 1)}},
	    {.op = "GatherV2", .in = {X573, INTS(2, 0), INT(3)}}, /* no such axis */
	    {.op = "GatherV2", .in = {{DATA, 2, {3, 0}}, INTS(2, 0), INT(0)}},
	};

	run_all(cases, MU_COUNT(cases));
}
/* clang-format on */

static void gather__out_of_range__yields_zeros(void **state)
{
	const struct attr attrs[] = {
	    {"Tparams", A_TYPE, MU_FLOAT, NULL}, {"Tindices", A_TYPE, MU_INT64, NULL}, {0}};
	struct mu_shape s = mu_shape_vec(3);
	struct mu_tensor in[2] = {filled(MU_FLOAT, &s, 1, 1, 7),
				  ints(MU_INT64, 4, (int64_t[]){-1, 2, 3, INT64_MIN})};
	struct mu_tensor out[MAX_OUT] = {0};
	unsigned n;

	assert_int_equal(run_op(GPU, "Gather", attrs, in, 2, out, &n), 0);
	assert_true(get(&out[0], 0) == 0 && get(&out[0], 2) == 0 && get(&out[0], 3) == 0);
	assert_true(get(&out[0], 1) == get(&in[0], 2));
	mu_tensor_unref(&out[0]);
	mu_tensor_unref(&in[0]);
	mu_tensor_unref(&in[1]);
}

/* The view has more elements than fit in memory; the test reads the first few. */
static void view__with_a_dimension_of_2_to_the_32__uses_64_bit_division(void **state)
{
	const uint8_t from[4] = {1, 2, 3, 4};
	uint8_t to[4] = {0};
	struct view_args a = {.out = (uintptr_t)to | HOST_DEVICE_BIT,
			      .in = (uintptr_t)from | HOST_DEVICE_BIT,
			      .n = 4,
			      .rank = 2,
			      .dim = {2, (int64_t)1 << 32},
			      .stride = {100, 1}};

	host_kernel_run(host_kernel_find("view_read_8"), 1, 1, &a);
	assert_memory_equal(to, from, 4);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(views__of_every_form__match_the_cpu),
	    T(space_to_batch_and_mirror_pad__of_every_form__match_the_cpu),
	    T(mirror_pad_grad__of_every_form__matches_the_cpu),
	    T(diagonals__of_every_form__match_the_cpu),
	    T(rolls_and_reversals__of_every_form__match_the_cpu),
	    T(dynamic_partition__of_every_type__matches_the_cpu),
	    T(dynamic_stitch__of_every_type__matches_the_cpu),
	    T(strided_slice_grad__of_every_form__matches_the_cpu),
	    T(joins_and_splits__along_every_axis__match_the_cpu),
	    T(gathers__along_every_axis__match_the_cpu),
	    T(gather__out_of_range__yields_zeros),
	    T(view__with_a_dimension_of_2_to_the_32__uses_64_bit_division),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
