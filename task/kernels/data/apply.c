/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that apply a function to each element of another. */
#include <string.h>

#include "lib/base/cpus.h"
#include "task/kernels/data/dataset.h"
#include "task/kernels/data/serializer.h"

static int64_t cardinality_of_input(const struct dataset *d, int64_t n)
{
	return d->preserve_cardinality ? n : UNKNOWN_CARDINALITY;
}

int dataset_map_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	int rc = it->input ? dataset_next_mapped(it, 0, out, it->d->n_out, NULL, err) : 0;

	return rc == -MU_OUT_OF_RANGE ? dataset_function_ended(it, err) : rc;
}

bool dataset_is_map(const struct dataset *d)
{
	return d->kind->next == dataset_map_next;
}

static int check_filter(struct dataset *d, struct mu_err *err)
{
	return d->in[0]->n_out == d->n_out
		   ? 0
		   : mu_invalid(err, "a filter keeps the %u components, not %u", d->in[0]->n_out,
				d->n_out);
}

/* Reads the next element; *keep is the result of the predicate. */
static int read_predicate(struct dataset_iterator *it, struct mu_tensor *out, bool *keep,
			  struct mu_err *err)
{
	struct mu_tensor result;
	int rc = dataset_next_mapped(it, 0, &result, 1, out, err);

	if (rc <= 0)
		return rc;
	bool fits = result.dtype == MU_BOOL && result.shape.count == 1;
	*keep = fits && MU_DATA(bool, &result)[0];
	mu_tensor_unref(&result);
	if (fits)
		return 1;
	element_drop(out, it->d->n_out);
	return mu_invalid(err, "%s predicate `f` must return a scalar bool.",
			  it->d->kind->state_size ? "TakeWhile" : "Filter");
}

static int filter_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	bool keep = false;
	int rc;

	while ((rc = read_predicate(it, out, &keep, err)) > 0 && !keep)
		element_drop(out, it->d->n_out);
	return rc;
}

/* ---- flat_map and interleave ---- */

enum { AUTOTUNE = -1, MAX_CYCLE_LENGTH = 65536 };
struct slot {
	struct dataset_iterator *it; /* NULL: the slot is empty */
	struct mu_tensor *element;   /* the function's argument, for the saved state */
	bool has_failed;             /* the function or the input failed for this slot */
};
struct cycle {
	struct slot *slot;
	int64_t n, at;     /* the number of slots; the current slot */
	int64_t block_pos; /* elements of the current block so far */
	bool input_exhausted;
};

static int interleave_open(struct dataset_iterator *it, struct mu_err *err)
{
	struct cycle *t = it->state;
	int64_t n = it->d->kind->n_scalars ? dataset_number(it->d, 0) : 1;

	if (n == AUTOTUNE)
		n = mu_cpus();
	if (n < 1 || n > MAX_CYCLE_LENGTH ||
	    (it->d->kind->n_scalars && dataset_number(it->d, 1) < 1))
		return mu_invalid(err, "`cycle_length` and `block_length` must be > 0");
	t->n = n;
	t->slot = MU_NEW_ARRAY(struct slot, (size_t)n);
	return dataset_iterator_open_input(it, err);
}

static void end_slot(const struct dataset_iterator *it, struct slot *t)
{
	dataset_iterator_close(t->it);
	if (t->element)
		element_drop(t->element, it->d->in[0]->n_out);
	free(t->element);
	*t = (struct slot){0};
}

static void interleave_close(struct dataset_iterator *it)
{
	struct cycle *t = it->state;

	for (int64_t i = 0; t->slot && i < t->n; i++)
		end_slot(it, &t->slot[i]);
	free(t->slot);
}

/* Opens the dataset that the function returned for an element.  Takes both. */
static int begin_slot(struct dataset_iterator *it, struct slot *t, struct mu_tensor *element,
		      struct mu_tensor *result, struct mu_err *err)
{
	struct dataset *d = dataset_in(result);
	int rc = d && d->n_out == it->d->n_out
		     ? dataset_iterator_open(d, it->caller, &t->it, err)
		     : mu_invalid(err, "the function does not return a dataset of %u components",
				  it->d->n_out);

	mu_tensor_unref(result);
	t->element = element;
	if (rc)
		end_slot(it, t);
	return rc;
}

/* Fills the current slot if it is empty.  Returns 1, or 0 if the input has ended. */
static int open_slot(struct dataset_iterator *it, struct cycle *t, struct mu_err *err)
{
	struct mu_tensor result, *element;
	int rc;

	if (t->slot[t->at].it)
		return 1;
	if (t->input_exhausted)
		return 0;
	element = MU_NEW_ARRAY(struct mu_tensor, it->d->in[0]->n_out + 1);
	if ((rc = dataset_next_mapped(it, 0, &result, 1, element, err)) <= 0) {
		t->input_exhausted = rc == 0;
		free(element);
		return rc;
	}
	MU_RETURN_IF_ERROR(begin_slot(it, &t->slot[t->at], element, &result, err));
	return 1;
}

