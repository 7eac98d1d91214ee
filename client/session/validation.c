/* SPDX-License-Identifier: Apache-2.0 */
/* The hook that scores the model periodically, saves the best model, and stops a training that no
 * longer improves.
 *
 * The file "best" has one line, "<score> <step> <scores since>". A restarted chief reads it.
 * Otherwise its first score would be the best one, and its count would start at 0.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "muster/train.h"

struct validation_hook {
	struct mu_hook base;
	struct mu_validation v;
	char *folder, *tag;
	double best;
	int64_t best_step, last_step;
	unsigned n_since_best; /* scores after the best one */
};

static char *path_of(const struct validation_hook *h, const char *suffix)
{
	return mu_xasprintf("%s/best%s", h->folder, suffix);
}

static void read_best(struct validation_hook *h)
{
	MU_AUTO_FREE char *path = path_of(h, "");
	FILE *f = fopen(path, "r");
	double best;
	long long step;
	unsigned n_since_best;

	if (!f)
		return;
	if (fscanf(f, "%lf %lld %u", &best, &step, &n_since_best) == 3 && isfinite(best)) {
		h->best = best;
		h->best_step = step;
		h->n_since_best = n_since_best;
	}
	fclose(f);
}

static int write_best(const struct validation_hook *h, struct mu_err *err)
{
	MU_AUTO_FREE char *path = path_of(h, "");
	MU_AUTO_FREE char *text =
	    mu_xasprintf("%.9g %lld %u\n", h->best, (long long)h->best_step, h->n_since_best);

	return mu_write_file(path, text, strlen(text), err);
}

static int validation_created(struct mu_hook *base, struct mu_session *s, int64_t step,
			      struct mu_err *err)
{
	struct validation_hook *h = (struct validation_hook *)base;

	h->last_step = step;
	if (h->folder)
		read_best(h);
	return 0;
}

static int keep_best(struct validation_hook *h, struct mu_session *s, int64_t step, double score,
		     struct mu_err *err)
{
	int rc = 0;

	if (score > h->best || isnan(h->best)) {
		h->best = score;
		h->best_step = step;
		h->n_since_best = 0;
		if (h->v.saver && h->folder)
			rc = mu_saver_save(h->v.saver, s, h->folder, step, NULL, err);
	} else {
		h->n_since_best++;
	}
	/* The folder exists after the first score, which is the best so far, has been saved. */
	return rc || !h->folder ? rc : write_best(h, err);
}

static int validation_after(struct mu_hook *base, struct mu_hook_step *s, struct mu_err *err)
{
	struct validation_hook *h = (struct validation_hook *)base;
	double score = NAN;
	int rc;

	if (s->step - h->last_step < h->v.steps)
		return 0;
	h->last_step = s->step;
	rc = h->v.score(h->v.arg, s->session, s->step, &score, err);
	if (!rc && h->v.events)
		rc = mu_event_scalar(h->v.events, s->step, h->tag, (float)score, err);
	if (!rc)
		rc = keep_best(h, s->session, s->step, score, err);
	if (rc || !h->v.patience || h->n_since_best < h->v.patience)
		return rc;
	mu_info("train", "no improvement for %u validations: best %.4f at step %lld",
		h->n_since_best, h->best, (long long)h->best_step);
	s->stop = true;
	if (h->v.ended_early)
		*h->v.ended_early = true;
	return 0;
}

static void validation_free(struct mu_hook *base)
{
	struct validation_hook *h = (struct validation_hook *)base;

	free(h->folder);
	free(h->tag);
	free(h);
}

struct mu_hook *mu_validation_hook(const struct mu_validation *v)
{
	struct validation_hook *h = MU_NEW(struct validation_hook);

	h->base = (struct mu_hook){
	    .created = validation_created, .after = validation_after, .free = validation_free};
	h->v = *v;
	h->folder = v->saver && v->best_folder ? mu_xstrdup(v->best_folder) : NULL;
	h->tag = mu_xstrdup(v->tag ? v->tag : "validation");
	h->best = NAN;
	return &h->base;
}
