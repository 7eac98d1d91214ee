/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/graph/device_name.h"

#include <ctype.h>
#include <limits.h>
#include <strings.h>

static const struct mu_device_name anywhere = {.replica = -1, .task = -1, .index = -1};

static int bad_name(struct mu_err *err, const char *text)
{
	return mu_fail(err, MU_INVALID_ARGUMENT,
		       "Malformed device specification '%.200s': parts are /job:NAME, /replica:N, "
		       "/task:N and /device:TYPE:N",
		       text);
}

/* Parses '*', or a letter and then letters, digits and '_'. */
static bool parse_name(const char **at, char *out, size_t cap)
{
	const char *s = *at;
	size_t n = 0;

	if (*s == '*') {
		*at = s + 1;
		*out = '\0';
		return true;
	}
	if (!isalpha((unsigned char)*s))
		return false;
	while (isalnum((unsigned char)s[n]) || s[n] == '_')
		n++;
	if (n >= cap)
		return false;
	memcpy(out, s, n);
	out[n] = '\0';
	*at = s + n;
	return true;
}

static bool parse_number(const char **at, int *out)
{
	const char *s = *at;
	long v = 0;

	if (*s == '*') {
		*at = s + 1;
		*out = -1;
		return true;
	}
	if (!isdigit((unsigned char)*s))
		return false;
	for (; isdigit((unsigned char)*s); s++)
		if ((v = v * 10 + (*s - '0')) > INT_MAX)
			return false;
	*at = s;
	*out = (int)v;
	return true;
}

static bool skip_prefix(const char **at, const char *prefix)
{
	size_t n = strlen(prefix);

	if (strncmp(*at, prefix, n) != 0)
		return false;
	*at += n;
	return true;
}

static void normalise_type(char *type)
{
	if (strcasecmp(type, "cpu") == 0 || strcasecmp(type, "gpu") == 0)
		for (; *type; type++)
			*type = (char)toupper((unsigned char)*type);
}

static bool parse_part(const char **s, struct mu_device_name *d)
{
	if (skip_prefix(s, "/job:"))
		return parse_name(s, d->job, sizeof d->job);
	if (skip_prefix(s, "/replica:"))
		return parse_number(s, &d->replica);
	if (skip_prefix(s, "/task:"))
		return parse_number(s, &d->task);
	bool is_legacy = !skip_prefix(s, "/device:");
	if (is_legacy && !skip_prefix(s, "/"))
		return false;
	if (!parse_name(s, d->type, sizeof d->type))
		return false;
	normalise_type(d->type);
	if (is_legacy && strcmp(d->type, "CPU") != 0 && strcmp(d->type, "GPU") != 0)
		return false;
	d->index = -1;
	if (skip_prefix(s, ":"))
		return parse_number(s, &d->index);
	return !is_legacy;
}

int mu_device_parse(struct mu_device_name *out, const char *text, struct mu_err *err)
{
	struct mu_device_name d = anywhere;

	for (const char *s = text; *s;)
		if (!parse_part(&s, &d) || (*s && *s != '/'))
			return bad_name(err, text);
	*out = d;
	return 0;
}

void mu_device_merge(struct mu_device_name *d, const struct mu_device_name *inner)
{
	if (*inner->job)
		memcpy(d->job, inner->job, sizeof d->job);
	if (inner->replica >= 0)
		d->replica = inner->replica;
	if (inner->task >= 0)
		d->task = inner->task;
	if (*inner->type)
		memcpy(d->type, inner->type, sizeof d->type);
	if (inner->index >= 0)
		d->index = inner->index;
}

static bool number_matches(int have, int want)
{
	return want < 0 || have == want;
}

bool mu_device_matches(const struct mu_device_name *d, const struct mu_device_name *p)
{
	return (!*p->job || strcmp(d->job, p->job) == 0) &&
	       number_matches(d->replica, p->replica) && number_matches(d->task, p->task) &&
	       (!*p->type || strcmp(d->type, p->type) == 0) && number_matches(d->index, p->index);
}

bool mu_device_intersect(struct mu_device_name *d, const struct mu_device_name *other)
{
	struct mu_device_name merged = *d;

	mu_device_merge(&merged, other);
	if (!mu_device_matches(&merged, d))
		return false;
	*d = merged;
	return true;
}

void mu_device_write(struct mu_buf *b, const struct mu_device_name *d)
{
	if (*d->job)
		mu_buf_printf(b, "/job:%s", d->job);
	if (d->replica >= 0)
		mu_buf_printf(b, "/replica:%d", d->replica);
	if (d->task >= 0)
		mu_buf_printf(b, "/task:%d", d->task);
	if (*d->type)
		mu_buf_printf(b, "/device:%s:", d->type);
	if (*d->type && d->index >= 0)
		mu_buf_printf(b, "%d", d->index);
	else if (*d->type)
		mu_buf_putc(b, '*');
}

size_t mu_device_task_len(const char *full_name)
{
	const char *s = strstr(full_name, "/task:");

	if (!s)
		return 0;
	s += strlen("/task:");
	while (isdigit((unsigned char)*s))
		s++;
	return (size_t)(s - full_name);
}

bool mu_device_same_task(const char *full_name, const char *other)
{
	size_t n = mu_device_task_len(full_name);

	return n == mu_device_task_len(other) && memcmp(full_name, other, n) == 0;
}
