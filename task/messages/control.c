/* SPDX-License-Identifier: Apache-2.0 */
#include "task/messages/control.h"

enum { MAX_OVERHEAD_BYTES = 64 << 20 }; /* unpacked size minus encoded length */

struct budget {
	struct mu_arena *arena;
	size_t left;
};

static void *budget_alloc(void *data, size_t size)
{
	struct budget *b = data;

	if (size > b->left)
		return NULL;
	b->left -= size;
	return mu_arena_alloc(b->arena, size);
}

static void budget_free(void *data, void *p)
{
}

void *control_unpack(struct mu_arena *a, const ProtobufCMessageDescriptor *d, struct mu_span bytes,
		     struct mu_err *err)
{
	struct budget budget = {a, bytes.len + MAX_OVERHEAD_BYTES};
	ProtobufCAllocator allocator = {
	    .alloc = budget_alloc, .free = budget_free, .allocator_data = &budget};
	void *m = protobuf_c_message_unpack(d, &allocator, bytes.len, (const uint8_t *)bytes.data);

	if (!m)
		mu_fail(err, MU_INVALID_ARGUMENT, "malformed message %s", d->short_name);
	return m;
}

void control_pack(struct mu_buf *b, const void *message)
{
	size_t n = protobuf_c_message_get_packed_size(message);

	mu_buf_reserve(b, n);
	protobuf_c_message_pack(message, (uint8_t *)b->data + b->len);
	b->len += n;
	b->data[b->len] = 0;
}

int control_cluster(const Muster__ClusterDef *def, struct mu_cluster *out, struct mu_err *err)
{
	MU_AUTO_CLUSTER c = {0};
	int rc = 0;

	for (size_t j = 0; j < def->n_job && !rc; j++)
		for (size_t t = 0; t < def->job[j]->n_tasks && !rc; t++)
			rc = mu_cluster_add(&c, def->job[j]->name, def->job[j]->tasks[t]->key,
					    def->job[j]->tasks[t]->value, err);
	if (rc)
		return rc;
	*out = c;
	c = (struct mu_cluster){0};
	return 0;
}

bool control_optimizer_enabled(struct mu_span config)
{
	MU_AUTO_ARENA a = {0};
	const Muster__ConfigProto *c =
	    control_unpack(&a, &muster__config_proto__descriptor, config, NULL);
	const Muster__GraphOptions *o = c ? c->graph_options : NULL;

	return !o || ((!o->optimizer_options || o->optimizer_options->opt_level >= 0) &&
		      (!o->rewrite_options || !o->rewrite_options->disable_meta_optimizer));
}
