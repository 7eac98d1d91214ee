/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient cases: ops that gather, scatter, partition and reduce segments by index. */
#ifndef MU_TESTS_CLIENT_GRADIENT_CASES_INDEX_H
#define MU_TESTS_CLIENT_GRADIENT_CASES_INDEX_H

#include "tests/client/gradient.h"

CASE(y_gather, mu_op(b, "Gather", MU_IN(x, ints(b, 3, (int32_t[]){2, 0, 2}))))
CASE(y_gatherv2,
     mu_op(b, "GatherV2",
	   MU_IN(x, table(b, 2, 2, (int32_t[]){3, 0, 3, 3}), mu_const_int(b, MU_INT32, 0))))
CASE(y_gatherv2_batches,
     mu_op(b, "GatherV2",
	   MU_IN(x, table(b, 2, 3, (int32_t[]){1, 1, 3, 0, 2, 1}), mu_const_int(b, MU_INT32, 1)),
	   MU_ATTRS(MU_A_INT("batch_dims", 1))))
CASE(y_gatherv2_batches_of_batches,
     mu_op(b, "GatherV2",
	   MU_IN(x, table(b, 2, 2, (int32_t[]){1, 0, 2, 2}), mu_const_int(b, MU_INT32, 2)),
	   MU_ATTRS(MU_A_INT("batch_dims", 2))))
CASE(y_gatherv2_inner_axis,
     mu_op(b, "GatherV2",
	   MU_IN(x, table(b, 2, 2, (int32_t[]){3, 0, 3, 1}), mu_const_int(b, MU_INT32, 1))))
CASE(y_gatherv2_last_axis,
     mu_op(b, "GatherV2",
	   MU_IN(x, ints(b, 3, (int32_t[]){3, 0, 3}), mu_const_int(b, MU_INT32, -1))))
CASE(y_gathernd, mu_op(b, "GatherNd", MU_IN(x, table(b, 3, 2, (int32_t[]){0, 1, 2, 3, 0, 1}))))
CASE(y_scatternd,
     mu_op(b, "ScatterNd",
	   MU_IN(table(b, 3, 1, (int32_t[]){4, 0, 4}), x, ints(b, 2, (int32_t[]){5, 2}))))
CASE(y_gatherv2_empty,
     mu_op(b, "GatherV2",
	   MU_IN(x, mu_reshape(b, ints(b, 0, NULL), ints(b, 2, (int32_t[]){2, 0})),
		 mu_const_int(b, MU_INT32, 1)),
	   MU_ATTRS(MU_A_INT("batch_dims", 1))))

/* The rank of the result of Reshape is unknown, because Unique has an unknown number of results. */
static struct mu_out y_sparsetodense_unknown_rank(struct mu_builder *b, struct mu_out x)
{
	struct mu_out size = mu_op(b, "Unique", MU_IN(ints(b, 2, (int32_t[]){3, 2})));
	struct mu_out at = mu_reshape(b, table(b, 3, 2, (int32_t[]){0, 1, 1, 0, 1, 2}), size);

	return mu_op(b, "SparseToDense",
		     MU_IN(at, ints(b, 2, (int32_t[]){2, 3}), x, mu_const_float(b, 0.5f)));
}
CASE(y_sparsetodense_list, mu_op(b, "SparseToDense",
				 MU_IN(ints(b, 3, (int32_t[]){1, 4, 5}), ints(b, 1, (int32_t[]){7}),
				       x, mu_const_float(b, 2))))
CASE(y_sparsetodense_table, mu_op(b, "SparseToDense",
				  MU_IN(table(b, 2, 2, (int32_t[]){0, 1, 2, 0}),
					ints(b, 2, (int32_t[]){3, 3}), x, mu_const_float(b, 2))))
CASE(y_sparsetodense_default, mu_op(b, "SparseToDense",
				    MU_IN(ints(b, 2, (int32_t[]){1, 4}), ints(b, 1, (int32_t[]){7}),
					  row(b, 2), mu_reshape(b, x, ints(b, 0, NULL)))))
CASE(y_sparsefillemptyrows,
     mu_port(mu_op(b, "SparseFillEmptyRows",
		   MU_IN(long_ints(b, table(b, 3, 2, (int32_t[]){0, 0, 2, 0, 2, 1})), x,
			 long_ints(b, ints(b, 2, (int32_t[]){5, 2})), mu_const_float(b, 3))),
	     1))
CASE(y_raggedfillemptyrows,
     mu_port(mu_op(b, "RaggedFillEmptyRows",
		   MU_IN(long_ints(b, ints(b, 3, (int32_t[]){0, 2, 2})), x,
			 mu_const_int(b, MU_INT64, 5), mu_const_float(b, 3))),
	     1))
