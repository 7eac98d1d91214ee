/* SPDX-License-Identifier: Apache-2.0 */
/* The last few manifests as read: most looks at a job find the same one, since it is its status
 * or its pods that changed.  A worker takes one out and puts it back, so nobody shares one. */
#include "operator/control/spec_memo.h"

#include "lib/base/map.h"

void spec_memo_init(struct spec_memo *m)
{
	memset(m, 0, sizeof(*m));
	pthread_mutex_init(&m->lock, NULL);
}

static void forget(struct spec_slot *s)
{
	job_spec_free(s->spec);
	free(s->uid);
	memset(s, 0, sizeof(*s));
}

void spec_memo_fini(struct spec_memo *m)
{
	for (unsigned i = 0; i < SPEC_MEMO; i++)
		forget(&m->slots[i]);
	pthread_mutex_destroy(&m->lock);
}

static struct spec_slot *slot_of(struct spec_memo *m, const char *uid)
{
	return &m->slots[mu_hash(uid, strlen(uid), 0) % SPEC_MEMO];
}

struct job_spec *spec_memo_take(struct spec_memo *m, const char *uid, uint64_t manifest)
{
	struct spec_slot *s = slot_of(m, uid);
	struct job_spec *spec = NULL;

	pthread_mutex_lock(&m->lock);
	if (s->spec && manifest && s->manifest == manifest && strcmp(s->uid, uid) == 0) {
		spec = s->spec;
		s->spec = NULL;
	}
	pthread_mutex_unlock(&m->lock);
	return spec;
}

void spec_memo_put(struct spec_memo *m, const char *uid, uint64_t manifest, struct job_spec *spec)
{
	struct spec_slot *s = slot_of(m, uid);

	pthread_mutex_lock(&m->lock);
	forget(s);
	*s = (struct spec_slot){.uid = mu_xstrdup(uid), .manifest = manifest, .spec = spec};
	pthread_mutex_unlock(&m->lock);
}
