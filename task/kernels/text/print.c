/* SPDX-License-Identifier: Apache-2.0 */
/* Assert, Print, PrintV2, StringFormat and AsString. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/random/node_state.h"
#include "task/kernels/text/tensor_text.h"

enum { MAX_MESSAGE_BYTES = 4096, MAX_PRINT_BYTES = 1 << 20 };

/* Appends the inputs from input 1 on in brackets, each after `prefix`. */
static void put_tensors(struct mu_buf *b, const struct kernel_call *c, const char *prefix,
			size_t max_bytes)
{
	for (unsigned i = 1; i < c->n_in; i++) {
		mu_buf_printf(b, "%s[", prefix);
		tensor_text_first(b, kernel_in(c, i), args_attr_int(c->node, "summarize", 3),
				  max_bytes);
		mu_buf_puts(b, "]");
	}
}

static int assert_true(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};

	if (kernel_in(c, 0)->shape.count != 1)
		return mu_invalid(err, "In[0] should be a scalar: %s",
				  mu_shape_str(&kernel_in(c, 0)->shape));
	if (*MU_DATA(bool, kernel_in(c, 0)))
		return 0;
	put_tensors(&b, c, " ", MAX_MESSAGE_BYTES);
	return mu_invalid(err, "assertion failed:%s", b.data ? b.data : "");
}

/* Writes the text with one call, so that no log line splits it. */
static void write_text(int fd, const struct mu_buf *b)
{
	if (write(fd, b->data, b->len) < 0)
		return;
}

/* ---- Print ---- */

struct print_count {
	struct resource base;
	_Atomic int64_t n;
};

static void print_count_free(struct resource *r)
{
	free(MU_CONTAINER(r, struct print_count, base));
}

static const struct resource_type print_count_type = {"print count", .free = print_count_free};

static struct resource *print_count_new(void *node, struct mu_err *err)
{
	struct print_count *p = MU_NEW(struct print_count);

	resource_init(&p->base, &print_count_type);
	return &p->base;
}

static int print(struct kernel_call *c, struct mu_err *err)
{
	int64_t first_n = args_attr_int(c->node, "first_n", -1);
	struct resource *r;
	MU_AUTO_BUF b = {0};

	kernel_out_take(c, 0, mu_tensor_ref(kernel_in(c, 0)));
	if (first_n >= 0) {
		MU_RETURN_IF_ERROR(
		    node_state_find(c->state, c, "", &print_count_type, print_count_new, &r, err));
		if (atomic_fetch_add(&MU_CONTAINER(r, struct print_count, base)->n, 1) >= first_n)
			return 0;
	}
	mu_buf_puts(&b, args_attr_string(c->node, "message", ""));
	put_tensors(&b, c, "", MAX_PRINT_BYTES);
	mu_buf_putc(&b, '\n');
	write_text(STDERR_FILENO, &b);
	return 0;
}

/* ---- PrintV2 ---- */

static int append_to_file(const char *path, const struct mu_buf *b, struct mu_err *err)
{
	FILE *f = fopen(path, "a");
	bool written = f && fwrite(b->data, 1, b->len, f) == b->len;

	if (f && fclose(f))
		written = false;
	return written ? 0 : mu_fail_errno(err, errno, "%s", path);
}

static void write_log(enum mu_log_level level, struct mu_buf *b)
{
	size_t n = b->len && b->data[b->len - 1] == '\n' ? b->len - 1 : b->len;

	mu_log(level, "print", "%.*s", (int)n, n ? b->data : "");
}