static void next_slot(struct cycle *t)
{
	t->block_pos = 0;
	t->at = (t->at + 1) % t->n;
}

static int interleave_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	int64_t block = it->d->kind->n_scalars ? dataset_number(it->d, 1) : INT64_MAX, empty = 0;
	bool is_parallel = it->d->kind->n_scalars > 2; /* an error counts as an element */
	struct cycle *t = it->state;
	int rc;

	while (empty < t->n) {
		if (t->slot[t->at].has_failed) {
			end_slot(it, &t->slot[t->at]);
			next_slot(t);
			continue;
		}
		if ((rc = open_slot(it, t, err)) < 0 && is_parallel) {
			t->slot[t->at].has_failed = true;
			next_slot(t);
		}
		if (rc < 0)
			return rc;
		if (!rc) {
			empty++;
			next_slot(t);
			continue;
		}
		empty = 0;
		rc = dataset_iterator_next(t->slot[t->at].it, out, err);
		if ((rc > 0 || (rc && is_parallel)) && ++t->block_pos >= block)
			next_slot(t);
		if (rc)
			return rc;
		end_slot(it, &t->slot[t->at]);
		next_slot(t);
	}
	return 0;
}

/* Restores a slot: calls the function on the saved element. */
static int read_slot(struct dataset_iterator *it, struct slot *t, struct serializer *ser,
		     struct mu_err *err)
{
	unsigned n = it->d->in[0]->n_out;
	MU_AUTO_FREE struct mu_tensor *in = MU_NEW_ARRAY(struct mu_tensor, n + 1);
	struct mu_tensor *element = MU_NEW_ARRAY(struct mu_tensor, n + 1), result;
	int rc = serialize_element(ser, element, n, err);

	if (rc) {
		free(element);
		return rc;
	}
	element_ref(in, element, n);
	if ((rc = dataset_apply(it, 0, in, n, &result, 1, err))) {
		element_drop(element, n);
		free(element);
		return rc;
	}
	MU_RETURN_IF_ERROR(begin_slot(it, t, element, &result, err));
	return serialize_dataset_iterator(ser, t->it, err);
}

static int slot_serialize(struct dataset_iterator *it, struct slot *t, struct serializer *ser,
			  struct mu_err *err)
{
	bool is_open = t->it != NULL;

	MU_RETURN_IF_ERROR(serialize_flag(ser, &is_open, err));
	if (!is_open)
		return 0;
	if (serializer_is_reading(ser))
		return read_slot(it, t, ser, err);
	MU_RETURN_IF_ERROR(serialize_element(ser, t->element, it->d->in[0]->n_out, err));
	return serialize_dataset_iterator(ser, t->it, err);
}

/* The saved cycle length may be another: AUTOTUNE depends on the number of CPUs. */
static int interleave_serialize(struct dataset_iterator *it, struct serializer *ser,
				struct mu_err *err)
{
	struct cycle *t = it->state;
	int64_t n = t->n;

	MU_RETURN_IF_ERROR(serialize_number(ser, &n, 1, MAX_CYCLE_LENGTH, err));
	if (n != t->n) { /* the iterator is new: all slots are empty */
		free(t->slot);
		t->slot = MU_NEW_ARRAY(struct slot, (size_t)n);
		t->n = n;
	}
	MU_RETURN_IF_ERROR(serialize_number(ser, &t->at, 0, n - 1, err));
	MU_RETURN_IF_ERROR(serialize_number(ser, &t->block_pos, 0, INT64_MAX - 1, err));
	MU_RETURN_IF_ERROR(serialize_flag(ser, &t->input_exhausted, err));
	for (int64_t i = 0; i < n; i++)
		MU_RETURN_IF_ERROR(slot_serialize(it, &t->slot[i], ser, err));
	return 0;
}

/* ---- scan and take_while ---- */

struct states {
	struct mu_tensor *t; /* n_params_before_captured of them */
	bool ended;
};

static int states_open(struct dataset_iterator *it, struct mu_err *err)
{
	struct states *s = it->state;

	s->t = MU_NEW_ARRAY(struct mu_tensor, it->d->n_params_before_captured + 1);
	element_ref(s->t, it->d->params, it->d->n_params_before_captured);
	return dataset_iterator_open_input(it, err);
}

static void states_close(struct dataset_iterator *it)
{
	struct states *s = it->state;

	element_drop(s->t, it->d->n_params_before_captured);
	free(s->t);
}

