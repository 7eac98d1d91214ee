/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's own pages: probes and metrics. */
#ifndef CONTROL_HTTP_H
#define CONTROL_HTTP_H

#include "operator/control/control.h"

struct mu_http_server; /* to be ended by mu_http_stop */
int probe_server_start(struct mu_http_server **out, struct control *c, int port,
		       struct mu_err *err);
/* What the controller itself counts, in Prometheus' text form. */
void control_metrics(struct control *c, struct mu_buf *out);

#endif
