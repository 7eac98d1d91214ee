/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of ops that only put elements elsewhere. */
#ifndef TESTS_CLIENT_GRADIENT_CASES_SPACE_H
#define TESTS_CLIENT_GRADIENT_CASES_SPACE_H

CASE(y_batch_to_space, mu_op(b, "BatchToSpace", MU_IN(x, table(b, 2, 2, (int32_t[]){0, 1, 1, 0})),
			     MU_ATTRS(MU_A_INT("block_size", 2))))
CASE(y_batch_to_space_nd,
     mu_op(b, "BatchToSpaceND",
	   MU_IN(x, ints(b, 2, (int32_t[]){2, 2}), table(b, 2, 2, (int32_t[]){0, 1, 1, 0}))))
CASE(y_space_to_batch, mu_op(b, "SpaceToBatch", MU_IN(x, table(b, 2, 2, (int32_t[]){0, 1, 1, 0})),
			     MU_ATTRS(MU_A_INT("block_size", 2))))
CASE(y_space_to_batch_nd,
     mu_op(b, "SpaceToBatchND",
	   MU_IN(x, ints(b, 2, (int32_t[]){2, 2}), table(b, 2, 2, (int32_t[]){0, 1, 1, 0}))))
CASE(y_depth_to_space, mu_op(b, "DepthToSpace", MU_IN(x), MU_ATTRS(MU_A_INT("block_size", 2))))
CASE(y_space_to_depth, mu_op(b, "SpaceToDepth", MU_IN(x), MU_ATTRS(MU_A_INT("block_size", 2))))
CASE(y_diag, mu_op(b, "Diag", MU_IN(x)))
CASE(y_reverse_sequence, mu_op(b, "ReverseSequence", MU_IN(x, ints(b, 3, (int32_t[]){3, 1, 4})),
			       MU_ATTRS(MU_A_INT("seq_dim", 1), MU_A_INT("batch_dim", 0))))
CASE(y_roll,
     mu_op(b, "Roll", MU_IN(x, ints(b, 2, (int32_t[]){1, -2}), ints(b, 2, (int32_t[]){0, 1}))))

#endif