CASE(y_topkv2, mu_op(b, "TopKV2", MU_IN(x, mu_const_int(b, MU_INT32, 2))))
CASE(y_dynamicpartition, first_two_outputs(b, mu_op(b, "DynamicPartition",
						    MU_IN(x, ints(b, 4, (int32_t[]){1, 0, 1, 2})),
						    MU_ATTRS(MU_A_INT("num_partitions", 3)))))
CASE(y_dynamicstitch,
     mu_op(b, "DynamicStitch",
	   MU_IN(ints(b, 2, (int32_t[]){1, 3}), ints(b, 2, (int32_t[]){0, 2}), x, mu_square(b, x)),
	   MU_ATTRS(MU_A_INT("N", 2))))
CASE(y_paralleldynamicstitch,
     mu_op(b, "ParallelDynamicStitch",
	   MU_IN(ints(b, 2, (int32_t[]){1, 3}), ints(b, 2, (int32_t[]){0, 2}), x, mu_square(b, x)),
	   MU_ATTRS(MU_A_INT("N", 2))))
CASE(y_segmentsum, mu_op(b, "SegmentSum", MU_IN(x, ints(b, 5, (int32_t[]){0, 0, 2, 2, 2}))))
CASE(y_segmentmean, mu_op(b, "SegmentMean", MU_IN(x, ints(b, 5, (int32_t[]){0, 0, 2, 2, 2}))))
CASE(y_segmentmax, mu_op(b, "SegmentMax", MU_IN(x, ints(b, 5, (int32_t[]){0, 0, 2, 2, 2}))))
CASE(y_segmentmin, mu_op(b, "SegmentMin", MU_IN(x, ints(b, 5, (int32_t[]){0, 0, 2, 2, 2}))))
CASE(y_segmentprod, mu_op(b, "SegmentProd", MU_IN(x, ints(b, 5, (int32_t[]){0, 0, 2, 2, 2}))))
CASE(y_unsortedsegmentsum,
     mu_op(b, "UnsortedSegmentSum",
	   MU_IN(x, ints(b, 5, (int32_t[]){1, 0, -1, 1, 0}), mu_const_int(b, MU_INT32, 2))))
CASE(y_unsortedsegmentmax,
     mu_op(b, "UnsortedSegmentMax",
	   MU_IN(x, ints(b, 5, (int32_t[]){1, 0, -1, 1, 0}), mu_const_int(b, MU_INT32, 2))))
CASE(y_unsortedsegmentmin,
     mu_op(b, "UnsortedSegmentMin",
	   MU_IN(x, ints(b, 5, (int32_t[]){1, 0, -1, 1, 0}), mu_const_int(b, MU_INT32, 2))))
CASE(y_unsortedsegmentprod,
     mu_op(b, "UnsortedSegmentProd",
	   MU_IN(x, ints(b, 5, (int32_t[]){1, 0, -1, 1, 0}), mu_const_int(b, MU_INT32, 2))))
CASE(y_unsortedsegmentsum_table_of_ids,
     mu_op(b, "UnsortedSegmentSum",
	   MU_IN(x, table(b, 2, 2, (int32_t[]){2, 0, 1, -1}), mu_const_int(b, MU_INT32, 3))))
CASE(y_segmentprod_with_a_zero,
     mu_op(b, "SegmentProd",
	   MU_IN(mu_mul(b, x, mu_cast(b, ints(b, 5, (int32_t[]){1, 0, 1, 1, 1}), MU_FLOAT)),
		 ints(b, 5, (int32_t[]){0, 0, 2, 2, 2}))))
CASE(y_sparsesegmentsum,
     mu_op(b, "SparseSegmentSum",
	   MU_IN(x, ints(b, 3, (int32_t[]){3, 0, 3}), ints(b, 3, (int32_t[]){0, 0, 1}))))
CASE(y_sparsesegmentmean,
     mu_op(b, "SparseSegmentMean",
	   MU_IN(x, ints(b, 3, (int32_t[]){3, 0, 3}), ints(b, 3, (int32_t[]){0, 0, 1}))))
CASE(y_sparsesegmentsqrtn,
     mu_op(b, "SparseSegmentSqrtN",
	   MU_IN(x, ints(b, 3, (int32_t[]){3, 0, 3}), ints(b, 3, (int32_t[]){0, 0, 1}))))
CASE(y_sparsesegmentsumwithnumsegments,
     mu_op(b, "SparseSegmentSumWithNumSegments",
	   MU_IN(x, ints(b, 3, (int32_t[]){3, 0, 3}), ints(b, 3, (int32_t[]){0, 0, 1}),
		 mu_const_int(b, MU_INT32, 3))))
