/* SPDX-License-Identifier: Apache-2.0 */
/* The file named `checkpoint` beside checkpoints: which one is the latest, and which are kept.
 *
 * Text form of TensorFlow's CheckpointState.  Paths inside the folder are written relative to it
 * and are returned joined to it, so a folder may be moved.
 */
#ifndef MU_IO_CHECKPOINT_STATE_H
#define MU_IO_CHECKPOINT_STATE_H

#include "lib/base/buf.h"

enum { MU_CHECKPOINT_MAX_PATHS = 100000 };

struct mu_checkpoint_state {
	char *latest; /* NULL: none */
	char **all;   /* oldest first; the latest is among them */
	double *times;
	unsigned n;
	double last_preserved;
};
void mu_checkpoint_state_fini(struct mu_checkpoint_state *s);
/* NOT_FOUND when there is no such file. */
int mu_checkpoint_state_read(struct mu_checkpoint_state *out, const char *folder,
			     struct mu_err *err);
int mu_checkpoint_state_write(const struct mu_checkpoint_state *s, const char *folder,
			      struct mu_err *err);
/* Adds (or moves to the end) prefix with its time and makes it the latest.  When more than keep
 * (> 0) are held, the oldest are taken out and returned in *dropped (may be NULL): free each, then
 * the array. */
void mu_checkpoint_state_add(struct mu_checkpoint_state *s, const char *prefix, double now,
			     unsigned keep, char ***dropped, unsigned *n_dropped);
/* The latest checkpoint of a folder: *out is new, NULL when there is none. */
int mu_checkpoint_latest(char **out, const char *folder, struct mu_err *err);

#endif
