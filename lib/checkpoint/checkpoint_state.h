/* SPDX-License-Identifier: Apache-2.0 */
/* The file `checkpoint` in a folder of checkpoints: the latest checkpoint and all existing ones.
 *
 * It is TensorFlow's CheckpointState in text form.  Paths in the folder are stored relative to it,
 * so the folder may be moved.  The functions return them joined to the folder.
 */
#ifndef MU_LIB_CHECKPOINT_CHECKPOINT_STATE_H
#define MU_LIB_CHECKPOINT_CHECKPOINT_STATE_H

#include "lib/base/buf.h"

enum { MU_CHECKPOINT_MAX_PATHS = 100000 };

struct mu_checkpoint_state {
	char *latest; /* NULL: none */
	char **paths; /* oldest first; includes the latest */
	double *times;
	unsigned n;
	double last_preserved;
};
void mu_checkpoint_state_fini(struct mu_checkpoint_state *s);
/* NOT_FOUND if the file does not exist. */
int mu_checkpoint_state_read(struct mu_checkpoint_state *out, const char *folder,
			     struct mu_err *err);
int mu_checkpoint_state_write(const struct mu_checkpoint_state *s, const char *folder,
			      struct mu_err *err);
/* Adds prefix (or moves it to the end) with its time and makes it the latest.  If there are more
 * than `keep` (> 0), removes the oldest and returns them in *removed (may be NULL): free each, then
 * the array. */
void mu_checkpoint_state_add(struct mu_checkpoint_state *s, const char *prefix, double now,
			     unsigned keep, char ***removed, unsigned *n_removed);
/* Finds the latest checkpoint of a folder; *out is a new string, NULL if there is none. */
int mu_checkpoint_latest(char **out, const char *folder, struct mu_err *err);

#endif