CASE(y_sparsesegmentmeanwithnumsegments,
     mu_op(b, "SparseSegmentMeanWithNumSegments",
	   MU_IN(x, ints(b, 3, (int32_t[]){3, 0, 3}), ints(b, 3, (int32_t[]){0, 0, 1}),
		 mu_const_int(b, MU_INT32, 3))))
CASE(y_topk, mu_op(b, "TopK", MU_IN(x), MU_ATTRS(MU_A_INT("k", 2))))
CASE(y_nthelement, mu_op(b, "NthElement", MU_IN(x, mu_const_int(b, MU_INT32, 1))))
CASE(y_sparsesegmentsqrtnwithnumsegments,
     mu_op(b, "SparseSegmentSqrtNWithNumSegments",
	   MU_IN(x, ints(b, 3, (int32_t[]){3, 0, 3}), ints(b, 3, (int32_t[]){0, 0, 1}),
		 mu_const_int(b, MU_INT32, 3))))
CASE(y_scatterndnonaliasingadd,
     mu_op(b, "ScatterNdNonAliasingAdd",
	   MU_IN(x, table(b, 2, 1, (int32_t[]){2, 2}), values(b, 2, 2, 0))))
CASE(y_scatterndnonaliasingadd_updates,
     mu_op(b, "ScatterNdNonAliasingAdd",
	   MU_IN(values(b, 3, 2, 0), table(b, 2, 1, (int32_t[]){2, 0}), x)))
CASE(y_sparsereorder,
     mu_port(mu_op(b, "SparseReorder",
		   MU_IN(long_ints(b, table(b, 3, 2, (int32_t[]){2, 0, 0, 1, 1, 3})), x,
			 long_ints(b, ints(b, 2, (int32_t[]){3, 4})))),
	     1))
CASE(y_gatherv2_behind_batches,
     mu_op(b, "GatherV2",
	   MU_IN(x, table(b, 2, 2, (int32_t[]){1, 1, 2, 0}), mu_const_int(b, MU_INT32, 2)),
	   MU_ATTRS(MU_A_INT("batch_dims", 1))))

#define SCATTER(fn, op, target, updates)                                                           \
	CASE(fn, mu_op(b, op, MU_IN(target, table(b, 3, 1, (int32_t[]){2, 0, 2}), updates)))

SCATTER(y_scatteradd, "TensorScatterAdd", x, values(b, 3, 2, 0))

SCATTER(y_scatteradd_updates, "TensorScatterAdd", values(b, 3, 2, 0), x)

SCATTER(y_scattersub, "TensorScatterSub", x, values(b, 3, 2, 0))

SCATTER(y_scattersub_updates, "TensorScatterSub", values(b, 3, 2, 0), x)

SCATTER(y_scattermax, "TensorScatterMax", x, values(b, 3, 2, 0))

SCATTER(y_scattermax_updates, "TensorScatterMax", values(b, 3, 2, 0), x)

SCATTER(y_scattermin, "TensorScatterMin", x, values(b, 3, 2, 0))

SCATTER(y_scattermin_updates, "TensorScatterMin", values(b, 3, 2, 0), x)

CASE(y_scatterupdate, mu_op(b, "TensorScatterUpdate",
			    MU_IN(x, table(b, 2, 1, (int32_t[]){2, 0}), values(b, 2, 2, 0))))
CASE(y_scatterupdate_updates,
     mu_op(b, "TensorScatterUpdate",
	   MU_IN(values(b, 3, 2, 0), table(b, 2, 1, (int32_t[]){2, 0}), x)))

