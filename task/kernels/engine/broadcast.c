/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/engine/broadcast.h"

static int64_t dim_from_right(const struct mu_shape *s, int i)
{
	return i < s->rank ? s->dim[s->rank - 1 - i] : 1;
}

int broadcast_shape(const struct mu_shape *a, const struct mu_shape *b, struct mu_shape *out,
		    struct mu_err *err)
{
	int rank = a->rank > b->rank ? a->rank : b->rank;
	int64_t dims[MU_MAX_RANK];

	for (int i = 0; i < rank; i++) {
		int64_t x = dim_from_right(a, i), y = dim_from_right(b, i);
		if (x != y && x != 1 && y != 1)
			return mu_invalid(err, "Incompatible shapes: %s vs. %s", mu_shape_str(a),
					  mu_shape_str(b));
		dims[rank - 1 - i] = x == 1 ? y : x;
	}
	return mu_shape_set(out, rank, dims, err);
}

void broadcast_view(struct view *v, const struct mu_shape *from, const struct mu_shape *to)
{
	int64_t stride = 1;

	v->rank = to->rank;
	v->offset = 0;
	for (int i = 0; i < to->rank; i++) {
		int64_t d = dim_from_right(from, i);
		int at = to->rank - 1 - i;
		v->dim[at] = to->dim[at];
		v->stride[at] = d == 1 ? 0 : stride;
		stride *= d;
	}
}

/* Dimensions from the innermost to the outermost; neighbours are merged if the strides of both
 * operands allow it. */
struct coalesced_axes {
	int rank;
	int64_t dim[MU_MAX_RANK], a_stride[MU_MAX_RANK], b_stride[MU_MAX_RANK];
};

static void coalesce_axes(struct coalesced_axes *p, const struct mu_shape *shape,
			  const struct mu_shape *a, const struct mu_shape *b)
{
	struct view va, vb;

	broadcast_view(&va, a, shape);
	broadcast_view(&vb, b, shape);
	p->rank = 0;
	for (int i = shape->rank; i-- > 0;) {
		int64_t d = shape->dim[i];
		int last = p->rank - 1;
		if (d == 1)
			continue;
		if (last >= 0 && va.stride[i] == p->a_stride[last] * p->dim[last] &&
		    vb.stride[i] == p->b_stride[last] * p->dim[last]) {
			p->dim[last] *= d;
			continue;
		}
		p->dim[p->rank] = d;
		p->a_stride[p->rank] = va.stride[i];
		p->b_stride[p->rank++] = vb.stride[i];
	}
	if (!p->rank) {
		p->rank = 1;
		p->dim[0] = p->a_stride[0] = p->b_stride[0] = 1;
	}
}

int64_t broadcast_offset(const struct view *v, int64_t k)
{
	int64_t at = 0;

	for (int d = v->rank; d-- > 0; k /= v->dim[d])
		at += k % v->dim[d] * v->stride[d];
	return at;
}

void broadcast_run(binary_loop *loop, void *out, const struct mu_shape *shape, size_t out_size,
		   const void *a, const struct mu_shape *a_shape, const void *b,
		   const struct mu_shape *b_shape, size_t in_size)
{
	struct coalesced_axes p;
	int64_t at[MU_MAX_RANK] = {0};

	if (!shape->count)
		return;
	coalesce_axes(&p, shape, a_shape, b_shape);
	char *o = out;
	const char *x = a, *y = b;
	enum binary_form form = p.a_stride[0] == p.b_stride[0] ? BOTH_RUN
				: p.a_stride[0] == 0           ? LEFT_SCALAR
							       : RIGHT_SCALAR;
	for (;;) {
		loop(o, x, y, p.dim[0], form);
		o += (size_t)p.dim[0] * out_size;
		int d = 1;
		for (; d < p.rank; d++) {
			x += p.a_stride[d] * (int64_t)in_size;
			y += p.b_stride[d] * (int64_t)in_size;
			if (++at[d] < p.dim[d])
				break;
			x -= p.a_stride[d] * p.dim[d] * (int64_t)in_size;
			y -= p.b_stride[d] * p.dim[d] * (int64_t)in_size;
			at[d] = 0;
		}
		if (d >= p.rank)
			return;
	}
}
