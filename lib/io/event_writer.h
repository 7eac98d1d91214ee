/* SPDX-License-Identifier: Apache-2.0 */
/* TensorBoard event files: events.out.tfevents.<seconds>.<host>, each record an Event message. */
#ifndef MU_LIB_IO_EVENT_WRITER_H
#define MU_LIB_IO_EVENT_WRITER_H

#include "lib/base/buf.h"

struct mu_event_writer;
/* Creates the folder if missing, and a file in it whose name ends with `suffix` ("" or ".name"). */
int mu_event_create(struct mu_event_writer **out, const char *folder, const char *suffix,
		    struct mu_err *err);
const char *mu_event_path(const struct mu_event_writer *w);
int mu_event_scalar(struct mu_event_writer *w, int64_t step, const char *tag, float value,
		    struct mu_err *err);
/* Writes a serialized Summary message. */
int mu_event_summary(struct mu_event_writer *w, int64_t step, struct mu_span summary,
		     struct mu_err *err);
int mu_event_graph(struct mu_event_writer *w, int64_t step, struct mu_span graph_def,
		   struct mu_err *err);
/* Writes a serialized Event message unchanged. */
int mu_event_import(struct mu_event_writer *w, struct mu_span event, struct mu_err *err);
enum mu_session_log { MU_SESSION_START = 1, MU_SESSION_STOP = 2, MU_SESSION_CHECKPOINT = 3 };
int mu_event_session_log(struct mu_event_writer *w, int64_t step, enum mu_session_log status,
			 const char *checkpoint_path, struct mu_err *err);
int mu_event_flush(struct mu_event_writer *w, struct mu_err *err);
int mu_event_close(struct mu_event_writer *w, struct mu_err *err); /* frees w always */

/* Appends a scalar to the body of a Summary. */
void mu_summary_scalar(struct mu_buf *summary, const char *tag, float value);
/* Appends a histogram of n values in TensorBoard's usual buckets. */
void mu_summary_histogram(struct mu_buf *summary, struct mu_span tag, const double *values,
			  size_t n);

/* Appends an image; pixels as for mu_png_write. */
int mu_summary_image(struct mu_buf *summary, const char *tag, const unsigned char *pixels,
		     uint32_t height, uint32_t width, unsigned channels, struct mu_err *err);

#endif
