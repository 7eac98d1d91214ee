/* SPDX-License-Identifier: Apache-2.0 */
/* A Kubeflow TFJob (kubeflow.org/v1) as a DistributedTrainingJob. */
#ifndef MUSTER_PLAN_CONVERT_H
#define MUSTER_PLAN_CONVERT_H

#include "lib/io/doc.h"

/* *out is a new document; *notes gets a line for each thing that has no counterpart or means
 * something else here, with the line of the TFJob it stands in. */
int convert_tfjob(struct mu_doc **out, const struct mu_doc_node *tfjob, struct mu_buf *notes,
		  struct mu_err *err);
/* The document as YAML, each note as a comment before it. */
void convert_write(struct mu_buf *out, const struct mu_doc *job, struct mu_span notes);

#endif
