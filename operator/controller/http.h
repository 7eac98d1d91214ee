/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's own pages: probes and metrics. */
#ifndef CONTROLLER_HTTP_H
#define CONTROLLER_HTTP_H

#include "operator/controller/controller.h"

struct mu_http_server; /* to be ended by mu_http_stop */
int probe_server_start(struct mu_http_server **out, struct controller *c, int port,
		       struct mu_err *err);
/* The controller's own metrics, in Prometheus' text format. */
void controller_metrics(struct controller *c, struct mu_buf *out);

#endif