static int print_v2(struct kernel_call *c, struct mu_err *err)
{
	static const char *const streams[] = {"stdout",       "stderr",     "log(info)",
					      "log(warning)", "log(error)", NULL};
	const char *stream = args_attr_string(c->node, "output_stream", "stderr");
	const struct mu_tensor *in = kernel_in(c, 0);
	int i = mu_word_index(stream, streams);
	MU_AUTO_BUF b = {0};

	if (strncmp(stream, "file://", 7) == 0)
		stream += 7;
	else if (i < 0)
		stream = "";
	if (!*stream)
		return mu_invalid(
		    err,
		    "Unknown output stream: %s, Valid streams are: stdout stderr log(info) "
		    "log(warning) log(error)",
		    args_attr_string(c->node, "output_stream", ""));
	if (in->shape.rank)
		return mu_invalid(err, "Input is expected to be scalar, but got %s",
				  mu_shape_str(&in->shape));
	mu_buf_put(&b, elems_span(in, 0).data, elems_span(in, 0).len);
	mu_buf_puts(&b, args_attr_string(c->node, "end", "\n"));
	if (i < 0)
		return append_to_file(stream, &b, err);
	if (i < 2)
		write_text(i ? STDERR_FILENO : STDOUT_FILENO, &b);
	else
		write_log((enum mu_log_level)(MU_INFO + i - 2), &b);
	return 0;
}

/* ---- StringFormat ---- */

/* Replaces each placeholder of the template by the text of an input. */
static int string_format(struct kernel_call *c, struct mu_err *err)
{
	const char *text = args_attr_string(c->node, "template", "%s"), *next;
	const char *placeholder = args_attr_string(c->node, "placeholder", "%s");
	int64_t summarize = args_attr_int(c->node, "summarize", 3);
	MU_AUTO_BUF b = {0};
	unsigned n_placeholders = 0;

	for (next = text; *placeholder && (next = strstr(next, placeholder));
	     next += strlen(placeholder))
		n_placeholders++;
	if (n_placeholders != c->n_in)
		return mu_invalid(
		    err, "num placeholders in template and num inputs must match: %u vs. %u",
		    n_placeholders, c->n_in);
	for (unsigned i = 0; i < n_placeholders; i++, text = next + strlen(placeholder)) {
		next = strstr(text, placeholder);
		mu_buf_put(&b, text, (size_t)(next - text));
		const struct mu_tensor *t = kernel_in(c, i);
		if (t->dtype != MU_BOOL || (t->shape.count && summarize)) /* as TensorFlow does */
			tensor_text_nested(&b, t, summarize);
	}
	mu_buf_puts(&b, text);
	return kernel_out_string(c, 0, mu_buf_span(&b), err);
}

/* ---- AsString ---- */

static int check_fill(const struct mu_node *n, struct mu_err *err)
{
	const char *fill = args_attr_string(n, "fill", "");

	if (strlen(fill) > 1)
		return mu_invalid(err, "Fill string must be one or fewer characters");
	if (*fill && !strchr(" +-0#", *fill))
		return mu_invalid(err, "Fill argument not supported: \"%s\"", fill);
	if (args_attr_int(n, "width", -1) > 4096 || args_attr_int(n, "precision", -1) > 4096)
		return mu_invalid(err, "width and precision are at most 4096");
	return 0;
}

/* With a width, prints a string as printf does: it ends at a NUL. */
static void put_string(struct mu_buf *b, const struct mu_node *n, struct mu_span s)
{
	int64_t width = args_attr_int(n, "width", -1),
		precision = args_attr_int(n, "precision", -1);
	bool left = strcmp(args_attr_string(n, "fill", ""), "-") == 0;
	size_t len = strnlen(s.data, s.len);

	if (width <= 0) {
		mu_buf_put(b, s.data, s.len);
		return;
	}
	if (precision >= 0 && (size_t)precision < len)
		len = (size_t)precision;
	if (!left && (size_t)width > len)
		mu_buf_printf(b, "%*s", (int)((size_t)width - len), "");
	mu_buf_put(b, s.data, len);
	if (left && (size_t)width > len)
		mu_buf_printf(b, "%*s", (int)((size_t)width - len), "");
}

