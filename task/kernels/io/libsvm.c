/* SPDX-License-Identifier: Apache-2.0 */
/* DecodeLibsvm: converts lines of a label and features (`3 1:0.5 7:2`) to labels and a sparse
 * tensor. */
#include <ctype.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/text/text_number.h"

/* Removes the next word from the front of the text; returns false at the end. */
static bool next_word(struct mu_span *text, struct mu_span *word)
{
	while (text->len && isspace((unsigned char)*text->data)) {
		text->data++;
		text->len--;
	}
	*word = (struct mu_span){text->data, 0};
	while (text->len && !isspace((unsigned char)*text->data)) {
		text->data++;
		text->len--;
		word->len++;
	}
	return word->len > 0;
}

/* Reads a word of the form index:value. */
static int read_feature(struct mu_span word, int64_t *index, struct mu_tensor *values, int64_t at,
			struct mu_err *err)
{
	const char *colon = memchr(word.data, ':', word.len);
	int shown_length = word.len < 100 ? (int)word.len : 100;

	if (!colon)
		return mu_invalid(err, "Invalid feature \"%.*s\"", shown_length, word.data);
	struct mu_span before = {word.data, (size_t)(colon - word.data)};
	struct mu_span after = {colon + 1, word.len - before.len - 1};
	if (!text_number(before, MU_INT64, index, 0) ||
	    !text_number(after, values->dtype, values->data, at))
		return mu_invalid(err, "Feature format incorrect: %.*s", shown_length, word.data);
	return *index >= 0
		   ? 0
		   : mu_invalid(err, "Feature index should be >= 0, got %lld", (long long)*index);
}

static int64_t count_features(const struct mu_tensor *in)
{
	int64_t n = 0;

	for (int64_t i = 0; i < in->shape.count; i++) {
		struct mu_span text = elems_span(in, i), word;
		if (next_word(&text, &word))
			while (next_word(&text, &word))
				n++;
	}
	return n;
}

static int decode_libsvm(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	int64_t n = count_features(in), at = 0, width = in->shape.rank + 1;
	struct mu_tensor *labels, *indices, *values, *shape;

	MU_RETURN_IF_ERROR(kernel_out(c, 0, args_attr_type(c->node, "label_dtype", MU_INT64),
				      &in->shape, &labels, err));
	MU_RETURN_IF_ERROR(
	    kernel_out_dims(c, 1, MU_INT64, 2, (int64_t[]){n, width}, &indices, err));
	MU_RETURN_IF_ERROR(
	    kernel_out_vec(c, 2, args_attr_type(c->node, "dtype", MU_FLOAT), n, &values, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 3, MU_INT64, width, &shape, err));
	for (int64_t i = 0; i < in->shape.count; i++) {
		struct mu_span text = elems_span(in, i), word;
		if (!next_word(&text, &word))
			return mu_invalid(err, "No label found for input[%lld]: \"\"",
					  (long long)i);
		if (!text_number(word, labels->dtype, labels->data, i))
			return mu_invalid(err, "Label format incorrect: %.*s",
					  word.len < 100 ? (int)word.len : 100, word.data);
		for (; next_word(&text, &word); at++) {
			int64_t *index = MU_DATA(int64_t, indices) + at * width, rest = i;
			MU_RETURN_IF_ERROR(read_feature(word, &index[width - 1], values, at, err));
			for (int64_t d = width - 2; d >= 0; d--) {
				index[d] = rest % in->shape.dim[d];
				rest /= in->shape.dim[d];
			}
		}
	}
	memcpy(shape->data, in->shape.dim, (size_t)(width - 1) * sizeof(int64_t));
	MU_DATA(int64_t, shape)[width - 1] = args_attr_int(c->node, "num_features", 0);
	return 0;
}

static const struct kernel rows[] = {{"DecodeLibsvm", KERNEL_EXPENSIVE, .run = decode_libsvm}};
KERNEL_TABLE(io_libsvm, rows)
