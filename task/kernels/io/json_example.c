/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the fields in the order of the text, and repeated fields unpacked, so that the bytes are
 * those of TensorFlow. */
#include "task/kernels/io/json_example.h"

#include <math.h>
#include <string.h>

#include "lib/base/pb.h"
#include "lib/io/json.h"
#include "task/kernels/text/base64.h"
#include "task/kernels/text/text_number.h"

static int put_bytes(struct mu_buf *out, const struct mu_doc_node *v, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};
	struct mu_err ignored;

	if (v->kind != MU_DOC_STRING ||
	    base64_decode(&b, (struct mu_span){v->text, v->len}, true, &ignored))
		return mu_doc_invalid(v, err, "must be bytes in base64");
	mu_pb_put_bytes(out, 1, mu_buf_span(&b));
	return 0;
}

static int put_float(struct mu_buf *out, const struct mu_doc_node *v, struct mu_err *err)
{
	static const struct {
		const char *text;
		float value;
	} special[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};
	double f = v->f;
	bool is_valid = v->kind == MU_DOC_INT || v->kind == MU_DOC_FLOAT;

	if (v->kind == MU_DOC_STRING)
		is_valid =
		    text_number((struct mu_span){v->text, v->len}, MU_DOUBLE, &f, 0) && isfinite(f);
	if (is_valid && isfinite((float)f)) {
		mu_pb_put_float(out, 1, (float)f);
		return 0;
	}
	for (size_t i = 0; i < MU_COUNT(special) && v->kind == MU_DOC_STRING; i++)
		if (strcmp(special[i].text, v->text) == 0) {
			mu_pb_put_float(out, 1, special[i].value);
			return 0;
		}
	return mu_doc_invalid(v, err, "must be a float");
}

/* A number of 2^53 or more is not MU_DOC_INT, because the JSON parser rounds it to a double. */
static int put_int(struct mu_buf *out, const struct mu_doc_node *v, struct mu_err *err)
{
	int64_t i = v->i;
	bool is_valid = v->kind == MU_DOC_INT;

	if (v->kind == MU_DOC_STRING)
		is_valid = text_number((struct mu_span){v->text, v->len}, MU_INT64, &i, 0);
	if (!is_valid)
		return mu_doc_invalid(
		    v, err, "must be an int64; write it as a string if it is 2^53 or more");
	mu_pb_put_int(out, 1, i);
	return 0;
}

static const struct list_kind {
	const char *name, *proto_name;
	uint32_t number; /* of the field of Feature */
	int (*put)(struct mu_buf *out, const struct mu_doc_node *v, struct mu_err *err);
} kinds[] = {
    {"bytesList", "bytes_list", 1, put_bytes},
    {"floatList", "float_list", 2, put_float},
    {"int64List", "int64_list", 3, put_int},
};

static int must_be_map(const struct mu_doc_node *n, struct mu_err *err)
{
	return n->kind == MU_DOC_MAP ? 0 : mu_doc_invalid(n, err, "must be a message");
}

/* Writes the list {"value": […]}, or {"value": …} with a single value. */
static int put_list(struct mu_buf *out, const struct list_kind *kind,
		    const struct mu_doc_node *list, struct mu_err *err)
{
	int rc = 0;

	MU_RETURN_IF_ERROR(must_be_map(list, err));
	size_t at = mu_pb_begin(out, kind->number);
	mu_doc_each(list, values)
	{
		if (strcmp(values->key, "value") != 0)
			return mu_doc_invalid(values, err, "no such field");
		if (values->kind == MU_DOC_NULL)
			continue;
		if (values->kind != MU_DOC_LIST && (rc = kind->put(out, values, err)))
			return rc;
		if (values->kind != MU_DOC_LIST)
			continue;
		mu_doc_each(values, v) if ((rc = kind->put(out, v, err))) return rc;
	}
	mu_pb_end(out, at);
	return 0;
}

static int put_feature(struct mu_buf *out, const struct mu_doc_node *feature, struct mu_err *err)
{
	int rc = must_be_map(feature, err);
	bool has_list = false;

	if (rc)
		return rc;
	size_t entry = mu_pb_begin(out, 1);
	mu_pb_put_bytes(out, 1, mu_span_of(feature->key));
	size_t at = mu_pb_begin(out, 2);
	mu_doc_each(feature, list)
	{
		unsigned k = 0;
		while (k < MU_COUNT(kinds) && strcmp(kinds[k].name, list->key) != 0 &&
		       strcmp(kinds[k].proto_name, list->key) != 0)
			k++;
		if (k == MU_COUNT(kinds))
			return mu_doc_invalid(list, err, "no such field");
		if (list->kind == MU_DOC_NULL)
			continue;
		if (has_list)
			return mu_doc_invalid(list, err,
					      "a feature is of one kind, and has one already");
		has_list = true;
		MU_RETURN_IF_ERROR(put_list(out, &kinds[k], list, err));
	}
	mu_pb_end(out, at);
	mu_pb_end(out, entry);
	return 0;
}

static int put_features(struct mu_buf *out, const struct mu_doc_node *features, struct mu_err *err)
{
	int rc = 0;

	MU_RETURN_IF_ERROR(must_be_map(features, err));
	size_t at = mu_pb_begin(out, 1);
	mu_doc_each(features, map)
	{
		if (strcmp(map->key, "feature") != 0)
			return mu_doc_invalid(map, err, "no such field");
		if (map->kind == MU_DOC_NULL)
			continue;
		MU_RETURN_IF_ERROR(must_be_map(map, err));
		mu_doc_each(map, feature) if ((rc = put_feature(out, feature, err))) return rc;
	}
	mu_pb_end(out, at);
	return 0;
}

int json_example(struct mu_buf *out, struct mu_span text, struct mu_err *err)
{
	MU_AUTO(mu_doc_free) struct mu_doc *d = NULL;

	MU_RETURN_IF_ERROR(mu_json_parse(&d, text, "JSON", err));
	MU_RETURN_IF_ERROR(must_be_map(d->root, err));
	mu_doc_each(d->root, field)
	{
		if (strcmp(field->key, "features") != 0)
			return mu_doc_invalid(field, err, "no such field");
		if (field->kind != MU_DOC_NULL)
			MU_RETURN_IF_ERROR(put_features(out, field, err));
	}
	return 0;
}
