/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC's library: start, end, log, status.
 *
 * gRPC logs to standard error by itself; here its lines become debug lines of ours, since every
 * failure that matters reaches a caller as an error anyway. */
#include "task/rpc/core.h"

#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <pthread.h>

#include "lib/base/log.h"

static void forward_log(gpr_log_func_args *a)
{
	mu_debug("grpc", "%s (%s:%d)", a->message, a->file, a->line);
}

static void set_log(void)
{
	gpr_set_log_function(forward_log);
	if (!mu_log_enabled(MU_DEBUG))
		gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
}

void core_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set_log);
	grpc_init();
}

void core_shutdown(void)
{
	grpc_shutdown();
}

gpr_timespec core_deadline(long timeout_ms)
{
	if (timeout_ms <= 0)
		return gpr_inf_future(GPR_CLOCK_MONOTONIC);
	return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
			    gpr_time_from_millis(timeout_ms, GPR_TIMESPAN));
}

void core_status(struct mu_err *err, grpc_status_code code, grpc_slice details)
{
	struct mu_span text = {(const char *)GRPC_SLICE_START_PTR(details),
			       GRPC_SLICE_LENGTH(details)};

	if (code == GRPC_STATUS_UNKNOWN && mu_span_is(text, "Stream removed"))
		code = GRPC_STATUS_UNAVAILABLE;
	mu_fail(err, mu_code_from(code), "%.*s", (int)(text.len > 4096 ? 4096 : text.len),
		text.data);
}
