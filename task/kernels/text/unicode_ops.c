/* SPDX-License-Identifier: Apache-2.0 */
/* UnicodeDecode, UnicodeEncode, UnicodeTranscode and UnicodeScript. Depending on the attribute
 * errors, malformed input fails the step, is dropped or is replaced. */
#include "task/kernels/text/unicode.h"

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"

enum on_error { FAIL, REPLACE, IGNORE };
enum { LAST_CONTROL = 0x1f };

struct policy {
	enum on_error on_error;
	int32_t replacement;
	bool replace_controls; /* control characters are malformed */
	bool fail_on_controls; /* FAIL applies to control characters: UnicodeTranscode only */
};

static int read_policy(const struct kernel_call *c, struct policy *p, struct mu_err *err)
{
	static const char *const names[] = {
	    [FAIL] = "strict", [REPLACE] = "replace", [IGNORE] = "ignore"};
	const char *errors = args_attr_string(c->node, "errors", "replace");
	int64_t replacement = args_attr_int(c->node, "replacement_char", UNICODE_REPLACEMENT);
	unsigned i = 0;

	while (i < MU_COUNT(names) && strcmp(names[i], errors) != 0)
		i++;
	if (i == MU_COUNT(names))
		return mu_invalid(err, "errors must be strict, replace or ignore, not %.40s",
				  errors);
	if (replacement < 0 || replacement > UNICODE_LAST ||
	    unicode_is_surrogate((int32_t)replacement))
		return mu_invalid(err, "replacement_char out of unicode codepoint range: %lld",
				  (long long)replacement);
	*p = (struct policy){
	    .on_error = (enum on_error)i,
	    .replacement = (int32_t)replacement,
	    .replace_controls = args_attr_bool(c->node, "replace_control_characters", false),
	};
	return 0;
}

static int read_encoding(const struct kernel_call *c, const char *attr,
			 const struct unicode_encoding **out, struct mu_err *err)
{
	const char *name = args_attr_string(c->node, attr, "");

	*out = unicode_encoding_named(name);
	return *out ? 0
		    : mu_invalid(err, "Could not create converter for input encoding: %.64s", name);
}

/* Replaces a malformed character.  Returns false if the character is dropped, or with err if the
 * step fails. */
static bool apply_policy(const struct policy *p, int32_t *character, struct mu_err *err)
{
	bool is_control = p->replace_controls && *character >= 0 && *character <= LAST_CONTROL;

	if (*character >= 0 && !is_control)
		return true;
	if (p->on_error == FAIL && (!is_control || p->fail_on_controls)) {
		mu_invalid(err, "Invalid formatting on input string");
		return false;
	}
	*character = p->replacement;
	return p->on_error != IGNORE;
}

/* ---- UnicodeDecode, UnicodeDecodeWithOffsets ---- */

/* Decodes all texts into characters and offsets, which can be NULL.  Returns the number of
 * characters. */
static int64_t read_texts(const struct mu_tensor *in, const struct unicode_encoding *e,
			  const struct policy *p, struct mu_tensor *splits, int32_t *characters,
			  int64_t *offsets, struct mu_err *err)
{
	int64_t n = 0;

	for (int64_t i = 0; i < in->shape.count; i++) {
		struct mu_span s = elems_span(in, i);
		size_t from = 0, at;
		const struct unicode_encoding *text_encoding = unicode_byte_order(e, s, &at);
		for (; at < s.len && err->code == MU_OK; from = at) {
			int32_t character;
			at += unicode_next(text_encoding, (struct mu_span){s.data + at, s.len - at},
					   &character);
			if (!apply_policy(p, &character, err))
				continue;
			if (characters)
				characters[n] = character;
			if (offsets)
				offsets[n] = (int64_t)from;
			n++;
		}
		mu_tensor_set_int(splits, i + 1, n);
	}
	return n;
}

static int unicode_decode(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	enum mu_dtype type = args_attr_type(c->node, "Tsplits", MU_INT64);
	struct mu_tensor *splits, *characters, *offsets = NULL;
	const struct unicode_encoding *e;
	struct mu_err policy_err = {0};
	struct mu_shape shape;
	struct policy p;

	MU_RETURN_IF_ERROR(read_policy(c, &p, err));
	MU_RETURN_IF_ERROR(read_encoding(c, "input_encoding", &e, err));
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, 1, (int64_t[]){in->shape.count + 1}, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &shape, &splits, err));
	mu_tensor_set_int(splits, 0, 0);
	int64_t n = read_texts(in, e, &p, splits, NULL, NULL, &policy_err);
	if (policy_err.code != MU_OK || (type == MU_INT32 && n > INT32_MAX))
		return mu_invalid(err, "%s",
				  policy_err.code != MU_OK ? policy_err.msg
							   : "too many characters for int32");
	shape = mu_shape_vec(n);
	MU_RETURN_IF_ERROR(kernel_out(c, 1, MU_INT32, &shape, &characters, err));
	if (c->n_out > 2)
		MU_RETURN_IF_ERROR(kernel_out(c, 2, MU_INT64, &shape, &offsets, err));
	read_texts(in, e, &p, splits, characters->data, offsets ? offsets->data : NULL,
		   &policy_err);
	return 0;
}

