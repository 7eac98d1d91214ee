/* SPDX-License-Identifier: Apache-2.0 */
/* TLS credentials of gRPC.  gRPC's own certificate provider watches the files, one for all servers
 * and channels. */
#include "task/rpc/tls.h"

#include <stdatomic.h>

#include "lib/base/mem.h"
#include "lib/tls/tls_context.h"
#include "task/rpc/core.h"

enum { REFRESH_S = 1 };

struct rpc_tls {
	_Atomic unsigned refs;
	struct mu_tls_context *context;
	grpc_tls_certificate_provider *provider;
};

int rpc_tls_open(const char *folder, struct rpc_tls **out, struct mu_err *err)
{
	struct mu_tls_context *context;
	struct rpc_tls *t;
	int rc = mu_tls_context_open(folder, &context, err);

	if (rc)
		return rc;
	t = MU_NEW(struct rpc_tls);
	t->refs = 1;
	t->context = context;
	grpc_init();
	t->provider = grpc_tls_certificate_provider_file_watcher_create(
	    mu_tls_context_path(context, MU_TLS_KEY),
	    mu_tls_context_path(context, MU_TLS_CERTIFICATE),
	    mu_tls_context_path(context, MU_TLS_CA), REFRESH_S);
	*out = t;
	return 0;
}

struct rpc_tls *rpc_tls_ref(struct rpc_tls *t)
{
	atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
	return t;
}

void rpc_tls_unref(struct rpc_tls *t)
{
	if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
		return;
	grpc_tls_certificate_provider_release(t->provider);
	grpc_shutdown();
	mu_tls_context_free(t->context);
	free(t);
}

struct mu_tls_context *rpc_tls_context(struct rpc_tls *t)
{
	return t->context;
}

/* The minimum version, TLS 1.2, is gRPC's default. */
static grpc_tls_credentials_options *options_of(struct rpc_tls *t)
{
	grpc_tls_credentials_options *o = grpc_tls_credentials_options_create();

	grpc_tls_credentials_options_set_certificate_provider(o, t->provider);
	grpc_tls_credentials_options_watch_root_certs(o);
	grpc_tls_credentials_options_watch_identity_key_cert_pairs(o);
	return o;
}

grpc_server_credentials *rpc_tls_server_credentials(struct rpc_tls *t)
{
	grpc_tls_credentials_options *o = options_of(t);

	grpc_tls_credentials_options_set_cert_request_type(
	    o, GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
	return grpc_tls_server_credentials_create(o);
}

grpc_channel_credentials *rpc_tls_channel_credentials(struct rpc_tls *t)
{
	return grpc_tls_credentials_create(options_of(t));
}
