/* SPDX-License-Identifier: Apache-2.0 */
/* Saves and restores variables through the graph, in TensorFlow's sharded format.
 *
 * Every task with variables writes its own shard beside the final files ("…_temp_<hex>/part"). Then
 * the first task merges the indexes under the final name, so that a checkpoint appears atomically.
 * The servers write the files on their own file systems: several ps tasks need a shared folder. The
 * client writes the `checkpoint` file.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/builder/builder.h"
#include "lib/checkpoint/bundle.h"
#include "lib/checkpoint/checkpoint_state.h"
#include "lib/io/folders.h"
#include "muster/train.h"

struct mu_saver {
	struct mu_builder *b;
	unsigned keep;
	double keep_interval_s; /* 0: no checkpoint is kept permanently */
	struct mu_out prefix,
	    tmp_prefix; /* placeholders: the final prefix, and the prefix of the shards */
	struct mu_out save, restore; /* operations */
	const struct shard *shards;
	unsigned n_shards;
};

/* The variables of one device. */
struct shard {
	const char *device;
	struct mu_saved *vars;
	unsigned n;
};

static struct shard *make_shards(struct mu_builder *b, const struct mu_saver_options *o, unsigned n,
				 unsigned *count)
{
	struct shard *all = MU_ARENA_ARRAY(&b->graph->arena, struct shard, n + 1);
	unsigned shards = 0;

	for (unsigned i = 0; i < n; i++) {
		struct mu_saved v =
		    o->n_vars ? o->vars[i] : (struct mu_saved){mu_var_at(b, i), NULL};
		unsigned k = 0;

		if (!v.var)
			continue; /* the builder has the error */
		v.name = mu_arena_printf(&b->graph->arena, "%s", v.name ? v.name : v.var->name);
		while (k < shards && strcmp(all[k].device, v.var->ref.node->device) != 0)
			k++;
		if (k == shards) {
			all[shards++] = (struct shard){
			    .device = v.var->ref.node->device,
			    .vars = MU_ARENA_ARRAY(&b->graph->arena, struct mu_saved, n)};
		}
		all[k].vars[all[k].n++] = v;
	}
	*count = shards;
	return all;
}

/* Adds the constant vectors of names and (empty) slices for SaveV2 and RestoreV2. */
static void make_name_vectors(struct mu_builder *b, const struct shard *s, struct mu_out *names,
			      struct mu_out *slices)
{
	const char **tensor_names = MU_ARENA_ARRAY(&b->graph->arena, const char *, s->n);
	const char **empty_slices = MU_ARENA_ARRAY(&b->graph->arena, const char *, s->n);

	for (unsigned i = 0; i < s->n; i++) {
		tensor_names[i] = s->vars[i].name;
		empty_slices[i] = "";
	}
	*names = mu_const_strs(b, tensor_names, s->n);
	*slices = mu_const_strs(b, empty_slices, s->n);
}

static void save_shard(struct mu_saver *v, const struct shard *s, unsigned k, unsigned n_shards,
		       struct mu_out *file, struct mu_out *done)
{
	struct mu_builder *b = v->b;
	struct mu_out *in = MU_ARENA_ARRAY(&b->graph->arena, struct mu_out, s->n + 3);

	*file = mu_op(b, "ShardedFilename",
		      MU_IN(v->tmp_prefix, mu_const_int(b, MU_INT32, k),
			    mu_const_int(b, MU_INT32, n_shards)));
	in[0] = *file;
	make_name_vectors(b, s, &in[1], &in[2]);
	for (unsigned i = 0; i < s->n; i++)
		in[3 + i] = s->vars[i].var->ref;
	*done = mu_op_add(b, &(struct mu_op_args){.op = "SaveV2", .in = in, .n_in = s->n + 3});
}

static void restore_shard(struct mu_saver *v, const struct shard *s, struct mu_out *done)
{
	struct mu_builder *b = v->b;
	enum mu_dtype *types = MU_ARENA_ARRAY(&b->graph->arena, enum mu_dtype, s->n);
	struct mu_out names, slices, values;

	for (unsigned i = 0; i < s->n; i++)
		types[i] = s->vars[i].var->dtype;
	make_name_vectors(b, s, &names, &slices);
	values = mu_op(b, "RestoreV2", MU_IN(v->prefix, names, slices),
		       MU_ATTRS(MU_A_TYPES("dtypes", types, s->n)));
	for (unsigned i = 0; i < s->n; i++)
		done[i] = mu_assign(b, s->vars[i].var, mu_port(values, (int)i));
}