/* ---- UnicodeEncode ---- */

/* False for surrogates and noncharacters. */
static bool is_character(int32_t c)
{
	return c >= 0 && c <= UNICODE_LAST && !unicode_is_surrogate(c) &&
	       !(c >= 0xfdd0 && c <= 0xfdef) && (c & 0xfffe) != 0xfffe;
}

static int check_splits(const struct mu_tensor *splits, int64_t n, struct mu_err *err)
{
	int64_t last = 0;

	if (splits->shape.rank != 1 || !splits->shape.count || mu_tensor_int(splits, 0))
		return mu_invalid(err, "First value in input_splits must be zero.");
	for (int64_t i = 1; i < splits->shape.count; i++) {
		if (mu_tensor_int(splits, i) < last)
			return mu_invalid(
			    err, "Values in input_splits must be equal or in ascending order.");
		last = mu_tensor_int(splits, i);
	}
	return last == n ? 0
			 : mu_invalid(err,
				      "Last value in input_splits must be equal to the length of "
				      "input_values tensor: %lld, not %lld",
				      (long long)n, (long long)last);
}

static int unicode_encode(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *splits = kernel_in(c, 1);
	const struct unicode_encoding *e;
	MU_AUTO_BUF b = {0};
	struct mu_tensor *out;
	struct mu_shape shape;
	struct policy p;

	MU_RETURN_IF_ERROR(check_splits(splits, in->shape.count, err));
	MU_RETURN_IF_ERROR(read_policy(c, &p, err));
	MU_RETURN_IF_ERROR(read_encoding(c, "output_encoding", &e, err));
	shape = mu_shape_vec(splits->shape.count - 1);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_STRING, &shape, &out, err));
	for (int64_t i = 0; i < shape.count; i++) {
		mu_buf_clear(&b);
		for (int64_t k = mu_tensor_int(splits, i); k < mu_tensor_int(splits, i + 1); k++) {
			int32_t character = MU_DATA(int32_t, in)[k];
			if (!is_character(character) && p.on_error == FAIL)
				return mu_invalid(
				    err,
				    "Code point is out of range for Unicode, or a noncharacter.");
			if (!is_character(character) && p.on_error == REPLACE)
				character = p.replacement;
			/* IGNORE drops only numbers that are no code points, as in TensorFlow. */
			if (character >= 0 && character <= UNICODE_LAST)
				unicode_put(e, &b, character);
		}
		mu_string_set(&MU_DATA(struct mu_string, out)[i], b.data, b.len);
	}
	return 0;
}

/* ---- UnicodeTranscode ---- */

static int transcode(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const struct unicode_encoding *from, *to;
	struct mu_err policy_err = {0};
	MU_AUTO_BUF b = {0};
	struct mu_tensor *out;
	struct policy p;

	MU_RETURN_IF_ERROR(read_policy(c, &p, err));
	MU_RETURN_IF_ERROR(read_encoding(c, "input_encoding", &from, err));
	MU_RETURN_IF_ERROR(read_encoding(c, "output_encoding", &to, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_STRING, &in->shape, &out, err));
	p.fail_on_controls = true;
	for (int64_t i = 0; i < in->shape.count; i++) {
		struct mu_span s = elems_span(in, i);
		size_t at;
		const struct unicode_encoding *text_encoding = unicode_byte_order(from, s, &at);
		mu_buf_clear(&b);
		while (at < s.len) {
			int32_t character;
			at += unicode_next(text_encoding, (struct mu_span){s.data + at, s.len - at},
					   &character);
			if (apply_policy(&p, &character, &policy_err))
				unicode_put(to, &b, character);
		}
		if (policy_err.code != MU_OK)
			return mu_fail(err, policy_err.code, "%s", policy_err.msg);
		mu_string_set(&MU_DATA(struct mu_string, out)[i], b.data, b.len);
	}
	return 0;
}

/* ---- UnicodeScript ---- */

/* Returns -1 if the number is no code point. */
static int32_t script_of(int32_t character)
{
	static const struct {
		int32_t first;
		int32_t script;
	} ranges[] = {
#include "task/kernels/text/unicode_scripts.def"
	};
	size_t low = 0, high = sizeof ranges / sizeof *ranges;

	if (character < 0 || character > UNICODE_LAST)
		return -1;
	while (high - low > 1) {
		size_t middle = (low + high) / 2;
		*(ranges[middle].first <= character ? &low : &high) = middle;
	}
	return ranges[low].script;
}

static int unicode_script(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_INT32, &in->shape, &out, err));
	for (int64_t i = 0; i < in->shape.count; i++)
		MU_DATA(int32_t, out)[i] = script_of(MU_DATA(int32_t, in)[i]);
	return 0;
}

static const struct kernel rows[] = {
    {"UnicodeDecode UnicodeDecodeWithOffsets", .run = unicode_decode},
    {"UnicodeEncode", .run = unicode_encode},
    {"UnicodeScript", .run = unicode_script},
    {"UnicodeTranscode", .run = transcode},
};
KERNEL_TABLE(text_unicode_ops, rows)
