/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as YAML and as JSON, writes the result as JSON, and parses that.  A JSON
 * document must be unchanged afterwards.  YAML may have integers that JSON rounds. */
#include <stdlib.h>

#include "lib/io/json.h"
#include "lib/io/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes d, frees it, and parses the written text. */
static struct mu_doc *round_trip(struct mu_doc *d, struct mu_buf *text)
{
	struct mu_doc *again;

	mu_json_write(text, d->root);
	mu_doc_free(d);
	if (mu_json_parse(&again, mu_buf_span(text), "again", NULL))
		abort();
	return again;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mu_span text = {(const char *)data, size};
	struct mu_doc *d, **docs;
	unsigned n;

	if (mu_json_parse(&d, text, "fuzz", NULL) == 0) {
		MU_AUTO_BUF first = {0}, second = {0};

		mu_doc_free(round_trip(round_trip(d, &first), &second));
		if (strcmp(first.data, second.data) != 0)
			abort();
	}
	if (mu_yaml_parse_all(&docs, &n, text, "fuzz", NULL))
		return 0;
	for (unsigned i = 0; i < n; i++) {
		MU_AUTO_BUF json = {0};

		mu_doc_free(round_trip(docs[i], &json));
	}
	free(docs);
	return 0;
}