static const struct gradient_case index_cases[] = {
    {"Gather", {2, {4, 3}}, y_gather, -1, 1},
    {"GatherV2", {2, {4, 3}}, y_gatherv2, -1, 1},
    {"GatherV2, batches", {3, {2, 4, 3}}, y_gatherv2_batches, -1, 1},
    {"GatherV2, batches of batches", {3, {2, 2, 3}}, y_gatherv2_batches_of_batches, -1, 1},
    {"GatherV2, inner axis", {3, {2, 4, 3}}, y_gatherv2_inner_axis, -1, 1},
    {"GatherV2, last axis", {2, {2, 4}}, y_gatherv2_last_axis, -1, 1},
    {"GatherNd", {2, {3, 4}}, y_gathernd, -1, 1},
    {"ScatterNd", {2, {3, 2}}, y_scatternd, -1, 1},
    {"GatherV2, batches of an empty axis", {3, {2, 0, 3}}, y_gatherv2_empty, -1, 1},
    {"SparseToDense, unknown rank", {1, {3}}, y_sparsetodense_unknown_rank, -1, 1},
    {"SparseToDense, list", {1, {3}}, y_sparsetodense_list, -1, 1},
    {"SparseToDense, table", {1, {2}}, y_sparsetodense_table, -1, 1},
    {"SparseToDense, default", {1, {1}}, y_sparsetodense_default, -1, 1},
    {"RaggedFillEmptyRows", {1, {3}}, y_raggedfillemptyrows, -1, 1},
    {"SparseFillEmptyRows", {1, {3}}, y_sparsefillemptyrows, -1, 1},
    {"TopKV2", {2, {3, 4}}, y_topkv2, -1, 1},
    {"DynamicPartition", {2, {4, 2}}, y_dynamicpartition, -1, 1},
    {"DynamicStitch", {2, {2, 2}}, y_dynamicstitch, -1, 1},
    {"ParallelDynamicStitch", {2, {2, 2}}, y_paralleldynamicstitch, -1, 1},
    {"SegmentSum", {2, {5, 2}}, y_segmentsum, -1, 1},
    {"SegmentMean", {2, {5, 2}}, y_segmentmean, -1, 1},
    {"SegmentMax", {2, {5, 2}}, y_segmentmax, -1, 1},
    {"SegmentMin", {2, {5, 2}}, y_segmentmin, -1, 1},
    {"SegmentProd", {2, {5, 2}}, y_segmentprod, -1, 1},
    {"UnsortedSegmentSum", {2, {5, 2}}, y_unsortedsegmentsum, -1, 1},
    {"UnsortedSegmentMax", {2, {5, 2}}, y_unsortedsegmentmax, -1, 1},
    {"UnsortedSegmentMin", {2, {5, 2}}, y_unsortedsegmentmin, -1, 1},
    {"UnsortedSegmentProd", {2, {5, 2}}, y_unsortedsegmentprod, -1, 1},
    {"UnsortedSegmentSum, table of ids", {3, {2, 2, 2}}, y_unsortedsegmentsum_table_of_ids, -1, 1},
    {"SegmentProd, with a zero", {1, {5}}, y_segmentprod_with_a_zero, -1, 1},
    {"SparseSegmentSum", {2, {4, 2}}, y_sparsesegmentsum, -1, 1},
    {"SparseSegmentMean", {2, {4, 2}}, y_sparsesegmentmean, -1, 1},
    {"SparseSegmentSqrtN", {2, {4, 2}}, y_sparsesegmentsqrtn, -1, 1},
    {"SparseSegmentSumWithNumSegments", {2, {4, 2}}, y_sparsesegmentsumwithnumsegments, -1, 1},
    {"SparseSegmentMeanWithNumSegments", {2, {4, 2}}, y_sparsesegmentmeanwithnumsegments, -1, 1},
    {"TensorScatterAdd", {2, {3, 2}}, y_scatteradd, -1, 1},
    {"TensorScatterAdd, updates", {2, {3, 2}}, y_scatteradd_updates, -1, 1},
    {"TensorScatterSub", {2, {3, 2}}, y_scattersub, -1, 1},
    {"TensorScatterSub, updates", {2, {3, 2}}, y_scattersub_updates, -1, 1},
    {"TensorScatterMax", {2, {3, 2}}, y_scattermax, 0.5f, 2.3f},
    {"TensorScatterMax, updates", {2, {3, 2}}, y_scattermax_updates, 0.5f, 2.3f},
    {"TensorScatterMin", {2, {3, 2}}, y_scattermin, 0.5f, 2.3f},
    {"TensorScatterMin, updates", {2, {3, 2}}, y_scattermin_updates, 0.5f, 2.3f},
    {"TensorScatterUpdate", {2, {3, 2}}, y_scatterupdate, -1, 1},
    {"TensorScatterUpdate, updates", {2, {2, 2}}, y_scatterupdate_updates, -1, 1},
    {"TopK", {2, {3, 4}}, y_topk, -1, 1},
    {"NthElement", {2, {3, 4}}, y_nthelement, -1, 1},
    {"SparseSegmentSqrtNWithNumSegments", {2, {4, 2}}, y_sparsesegmentsqrtnwithnumsegments, -1, 1},
    {"ScatterNdNonAliasingAdd", {2, {3, 2}}, y_scatterndnonaliasingadd, -1, 1},
    {"ScatterNdNonAliasingAdd, updates", {2, {2, 2}}, y_scatterndnonaliasingadd_updates, -1, 1},
    {"SparseReorder", {1, {3}}, y_sparsereorder, -1, 1},
    {"GatherV2, behind batches", {3, {2, 2, 3}}, y_gatherv2_behind_batches, -1, 1},
};

#endif