static int number_format(const struct mu_node *n, enum mu_dtype t, char *out, size_t size,
			 struct mu_err *err)
{
	int64_t precision = args_attr_int(n, "precision", -1),
		width = args_attr_int(n, "width", -1);
	bool scientific = args_attr_bool(n, "scientific", false);
	bool shortest = args_attr_bool(n, "shortest", false);
	const char *fill = args_attr_string(n, "fill", "");
	bool is_real = t == MU_FLOAT || t == MU_DOUBLE || mu_dtype_is_16_bit_float(t) ||
		       mu_dtype_is_complex(t);
	char w[24] = "", p[24] = "";

	if (scientific && shortest)
		return mu_invalid(err, "Cannot select both scientific and shortest notation");
	if (!is_real && (scientific || shortest || precision >= 0))
		return mu_invalid(err, "%s not supported for datatype %s",
				  scientific || shortest ? "scientific and shortest format"
							 : "precision",
				  mu_dtype_name(t));
	if (width >= 0)
		snprintf(w, sizeof w, "%lld", (long long)width);
	if (precision >= 0)
		snprintf(p, sizeof p, ".%lld", (long long)precision);
	snprintf(out, size, "%%%s%s%s%s", fill, w, p,
		 !is_real     ? t == MU_UINT64 ? PRIu64 : PRId64
		 : shortest   ? "g"
		 : scientific ? "e"
			      : "f");
	return 0;
}

static void print_number(struct mu_buf *b, const char *format, const struct mu_tensor *t, int64_t i)
{
	const char *at = (const char *)t->data + (size_t)i * mu_dtype_size(t->dtype);
	char text[8192];
	double d;
	int64_t k;

	if (mu_dtype_is_complex(t->dtype)) {
		const bool is_double = t->dtype == MU_COMPLEX128;
		for (int part = 0; part < 2; part++) {
			d = is_double ? ((const double *)(const void *)at)[part]
				      : (double)((const float *)(const void *)at)[part];
			snprintf(text, sizeof text, format, d);
			mu_buf_puts(b, part ? "," : "(");
			mu_buf_puts(b, text);
		}
		mu_buf_puts(b, ")");
		return;
	}
	if (t->dtype == MU_BOOL) {
		mu_buf_puts(b, *(const bool *)at ? "true" : "false");
		return;
	}
	if (strchr("gef", format[strlen(format) - 1])) {
		convert(MU_DOUBLE, &d, t->dtype, at, 1);
		snprintf(text, sizeof text, format, d);
	} else {
		convert(MU_INT64, &k, t->dtype, at, 1);
		snprintf(text, sizeof text, format, k);
	}
	mu_buf_puts(b, text);
}

static int as_string(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	MU_AUTO_BUF b = {0};
	struct mu_tensor *out;
	char format[64];

	bool text = in->dtype == MU_STRING;
	if (!text && !mu_dtype_is_complex(in->dtype) &&
	    (!mu_dtype_size(in->dtype) || !convert_supports(MU_INT64, in->dtype)))
		return args_no_kernel(c, in->dtype, err);
	MU_RETURN_IF_ERROR(check_fill(c->node, err));
	if (!text)
		MU_RETURN_IF_ERROR(number_format(c->node, in->dtype, format, sizeof format, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_STRING, &in->shape, &out, err));
	for (int64_t i = 0; i < in->shape.count; i++) {
		mu_buf_clear(&b);
		if (text)
			put_string(&b, c->node, elems_span(in, i));
		else
			print_number(&b, format, in, i);
		mu_string_set(&MU_DATA(struct mu_string, out)[i], b.data, b.len);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"Assert", .run = assert_true},
    {"Print", .run = print, .prepare = node_state_prepare, .release = node_state_release},
    {"PrintV2", .run = print_v2},
    {"StringFormat", .run = string_format},
    {"AsString", .run = as_string},
};
KERNEL_TABLE(text_print, rows)
