/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of tensors that live as long as their step. The gradient of a loop reads the values that
 * the forward loop pushed. */
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/move.h"
#include "task/kernels/state/handles.h"

enum { MAX_DEPTH = 1 << 24 };

struct stack {
	struct resource base;
	pthread_mutex_t lock;
	enum mu_dtype dtype;
	int64_t max, n, cap;
	struct mu_tensor *items;
};

static void stack_free(struct resource *r)
{
	struct stack *s = MU_CONTAINER(r, struct stack, base);

	while (s->n)
		mu_tensor_unref(&s->items[--s->n]);
	free(s->items);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static const struct resource_type stack_type = {.name = "Stack", .free = stack_free};

static struct resource *stack_create(void *arg, struct mu_err *err)
{
	struct stack *s = MU_NEW(struct stack);

	*s = *(struct stack *)arg;
	resource_init(&s->base, &stack_type);
	pthread_mutex_init(&s->lock, NULL);
	return &s->base;
}

static int stack_make(struct kernel_call *c, struct mu_err *err)
{
	static _Atomic unsigned long long next_id;
	const char *container = c->step ? step_own_container(c->step) : "";
	struct stack spec = {.dtype = args_attr_type(c->node, "elem_type", MU_FLOAT)};
	struct resource *r;

	spec.max = -1; /* the op Stack has no limit */
	if (c->n_in)
		MU_RETURN_IF_ERROR(args_int(c, 0, &spec.max, err));
	MU_AUTO_FREE char *name =
	    mu_xasprintf("%s_%llu", c->node->name, atomic_fetch_add(&next_id, 1));
	MU_RETURN_IF_ERROR(resources_find_or_create(c->runtime->resources, container, name,
						    &stack_type, stack_create, &spec, &r, err));
	resource_unref(r);
	return handle_output(c, container, name, &stack_type, err);
}

static int push_one(struct stack *s, const struct mu_tensor *t, struct mu_err *err)
{
	if (t->dtype != s->dtype)
		return mu_invalid(err, "Must have dtypes consistent: %s, %s",
				  mu_dtype_name(s->dtype), mu_dtype_name(t->dtype));
	if ((s->max >= 0 && s->n >= s->max) || s->n >= MAX_DEPTH)
		return mu_invalid(err, "Stack[%s] overflowed its max_size (%lld)", s->base.name,
				  (long long)(s->max >= 0 ? s->max : MAX_DEPTH));
	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 8;
		s->items = mu_xrealloc(s->items, (size_t)s->cap * sizeof *s->items);
	}
	s->items[s->n++] = mu_tensor_ref(t);
	return 0;
}

static int stack_push(struct kernel_call *c, struct mu_err *err)
{
	struct resource *r;
	int rc;

	MU_RETURN_IF_ERROR(handle_find(c, 0, &stack_type, &r, err));
	struct stack *s = MU_CONTAINER(r, struct stack, base);
	pthread_mutex_lock(&s->lock);
	rc = push_one(s, kernel_in(c, 1), err);
	pthread_mutex_unlock(&s->lock);
	resource_unref(r);
	if (!rc)
		kernel_out_take(c, 0, mu_tensor_ref(kernel_in(c, 1)));
	return rc;
}

static int stack_pop(struct kernel_call *c, struct mu_err *err)
{
	struct mu_tensor t = {0}, result = {0};
	struct resource *r;
	int rc = 0;

	MU_RETURN_IF_ERROR(handle_find(c, 0, &stack_type, &r, err));
	struct stack *s = MU_CONTAINER(r, struct stack, base);
	pthread_mutex_lock(&s->lock);
	if (s->n)
		t = s->items[--s->n];
	pthread_mutex_unlock(&s->lock);
	if (mu_tensor_is_set(&t))
		rc = move_to_device(c, &t, &result, err);
	else
		rc = mu_invalid(err, "Stack[%s] is empty when calling Pop().", s->base.name);
	if (!rc)
		kernel_out_take(c, 0, result);
	mu_tensor_unref(&t);
	resource_unref(r);
	return rc;
}

static int close_stack(struct kernel_call *c, struct mu_err *err)
{
	return handle_remove(c, &stack_type, err);
}

static const struct kernel rows[] = {
    {"Stack StackV2", .run = stack_make},
    {"StackPush StackPushV2", .run = stack_push},
    {"StackPop StackPopV2", .run = stack_pop},
    {"StackClose StackCloseV2", .run = close_stack},
};
KERNEL_TABLE(control_stack, rows)
