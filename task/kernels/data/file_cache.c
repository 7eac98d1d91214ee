/* SPDX-License-Identifier: Apache-2.0 */
/* Caches in files, as TensorFlow writes them: a checkpoint with one tensor for each component of
 * each element.
 *
 * The first iterator writes the checkpoint while it returns the elements.  A lock file prevents
 * other iterators from writing at the same time.  Iterators that open after the checkpoint is
 * complete read it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/checkpoint/bundle.h"
#include "task/kernels/data/dataset.h"
#include "task/kernels/data/serializer.h"
#include "task/kernels/engine/elems.h"

enum { MAX_CACHED = 10000000, KEY_BYTES = 32 };

struct file_cache {
	int64_t at; /* elements drawn so far */
	bool ended;
	char *prefix;
	struct mu_bundle_reader *reader;
	struct mu_bundle_writer *writer; /* without reader and writer, there is no cache */
	char *lockfile;
};

/* As in TensorFlow, the component is padded to the width of the largest component number. */
static const char *cache_key(const struct dataset_iterator *it, int64_t at, unsigned component,
			     char key[KEY_BYTES])
{
	int width = snprintf(NULL, 0, "%u", it->d->n_out - 1);

	snprintf(key, KEY_BYTES, "%7lld_%*u", (long long)at, width, component);
	return key;
}

static int file_cache_open(struct dataset_iterator *it, struct mu_err *err)
{
	struct file_cache *s = it->state;
	struct mu_span name = elems_span(&it->d->params[0], 0);

	s->prefix = mu_xstrndup(name.data, name.len);
	return mu_bundle_exists(s->prefix) ? mu_bundle_open(&s->reader, s->prefix, err)
					   : dataset_iterator_open_input(it, err);
}

static int fail_locked(const char *lockfile, struct mu_err *err)
{
	char content[151] = "";
	FILE *f = fopen(lockfile, "re");

	if (f) {
		content[fread(content, 1, sizeof content - 1, f)] = '\0';
		fclose(f);
	}
	return mu_fail(err, MU_ALREADY_EXISTS,
		       "There appears to be a concurrent caching iterator running - cache lockfile "
		       "already exists ('%.300s'). If you are sure no other running TF "
		       "computations are using this cache prefix, delete the lockfile and "
		       "re-initialize the iterator. Lockfile contents: %s",
		       lockfile, content);
}

static int lock_cache(struct file_cache *s, struct mu_err *err)
{
	MU_AUTO_FREE char *lockfile = mu_xasprintf("%s_0.lockfile", s->prefix);
	int fd = open(lockfile, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0)
		return errno == EEXIST ? fail_locked(lockfile, err)
				       : mu_fail_errno(err, errno, "%.300s", lockfile);
	dprintf(fd, "Created at: %lld", (long long)mu_wall());
	close(fd);
	s->lockfile = mu_steal(&lockfile);
	return mu_bundle_create(&s->writer, s->prefix, err);
}

static void stop_writing(struct file_cache *s)
{
	mu_bundle_writer_free(mu_steal(&s->writer));
	if (s->lockfile)
		unlink(s->lockfile);
	free(mu_steal(&s->lockfile));
}

static void file_cache_close(struct dataset_iterator *it)
{
	struct file_cache *s = it->state;

	stop_writing(s);
	mu_bundle_reader_free(s->reader);
	free(s->prefix);
}

static int read_cached(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct file_cache *s = it->state;
	char key[KEY_BYTES];

	if (!mu_bundle_find(s->reader, cache_key(it, s->at, 0, key)))
		return 0;
	for (unsigned i = 0; i < it->d->n_out; i++) {
		int rc = mu_bundle_read(s->reader, cache_key(it, s->at, i, key), &out[i], err);
		if (rc) {
			element_drop(out, i);
			return rc;
		}
	}
	s->at++;
	return 1;
}

static int write_cached(struct dataset_iterator *it, const struct mu_tensor *t, struct mu_err *err)
{
	struct file_cache *s = it->state;
	char key[KEY_BYTES];
	int rc = 0;

	if (s->at >= MAX_CACHED)
		return mu_invalid(err,
				  "Upstream iterator is producing more than %d items, which is "
				  "more than the cache limit.",
				  MAX_CACHED);
	for (unsigned i = 0; i < it->d->n_out && !rc; i++)
		rc = mu_bundle_add(s->writer, cache_key(it, s->at, i, key), &t[i], err);
	return rc;
}

/* After a write error, the iterator returns the remaining elements without writing a cache. */
static int draw_and_write(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	struct file_cache *s = it->state;
	int bad = 0;

	if (!s->at && !s->writer && (bad = lock_cache(s, err))) {
		stop_writing(s);
		return bad;
	}
	int rc = dataset_iterator_next(it->input, out, err);
	if (rc < 0)
		return rc;
	s->ended = !rc;
	if (s->writer)
		bad = rc ? write_cached(it, out, err) : mu_bundle_finish(s->writer, err);
	s->at += rc;
	if (bad || s->ended)
		stop_writing(s);
	if (bad && rc)
		element_drop(out, it->d->n_out);
	return bad ? bad : rc;
}

static int file_cache_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	const struct file_cache *s = it->state;

	return s->ended ? 0 : (s->reader ? read_cached : draw_and_write)(it, out, err);
}

/* A restored iterator reads the cache if it exists now.  Otherwise it returns the remaining
 * elements of its input, without a cache. */
static int file_cache_serialize(struct dataset_iterator *it, struct serializer *ser,
				struct mu_err *err)
{
	struct file_cache *s = it->state;

	MU_RETURN_IF_ERROR(serialize_number(ser, &s->at, 0, MAX_CACHED, err));
	return serialize_flag(ser, &s->ended, err);
}

const struct dataset_kind file_cache_kind = {.state_size = sizeof(struct file_cache),
					     .n_in = 1,
					     .open = file_cache_open,
					     .next = file_cache_next,
					     .close = file_cache_close,
					     .serialize = file_cache_serialize};
