/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as the output of an exec plug-in.  An accepted credential has a token, or a
 * certificate and its key.  A rejected credential stores nothing. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/io/json.h"
#include "lib/kube/kube_exec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct kube_exec *new_plug_in(void)
{
	struct mu_span text =
	    MU_SPAN("{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"command\":\"plug-in\"}");
	MU_AUTO(mu_doc_free) struct mu_doc *doc = NULL;
	struct kube_exec *e;

	if (mu_json_parse(&doc, text, "fuzz", NULL) < 0 ||
	    kube_exec_read(&e, doc->root, "fuzz", NULL, NULL) < 0)
		abort();
	return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct kube_exec *plug_in;
	struct kube_credential c = {0};
	struct mu_err err = {0};
	int rc;

	if (!plug_in)
		plug_in = new_plug_in();
	rc = kube_credential_read(&c, plug_in, (struct mu_span){(const char *)data, size}, &err);
	if (rc < 0 ? err.code != MU_UNAUTHENTICATED || c.token || c.cert.data || c.key.data
		   : (!c.token && !c.cert.len) || !c.cert.len != !c.key.len)
		abort();
	kube_credential_fini(&c);
	return 0;
}
