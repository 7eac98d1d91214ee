/* SPDX-License-Identifier: Apache-2.0 */
/* Supports the subset of text protocol buffers that this file uses: lines with a name, a colon and
 * a quoted string or number. */
#include "lib/checkpoint/checkpoint_state.h"

#include <ctype.h>

#include "lib/checkpoint/bundle.h"

enum { MAX_FILE = 16 << 20 };

void mu_checkpoint_state_fini(struct mu_checkpoint_state *s)
{
	for (unsigned i = 0; i < s->n; i++)
		free(s->paths[i]);
	free(s->paths);
	free(s->times);
	free(s->latest);
	*s = (struct mu_checkpoint_state){0};
}

static void skip_blank(const char **at, unsigned *line)
{
	while (**at && (isspace((unsigned char)**at) || **at == '#' || **at == ';')) {
		if (**at == '#')
			while (**at && **at != '\n')
				++*at;
		if (**at == '\n')
			++*line;
		if (**at)
			++*at;
	}
}

static int hex_value(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* Parses an escape sequence; *at is after the backslash. */
static char unescape(const char **at)
{
	static const char from[] = "nrtabfv", to[] = "\n\r\t\a\b\f\v";
	const char *escape = **at ? strchr(from, **at) : NULL;
	unsigned v = 0;

	if (**at >= '0' && **at <= '7') {
		for (int i = 0; i < 3 && **at >= '0' && **at <= '7'; i++)
			v = v * 8 + (unsigned)(*(*at)++ - '0');
		return (char)v;
	}
	if (**at == 'x' && isxdigit((unsigned char)(*at)[1])) {
		++*at;
		for (int i = 0; i < 2 && isxdigit((unsigned char)**at); i++)
			v = v * 16 + (unsigned)hex_value(*(*at)++);
		return (char)v;
	}
	char c = escape ? to[escape - from] : **at;
	*at += **at != 0;
	return c;
}

static bool parse_string(const char **at, struct mu_buf *out)
{
	char quote = *(*at)++;

	mu_buf_put(out, "", 0);
	while (**at && **at != quote && **at != '\n') {
		char c = *(*at)++;
		mu_buf_putc(out, c == '\\' ? unescape(at) : c);
	}
	if (**at != quote || strlen(out->data) != out->len)
		return false;
	++*at;
	return true;
}

static char *join_path(const char *folder, const char *path)
{
	return *path == '/' || !*folder ? mu_xstrdup(path) : mu_xasprintf("%s/%s", folder, path);
}

static void grow(struct mu_checkpoint_state *s)
{
	s->paths = mu_xrealloc(s->paths, (s->n + 1) * sizeof s->paths[0]);
	s->times = mu_xrealloc(s->times, (s->n + 1) * sizeof s->times[0]);
	s->times[s->n] = 0;
}

struct parser {
	struct mu_checkpoint_state s;
	const char *folder;
	unsigned n_times;
};

static void set_text_field(struct parser *p, const char *name, const char *value)
{
	if (strcmp(name, "model_checkpoint_path") == 0) {
		free(p->s.latest);
		p->s.latest = *value ? join_path(p->folder, value) : NULL;
	} else if (strcmp(name, "all_model_checkpoint_paths") == 0 && *value &&
		   p->s.n < MU_CHECKPOINT_MAX_PATHS) {
		grow(&p->s);
		p->s.paths[p->s.n++] = join_path(p->folder, value);
	}
}

static void set_number_field(struct parser *p, const char *name, double value)
{
	if (strcmp(name, "last_preserved_timestamp") == 0)
		p->s.last_preserved = value;
	else if (strcmp(name, "all_model_checkpoint_timestamps") == 0 && p->n_times < p->s.n)
		p->s.times[p->n_times++] = value;
}

static int state_parse(struct parser *p, const char *text, const char *path, struct mu_err *err)
{
	unsigned line = 1;

	for (skip_blank(&text, &line); *text; skip_blank(&text, &line)) {
		MU_AUTO_BUF value = {0};
		char name[64];
		size_t n = 0;
		while ((isalnum((unsigned char)*text) || *text == '_') && n + 1 < sizeof name)
			name[n++] = *text++;
		name[n] = '\0';
		skip_blank(&text, &line);
		if (!n || *text++ != ':')
			goto bad;
		skip_blank(&text, &line);
		if (*text == '"' || *text == '\'') {
			if (!parse_string(&text, &value))
				goto bad;
			set_text_field(p, name, value.data);
			continue;
		}
		char *end;
		double number = strtod(text, &end);
		if (end == text)
			goto bad;
		text = end;
		set_number_field(p, name, number);
	}
	return 0;
bad:
	return mu_fail(err, MU_DATA_LOSS, "%s:%u: not a checkpoint state", path, line);
}

int mu_checkpoint_state_read(struct mu_checkpoint_state *out, const char *folder,
			     struct mu_err *err)
{
	MU_AUTO_FREE char *path = join_path(folder, "checkpoint");
	struct parser p = {.folder = folder};
	MU_AUTO_BUF text = {0};
	int rc = mu_buf_read_file(&text, path, MAX_FILE, err);

	if (!rc)
		rc = state_parse(&p, text.data, path, err);
	if (rc) {
		mu_checkpoint_state_fini(&p.s);
		return rc;
	}
	*out = p.s;
	return 0;
}

static void put_path(struct mu_buf *b, const char *field, const char *folder, const char *path)
{
	size_t n = strlen(folder);

	if (n && strncmp(path, folder, n) == 0 && path[n] == '/')
		path += n + 1;
	mu_buf_printf(b, "%s: \"", field);
	for (; *path; path++) {
		unsigned char c = (unsigned char)*path;
		if (c == '"' || c == '\\')
			mu_buf_printf(b, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			mu_buf_printf(b, "\\%03o", c);
		else
			mu_buf_putc(b, (char)c);
	}
	mu_buf_puts(b, "\"\n");
}

int mu_checkpoint_state_write(const struct mu_checkpoint_state *s, const char *folder,
			      struct mu_err *err)
{
	MU_AUTO_FREE char *path = join_path(folder, "checkpoint");
	MU_AUTO_BUF b = {0};

	if (s->latest)
		put_path(&b, "model_checkpoint_path", folder, s->latest);
	for (unsigned i = 0; i < s->n; i++)
		put_path(&b, "all_model_checkpoint_paths", folder, s->paths[i]);
	for (unsigned i = 0; i < s->n; i++)
		mu_buf_printf(&b, "all_model_checkpoint_timestamps: %.17g\n", s->times[i]);
	if (s->last_preserved > 0)
		mu_buf_printf(&b, "last_preserved_timestamp: %.17g\n", s->last_preserved);
	return mu_write_file(path, b.data ? b.data : "", b.len, err);
}

static char *remove_at(struct mu_checkpoint_state *s, unsigned i)
{
	char *path = s->paths[i];

	s->n--;
	memmove(&s->paths[i], &s->paths[i + 1], (s->n - i) * sizeof s->paths[0]);
	memmove(&s->times[i], &s->times[i + 1], (s->n - i) * sizeof s->times[0]);
	return path;
}

void mu_checkpoint_state_add(struct mu_checkpoint_state *s, const char *prefix, double now,
			     unsigned keep, char ***removed, unsigned *n_removed)
{
	char **old = NULL;
	unsigned n_old = 0;

	for (unsigned i = 0; i < s->n; i++)
		if (strcmp(s->paths[i], prefix) == 0) {
			free(remove_at(s, i));
			break;
		}
	grow(s);
	s->paths[s->n] = mu_xstrdup(prefix);
	s->times[s->n++] = now;
	free(s->latest);
	s->latest = mu_xstrdup(prefix);
	while (keep && s->n > keep) {
		old = mu_xrealloc(old, (n_old + 1) * sizeof old[0]);
		old[n_old++] = remove_at(s, 0);
	}
	if (removed) {
		*removed = old;
		*n_removed = n_old;
		return;
	}
	while (n_old)
		free(old[--n_old]);
	free(old);
}

int mu_checkpoint_latest(char **out, const char *folder, struct mu_err *err)
{
	struct mu_checkpoint_state s;
	int rc = mu_checkpoint_state_read(&s, folder, err);

	if (rc == -MU_NOT_FOUND) {
		*out = NULL;
		return 0;
	}
	if (rc)
		return rc;
	*out = s.latest && mu_bundle_exists(s.latest) ? mu_xstrdup(s.latest) : NULL;
	mu_checkpoint_state_fini(&s);
	return 0;
}
