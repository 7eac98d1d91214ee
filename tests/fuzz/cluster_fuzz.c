/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as a cluster spec in JSON, as TF_CONFIG and as a flag. */
#include "lib/cluster/cluster_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mu_span text = {(const char *)data, size};
	MU_AUTO_CLUSTER a = {0};
	MU_AUTO_CLUSTER b = {0};
	MU_AUTO_CLUSTER c = {0};
	MU_AUTO_FREE char *flag = mu_xstrndup(text.data, size);
	MU_AUTO_BUF out = {0};
	struct mu_self self;

	if (mu_cluster_parse_json(&a, text, NULL) == 0)
		mu_cluster_write_json(&a, &out);
	mu_cluster_parse_tf_config(&b, &self, text, NULL);
	mu_cluster_parse_flag(&c, flag, NULL);
	return 0;
}
