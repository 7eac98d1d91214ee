/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on the files of bundles: merge, exists, remove. */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/map.h"
#include "lib/checkpoint/bundle_table.h"

/* Moves rec to the merged index.  Several indexes may have slices of the same tensor. */
static int merge_record(struct bundle_index *to, struct mu_map *merged_names,
			struct bundle_record *rec, unsigned first_shard, const char *from,
			struct mu_err *err)
{
	uintptr_t at = (uintptr_t)mu_map_get_n(merged_names, rec->key, rec->key_len);
	struct bundle_record *existing = at ? &to->records[at - 1] : NULL;

	if (!existing) {
		existing = bundle_index_add(to, rec->key, rec->key_len);
		char *key = existing->key;
		*existing = *rec;
		existing->key = key;
		rec->slices = NULL;
		rec->n_slices = 0;
		if (!existing->n_slices)
			existing->shard += first_shard;
		mu_map_put_n(merged_names, rec->key, rec->key_len, (void *)(uintptr_t)to->n);
		return 0;
	}
	if (!existing->n_slices || !rec->n_slices || existing->dtype != rec->dtype ||
	    !mu_shape_eq(&existing->shape, &rec->shape))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "cannot merge %s: another bundle also has '%s'", from, rec->key);
	existing->slices = mu_xrealloc(existing->slices, (existing->n_slices + rec->n_slices) *
							     sizeof existing->slices[0]);
	memcpy(existing->slices + existing->n_slices, rec->slices,
	       rec->n_slices * sizeof rec->slices[0]);
	existing->n_slices += rec->n_slices;
	return 0;
}

static int merge_index(struct bundle_index *to, struct mu_map *merged_names,
		       struct bundle_index *from, const char *prefix, struct mu_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < from->n && !rc; i++)
		rc = merge_record(to, merged_names, &from->records[i], to->n_shards, prefix, err);
	to->n_shards += from->n_shards;
	return rc;
}

static int move_data(const char *from, unsigned n_shards, const char *prefix, unsigned first,
		     unsigned total, struct mu_err *err)
{
	for (unsigned s = 0; s < n_shards; s++) {
		MU_AUTO_FREE char *old = bundle_data_path(from, s, n_shards);
		MU_AUTO_FREE char *new = bundle_data_path(prefix, first + s, total);
		if (rename(old, new))
			return mu_fail_errno(err, errno, "cannot rename %s to %s", old, new);
	}
	return 0;
}

static void remove_sources(const char *const *from, unsigned n, bool folders)
{
	for (unsigned i = 0; i < n; i++) {
		MU_AUTO_FREE char *index = mu_xasprintf("%s.index", from[i]);
		unlink(index);
	}
	for (unsigned i = 0; i < n && folders; i++) {
		MU_AUTO_FREE char *copy = mu_xstrdup(from[i]);
		rmdir(dirname(copy)); /* fails unless the folder is empty, as intended */
	}
}

int mu_bundle_merge(const char *const *from, unsigned n, const char *prefix, bool delete_folders,
		    struct mu_err *err)
{
	struct bundle_index merged = {0};
	MU_AUTO_FREE unsigned *shards = MU_NEW_ARRAY(unsigned, n + 1);
	struct mu_map merged_names;
	int rc = n ? 0 : mu_fail(err, MU_INVALID_ARGUMENT, "nothing to merge into %s", prefix);

	mu_map_init(&merged_names);
	for (unsigned i = 0; i < n && !rc; i++) {
		struct bundle_index index;
		rc = bundle_index_read(&index, from[i], err);
		if (rc)
			break;
		shards[i] = index.n_shards;
		rc = merge_index(&merged, &merged_names, &index, from[i], err);
		bundle_index_fini(&index);
	}
	unsigned first = 0;
	for (unsigned i = 0; i < n && !rc; first += shards[i++])
		rc = move_data(from[i], shards[i], prefix, first, merged.n_shards, err);
	if (!rc)
		rc = bundle_index_write(&merged, prefix, err);
	if (!rc)
		remove_sources(from, n, delete_folders);
	mu_map_fini(&merged_names);
	bundle_index_fini(&merged);
	return rc;
}

bool mu_bundle_exists(const char *prefix)
{
	MU_AUTO_FREE char *path = mu_xasprintf("%s.index", prefix);

	return access(path, R_OK) == 0;
}

static int remove_file(const char *path, struct mu_err *err)
{
	if (unlink(path) && errno != ENOENT)
		return mu_fail_errno(err, errno, "cannot remove %s", path);
	return 0;
}

int mu_bundle_remove(const char *prefix, struct mu_err *err)
{
	MU_AUTO_FREE char *path = mu_xasprintf("%s.index", prefix);
	struct bundle_index index;
	unsigned n_shards = 1;

	if (bundle_index_read(&index, prefix, NULL) == 0) {
		n_shards = index.n_shards;
		bundle_index_fini(&index);
	}
	int rc = remove_file(path, err);
	for (unsigned s = 0; s < n_shards && !rc; s++) {
		MU_AUTO_FREE char *data = bundle_data_path(prefix, s, n_shards);
		rc = remove_file(data, err);
	}
	return rc;
}