struct mu_saver *mu_saver_new(struct mu_builder *b, unsigned keep)
{
	return mu_saver_new_with(b, &(struct mu_saver_options){.keep = keep});
}

struct mu_saver *mu_saver_new_with(struct mu_builder *b, const struct mu_saver_options *o)
{
	struct mu_saver *v = MU_NEW(struct mu_saver);
	unsigned n = o->n_vars ? o->n_vars : mu_var_count(b), shards, restored = 0;
	struct shard *s = make_shards(b, o, n, &shards);
	struct mu_out *files = MU_NEW_ARRAY(struct mu_out, shards + 1);
	struct mu_out *saved = MU_NEW_ARRAY(struct mu_out, shards + 1);
	struct mu_out *assigned = MU_NEW_ARRAY(struct mu_out, n + 1);

	if (!n)
		mu_builder_fail(b, MU_INVALID_ARGUMENT,
				"a saver needs variables: create it after them");
	v->b = b;
	v->shards = s;
	v->n_shards = shards;
	v->keep = o->keep;
	v->keep_interval_s = o->keep_every_hours * 3600;
	mu_push_name(b, "save");
	v->prefix = mu_placeholder(b, "prefix", MU_STRING, MU_SCALAR);
	v->tmp_prefix = mu_placeholder(b, "tmp_prefix", MU_STRING, MU_SCALAR);
	for (unsigned k = 0; k < shards; k++) {
		mu_push_device(b, s[k].device);
		save_shard(v, &s[k], k, shards, &files[k], &saved[k]);
		restore_shard(v, &s[k], assigned + restored);
		mu_pop_device(b);
		restored += s[k].n;
	}
	mu_push_device(b, shards ? s[0].device : "");
	mu_push_control(b, saved, shards);
	v->save = mu_op(
	    b, "MergeV2Checkpoints",
	    MU_IN(mu_op_add(b, &(struct mu_op_args){.op = "Pack", .in = files, .n_in = shards}),
		  v->prefix));
	mu_pop_control(b);
	v->restore = mu_group(b, "restore_all", assigned, restored);
	mu_pop_device(b);
	mu_pop_name(b);
	free(files);
	free(saved);
	free(assigned);
	return v;
}

void mu_saver_free(struct mu_saver *v)
{
	free(v);
}

/* Runs `save` or `restore` with its prefixes. */
static int run_saver_op(struct mu_saver *v, struct mu_session *s, struct mu_out op,
			const char *prefix, struct mu_err *err)
{
	MU_AUTO_TENSOR name = {0};
	MU_AUTO_TENSOR tmp_prefix = {0};
	struct mu_feed feeds[2] = {{v->prefix, &name}, {v->tmp_prefix, &tmp_prefix}};
	MU_AUTO_FREE char *text = NULL;
	int rc;

	text = mu_xasprintf("%s_temp_%016llx/part", prefix, (unsigned long long)mu_random_u64());
	rc = mu_tensor_string(&name, prefix, strlen(prefix), err);
	if (!rc)
		rc = mu_tensor_string(&tmp_prefix, text, strlen(text), err);
	if (!rc)
		rc = mu_session_run(s,
				    &(struct mu_run){.feeds = feeds,
						     .n_feeds = op.node == v->save.node ? 2 : 1,
						     .targets = &op,
						     .n_targets = 1},
				    NULL, err);
	return rc;
}

/* True if a checkpoint that leaves the list stays on disk: it is at least keep_interval_s newer
 * than the last preserved one. `previous` has the old list. Updates state->last_preserved. */
static bool is_preserved(struct mu_saver *v, struct mu_checkpoint_state *state,
			 const struct mu_checkpoint_state *previous, const char *path)
{
	for (unsigned i = 0; v->keep_interval_s > 0 && i < previous->n; i++)
		if (strcmp(previous->paths[i], path) == 0 && previous->times &&
		    previous->times[i] >= state->last_preserved + v->keep_interval_s) {
			state->last_preserved = previous->times[i];
			return true;
		}
	return false;
}

