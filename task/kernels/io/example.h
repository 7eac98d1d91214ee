/* SPDX-License-Identifier: Apache-2.0 */
/* tf.Example messages, read where they lie: records of named lists of bytes, floats or int64.
 *
 *	Example { Features features = 1; }   Features { map<string, Feature> feature = 1; }
 *	Feature { BytesList = 1 | FloatList = 2 | Int64List = 3 }, each { repeated value = 1; }
 *	SequenceExample { Features context = 1; FeatureLists feature_lists = 2; }
 *	FeatureLists { map<string, FeatureList> = 1 }
 *	FeatureList { repeated Feature feature = 1; }
 */
#ifndef MU_TASK_KERNELS_IO_EXAMPLE_H
#define MU_TASK_KERNELS_IO_EXAMPLE_H

#include "lib/base/pb.h"
#include "lib/tensor/tensor.h"

/* One feature's values, borrowed from the message. */
struct example_list {
	enum mu_dtype type; /* MU_STRING, MU_FLOAT, MU_INT64; MU_DT_INVALID: there is none */
	int64_t count;
	struct mu_span values;
};

/* Calls each(arg, key, list) for every feature; of a key that comes twice the last one counts.
 * False when the message is malformed. */
typedef void example_feature(void *arg, struct mu_span key, const struct example_list *list);
bool example_read(struct mu_span message, example_feature *each, void *arg);
/* The same of a SequenceExample: its context's features, and its lists as they lie there. */
typedef void example_rows(void *arg, struct mu_span key, struct mu_span rows);
bool example_read_sequence(struct mu_span message, example_feature *each, void *arg,
			   example_rows *each_list, void *list_arg);
/* The next feature of a FeatureList; false at its end, and when it is malformed: rows->bad. */
bool example_row(struct mu_pb *rows, struct example_list *out);
/* Writes the list's values to out's elements from `at` on; out is of the list's type and has room.
 */
void example_values(const struct example_list *list, struct mu_tensor *out, int64_t at);

#endif