static int states_serialize(struct dataset_iterator *it, struct serializer *ser, struct mu_err *err)
{
	struct states *s = it->state;
	unsigned n = it->d->n_params_before_captured;
	MU_AUTO_FREE struct mu_tensor *restored = MU_NEW_ARRAY(struct mu_tensor, n + 1);
	int rc = serialize_flag(ser, &s->ended, err);

	if (rc || !serializer_is_reading(ser))
		return rc ? rc : serialize_element(ser, s->t, n, err);
	MU_RETURN_IF_ERROR(serialize_element(ser, restored, n, err));
	element_drop(s->t, n);
	memcpy(s->t, restored, n * sizeof *restored);
	return 0;
}

static int check_scan(struct dataset *d, struct mu_err *err)
{
	return d->n_params_before_captured + d->in[0]->n_out <= MAX_COMPONENTS &&
		       d->n_params_before_captured + d->n_out <= MAX_COMPONENTS
		   ? 0
		   : mu_invalid(err, "states and elements of over %d components", MAX_COMPONENTS);
}

static int scan_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	unsigned n = it->d->n_params_before_captured, n_in = n + it->d->in[0]->n_out,
		 n_results = n + it->d->n_out;
	MU_AUTO_FREE struct mu_tensor *in = MU_NEW_ARRAY(struct mu_tensor, n_in + 1);
	MU_AUTO_FREE struct mu_tensor *results = MU_NEW_ARRAY(struct mu_tensor, n_results + 1);
	struct states *s = it->state;
	int rc = it->input ? dataset_iterator_next(it->input, in + n, err) : 0;

	if (rc <= 0)
		return rc;
	element_ref(in, s->t, n);
	rc = dataset_apply(it, 0, in, n_in, results, n_results, err);
	if (rc)
		return rc == -MU_OUT_OF_RANGE ? dataset_function_ended(it, err) : rc;
	element_drop(s->t, n);
	memcpy(s->t, results, n * sizeof *results);
	memcpy(out, results + n, it->d->n_out * sizeof *results);
	return 1;
}

static int while_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct states *s = it->state;
	bool keep = false;
	int rc = s->ended ? 0 : read_predicate(it, out, &keep, err);

	if (rc > 0 && !keep) {
		element_drop(out, it->d->n_out);
		rc = 0;
	}
	s->ended |= rc == 0;
	return rc;
}

#define F(name) .n_in = 1, .function = {{name, "Targuments"}}
#define INTERLEAVE                                                                                 \
	F("f"), .state_size = sizeof(struct cycle), .open = interleave_open,                       \
		.next = interleave_next, .close = interleave_close,                                \
		.serialize = interleave_serialize
#define MAP                                                                                        \
	F("f"), .open = dataset_iterator_open_input, .next = dataset_map_next,                     \
		.cardinality = cardinality_of_input, .releases_input = true
#define FILTER                                                                                     \
	F("predicate"), .check = check_filter, .open = dataset_iterator_open_input,                \
			.next = filter_next
#define WHILE                                                                                      \
	F("predicate"), .state_size = sizeof(struct states), .check = check_filter,                \
			.open = states_open, .next = while_next, .close = states_close,            \
			.serialize = states_serialize
#define SCAN                                                                                       \
	F("f"), .state_size = sizeof(struct states), .check = check_scan, .open = states_open,     \
		.next = scan_next, .close = states_close, .cardinality = cardinality_of_input,     \
		.serialize = states_serialize, .releases_input = true
static const struct dataset_kind rows[] = {
    {DATASET("MapDataset"), MAP},
    {DATASET("ParallelMapDataset ParallelMapDatasetV2"), MAP, .n_scalars = 1},
    {DATASET("FilterDataset"), FILTER},
    {DATASET("ParallelFilterDataset"), FILTER, .n_scalars = 1},
    {DATASET("FlatMapDataset"), INTERLEAVE},
    {DATASET("InterleaveDataset SloppyInterleaveDataset"), INTERLEAVE, .n_scalars = 2},
    {DATASET("ParallelInterleaveDatasetV2 ParallelInterleaveDatasetV3"), INTERLEAVE,
     .n_scalars = 3},
    {DATASET("ParallelInterleaveDatasetV4 ParallelInterleaveDataset "
	     "ExperimentalParallelInterleaveDataset"),
     INTERLEAVE, .n_scalars = 5},
    {DATASET("LegacyParallelInterleaveDatasetV2"), INTERLEAVE, .n_scalars = 4},
    {DATASET("ScanDataset ExperimentalScanDataset"), SCAN},
    {DATASET("TakeWhileDataset ExperimentalTakeWhileDataset"), WHILE},
};
KERNEL_TABLE(data_apply, rows)
