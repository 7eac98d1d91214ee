/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as YAML and as JSON; what is read is written as JSON and must be read again. */
#include <stdlib.h>

#include "lib/io/json.h"
#include "lib/io/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
static void round_trip(struct mu_doc *d)
{
	MU_AUTO_BUF text = {0};
	struct mu_doc *again;

	mu_json_write(&text, d->root);
	if (memchr(text.data, 0, text.len) == NULL && strstr(text.data, "\\u0000") == NULL &&
	    mu_json_parse(&again, mu_buf_span(&text), "again", NULL) == 0)
		mu_doc_free(again);
	mu_doc_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mu_span text = {(const char *)data, size};
	struct mu_doc *d, **docs;
	unsigned n;

	if (mu_json_parse(&d, text, "fuzz", NULL) == 0)
		round_trip(d);
	if (mu_yaml_parse_all(&docs, &n, text, "fuzz", NULL))
		return 0;
	for (unsigned i = 0; i < n; i++)
		round_trip(docs[i]);
	free(docs);
	return 0;
}
