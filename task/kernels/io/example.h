/* SPDX-License-Identifier: Apache-2.0 */
/* Parses tf.Example and tf.SequenceExample messages in place.  An Example is a record of
 * named lists of bytes, floats or int64.
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

/* The values of a feature, borrowed from the message. */
struct example_list {
	enum mu_dtype type; /* MU_STRING, MU_FLOAT, MU_INT64; MU_DT_INVALID: no list */
	int64_t count;
	struct mu_span values;
};

/* Calls each(arg, key, list) for every feature, in order.  If a key occurs more than once, the last
 * value counts.  Returns false if the message is malformed. */
typedef void example_feature(void *arg, struct mu_span key, const struct example_list *list);
bool example_read(struct mu_span message, example_feature *each, void *arg);
/* Parses a SequenceExample: calls `each` for the features of the context, and each_list with the
 * serialized FeatureList of every key. */
typedef void example_rows(void *arg, struct mu_span key, struct mu_span rows);
bool example_read_sequence(struct mu_span message, example_feature *each, void *arg,
			   example_rows *each_list, void *list_arg);
/* Reads the next feature of a FeatureList.  Returns false at the end, or with rows->bad if the list
 * is malformed. */
bool example_row(struct mu_pb *rows, struct example_list *out);
/* Copies the values of the list to the elements of out from `at` on.  out has the type of the list
 * and room for the values. */
void example_values(const struct example_list *list, struct mu_tensor *out, int64_t at);

#endif