/* Adds the new checkpoint to the `checkpoint` file. Deletes the checkpoints that leave its list,
 * except those that keep_every_hours preserves. */
static int record_checkpoint(struct mu_saver *v, const char *folder, const char *path,
			     struct mu_err *err)
{
	struct mu_checkpoint_state state = {0}, previous = {0};
	char **dropped = NULL;
	unsigned n_dropped = 0;
	double now;
	int rc = mu_checkpoint_state_read(&state, folder, err);

	if (rc && rc != -(int)MU_NOT_FOUND)
		return rc;
	now = mu_wall();
	if (v->keep_interval_s > 0 && !rc)
		mu_checkpoint_state_read(&previous, folder, NULL);
	if (!(state.last_preserved > 0)) /* no checkpoint is preserved yet: start the interval */
		state.last_preserved = now;
	mu_checkpoint_state_add(&state, path, now, v->keep, &dropped, &n_dropped);
	for (unsigned i = 0; i < n_dropped; i++)
		if (is_preserved(v, &state, &previous, dropped[i]))
			dropped[i][0] = 0;
	rc = mu_checkpoint_state_write(&state, folder, err);
	for (unsigned i = 0; i < n_dropped; i++) {
		/* Files on the disk of another machine cannot be deleted from here; ignore the
		 * failure. */
		if (!rc && dropped[i][0])
			mu_bundle_remove(dropped[i], NULL);
		free(dropped[i]);
	}
	free(dropped);
	mu_checkpoint_state_fini(&previous);
	mu_checkpoint_state_fini(&state);
	return rc;
}

int mu_saver_write(struct mu_saver *v, struct mu_session *s, const char *prefix, struct mu_err *err)
{
	if (run_saver_op(v, s, v->save, prefix, err))
		return mu_wrap(err, "save checkpoint %s", prefix);
	return 0;
}

static int copy_shard(struct mu_bundle_reader *from, struct mu_bundle_writer *to,
		      const struct shard *s, struct mu_err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < s->n && !rc; i++) {
		MU_AUTO_TENSOR value = {0};

		rc = mu_bundle_read(from, s->vars[i].name, &value, err);
		if (!rc)
			rc = mu_bundle_add(to, s->vars[i].name, &value, err);
	}
	return rc;
}

int mu_saver_copy(const struct mu_saver *v, const char *from, const char *prefix,
		  struct mu_err *err)
{
	MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *r = NULL;
	MU_AUTO(mu_bundle_writer_free) struct mu_bundle_writer *w = NULL;
	int rc = mu_bundle_open(&r, from, err);

	if (!rc)
		rc = mu_bundle_create(&w, prefix, err);
	for (unsigned i = 0; i < v->n_shards && !rc; i++)
		rc = copy_shard(r, w, &v->shards[i], err);
	return rc ? rc : mu_bundle_finish(w, err);
}

/* Creates the folder and its parents. Returns its absolute path, or NULL on failure. */
static char *make_folder(const char *folder)
{
	MU_AUTO_FREE char *all = mu_xasprintf("%s/", folder);

	return mu_make_folders(all, NULL) ? NULL : realpath(folder, NULL);
}

int mu_saver_save(struct mu_saver *v, struct mu_session *s, const char *folder, int64_t step,
		  char **path, struct mu_err *err)
{
	MU_AUTO_FREE char *absolute = realpath(folder, NULL);
	MU_AUTO_FREE char *prefix = NULL;
	int rc;

	if (!absolute)
		absolute = make_folder(folder);
	if (!absolute)
		return mu_fail_errno(err, errno, "make the checkpoint folder %s", folder);
	prefix = mu_xasprintf("%s/model.ckpt-%lld", absolute, (long long)step);
	rc = mu_saver_write(v, s, prefix, err);
	if (!rc && record_checkpoint(v, absolute, prefix, err))
		rc = mu_wrap(err, "save checkpoint %s", prefix);
	if (rc)
		return rc;
	if (path)
		*path = mu_steal(&prefix);
	return 0;
}

int mu_saver_restore(struct mu_saver *v, struct mu_session *s, const char *prefix,
		     struct mu_err *err)
{
	if (run_saver_op(v, s, v->restore, prefix, err))
		return mu_wrap(err, "restore checkpoint %s", prefix);
	return 0;
}
