/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as short texts: device names, rendezvous keys, variable slices, kernel variants,
 * numbers, vocabulary lines and encoded characters.  A text that is parsed and written must parse
 * to the same value. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/checkpoint/bundle.h"
#include "lib/graph/device_name.h"
#include "operator/api/job_spec.h"
#include "operator/plan/resolver.h"
#include "task/kernels/io/vocabulary_file.h"
#include "task/kernels/text/text_number.h"
#include "task/kernels/text/unicode.h"
#include "task/runtime/rendezvous.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_device(const char *text)
{
	struct mu_device_name d, again, both;
	MU_AUTO_BUF b = {0};
	struct mu_err err;

	if (mu_device_parse(&d, text, &err))
		return;
	mu_device_write(&b, &d);
	if (mu_device_parse(&again, b.len ? b.data : "", &err) || !mu_device_matches(&again, &d) ||
	    !mu_device_matches(&d, &again))
		abort();
	both = d;
	if (!mu_device_intersect(&both, &again))
		abort();
	mu_device_merge(&both, &again);
	if (mu_device_task_len(text) > strlen(text))
		abort();
}

static void check_key(const char *text)
{
	struct rendezvous_key k;
	struct mu_err err;

	if (rendezvous_key_parse(&k, text, &err))
		return;
	if (k.src_device.data != text ||
	    k.frame_iter.data + k.frame_iter.len != text + strlen(text))
		abort();
}

static void check_slice(struct mu_span text)
{
	struct mu_slice s;
	bool is_slice;
	struct mu_err err;

	if (mu_slice_parse(&s, &is_slice, text, &err) || !is_slice)
		return;
	if (s.shape.rank != s.full.rank)
		abort();
	for (int i = 0; i < s.full.rank; i++)
		if (s.start[i] < 0 || s.start[i] > s.full.dim[i] ||
		    s.shape.dim[i] > s.full.dim[i] - s.start[i])
			abort();
}

static void check_kernels(const char *text)
{
	struct label labels[] = {{"nvidia.com/gpu.compute.major", text},
				 {"nvidia.com/gpu.compute.minor", text},
				 {"kubernetes.io/arch", text}};
	struct node_info node = {"n", labels, 3, true, 1, false};
	struct kernel_choice choice;
	struct mu_err err;

	kernels_are_known(text);
	resolver_choose(&choice, &(struct kernel_request){.kernels = text}, &node, 1, &err);
	resolver_choose(&choice, &(struct kernel_request){.kernels = "gpu"}, &node, 1, &err);
	resolver_choose(&choice,
			&(struct kernel_request){.kernels = "auto", .is_ps = true, .no_gpu = true},
			&node, 1, &err);
}

static void check_lines(const char *text, size_t size)
{
	struct mu_buf b = {(char *)text, size, size};
	size_t at = 0, seen = 0;
	struct mu_span line;

	while (vocabulary_line(&b, &at, &line))
		seen += line.len + 1;
	if (seen > size + 1)
		abort();
}

static void check_characters(const char *encoding, struct mu_span s)
{
	const struct unicode_encoding *e = unicode_encoding_named(encoding);
	MU_AUTO_BUF b = {0};

	while (s.len) {
		int32_t c, again;
		size_t n = unicode_next(e, s, &c);
		if (!n || n > s.len)
			abort();
		mu_buf_clear(&b);
		if (c >= 0) {
			unicode_put(e, &b, c);
			if (b.len != n || memcmp(b.data, s.data, n) != 0 ||
			    unicode_next(e, mu_buf_span(&b), &again) != n || again != c)
				abort();
		}
		s.data += n;
		s.len -= n;
	}
}

/* Ops do not encode text in these charsets. */
static void check_charset(const char *charset, struct mu_span s)
{
	const struct unicode_encoding *e = unicode_encoding_named(charset);

	for (size_t n; e && s.len; s.data += n, s.len -= n) {
		int32_t c;
		n = unicode_next(e, s, &c);
		if (!n || n > s.len || c < UNICODE_MALFORMED || c > UNICODE_LAST)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const charsets[] = {"windows-1255", "Shift_JIS", "EUC-JP",
					       "EUC-KR",       "GB18030",   "Big5"};
	static const char *const encodings[] = {"UTF-8",     "UTF-16-BE", "utf-16-le", "UTF-32-BE",
						"UTF_32_LE", "US-ASCII",  "latin1"};
	static const enum mu_dtype types[] = {MU_INT32, MU_INT64, MU_FLOAT, MU_DOUBLE};
	MU_AUTO_FREE char *text = mu_xstrndup((const char *)data, size);
	struct mu_span whole = {text, strlen(text)};
	int64_t number[2];

	check_device(text);
	check_key(text);
	check_slice((struct mu_span){(const char *)data, size});
	for (unsigned i = 0; i < MU_COUNT(encodings); i++)
		check_characters(encodings[i], (struct mu_span){(const char *)data, size});
	for (unsigned i = 0; i < MU_COUNT(charsets); i++)
		check_charset(charsets[i], (struct mu_span){(const char *)data, size});
	check_kernels(text);
	check_lines(text, whole.len);
	for (unsigned i = 0; i < MU_COUNT(types); i++)
		text_number(whole, types[i], number, 1);
	return 0;
}
