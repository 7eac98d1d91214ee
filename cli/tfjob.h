/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a Kubeflow TFJob (kubeflow.org/v1) to a DistributedTrainingJob. */
#ifndef MU_CLI_TFJOB_H
#define MU_CLI_TFJOB_H

#include "lib/io/doc.h"

/* *out is a new document. *notes gets a line, with the line number in the TFJob, for each field
 * without a counterpart or with another meaning. */
int convert_tfjob(struct mu_doc **out, const struct mu_doc_node *tfjob, struct mu_buf *notes,
		  struct mu_err *err);
/* Writes the document as YAML, with the notes as comments before it. */
void convert_write(struct mu_buf *out, const struct mu_doc *job, struct mu_span notes);

#endif
