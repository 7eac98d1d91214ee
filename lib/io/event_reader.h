/* SPDX-License-Identifier: Apache-2.0 */
/* Reads event files, for `muster events` and tests. */
#ifndef MU_LIB_IO_EVENT_READER_H
#define MU_LIB_IO_EVENT_READER_H

#include "lib/base/buf.h"

enum mu_event_kind {
	MU_EVENT_OTHER,
	MU_EVENT_VERSION,
	MU_EVENT_GRAPH,
	MU_EVENT_META_GRAPH,
	MU_EVENT_SUMMARY,
	MU_EVENT_LOG,
	MU_EVENT_SESSION_LOG,
	MU_EVENT_RUN_METADATA,
};
struct mu_event {
	double wall_time;
	int64_t step;
	enum mu_event_kind kind;
	struct mu_span body; /* the text or serialized message of this kind */
};
int mu_event_parse(struct mu_event *out, struct mu_span record, struct mu_err *err);

struct mu_summary_value {
	struct mu_span tag;
	bool is_scalar; /* simple_value, or a float tensor of one element */
	float scalar;
};
/* Iterates over the values of a Summary; *at starts at 0.  Returns 1 with *v, 0 at the end, <0 if
 * malformed. */
int mu_summary_next(struct mu_span summary, size_t *at, struct mu_summary_value *v,
		    struct mu_err *err);

#endif
