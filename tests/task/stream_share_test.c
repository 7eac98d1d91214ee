/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors exported to another task: the importer maps their memory, returns them, and keeps them
 * alive while it has references. */
#include <endian.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/tensor/arena.h"
#include "task/peer/stream_conn.h"
#include "tests/test.h"

enum { N = ARENA_MIN_BYTES }; /* floats */

struct pair {
	struct stream_conn *conn; /* of the importer */
	struct stream_exporter *exporter;
	struct stream_importer *importer;
	int peer_fd;
};

static struct pair pair_new(void)
{
	struct pair p;
	int fds[SHARE_FDS], ends[2];
	struct mu_err err;

	assert_ok(arena_start(&err), &err);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	p.conn = stream_conn_new(NULL, ends[0]);
	p.peer_fd = ends[1];
	p.exporter = exporter_new(fds);
	assert_non_null(p.exporter);
	fds[SHARE_FILE] = dup(fds[SHARE_FILE]);
	p.importer = importer_new(p.conn, stream_conn_return, fds, &err);
	assert_non_null(p.importer);
	p.conn->importer = p.importer;
	return p;
}

static struct mu_tensor floats(int64_t n, float first)
{
	struct mu_shape shape = mu_shape_vec(n);
	struct mu_tensor t;
	struct mu_err err;

	assert_ok(mu_tensor_new(&t, MU_FLOAT, &shape, &err), &err);
	for (int64_t i = 0; i < n; i++)
		MU_DATA(float, &t)[i] = first + (float)i;
	return t;
}

static struct mu_tensor export_and_map(struct pair *p, const struct mu_tensor *t)
{
	struct mu_tensor exported = mu_tensor_ref(t), mapped;
	struct shm_handle handle = exporter_add(p->exporter, &exported);
	struct mu_err err;

	assert_ok(importer_map(p->importer, &mapped, MU_FLOAT, &t->shape, &handle, &err), &err);
	return mapped;
}

static void blocks__are_reused_and_do_not_overlap(void **state)
{
	struct mu_err err;
	uint64_t at;
	char *a, *b, *c;
	size_t cached_before;

	assert_ok(arena_start(&err), &err);
	assert_null(arena_alloc(ARENA_MIN_BYTES - 1));
	for (size_t n = ARENA_MIN_BYTES; n < (size_t)1 << 20; n = n * 9 / 7) {
		a = arena_alloc(n);
		b = arena_alloc(n);
		assert_true(a && b && (a + n <= b || b + n <= a));
		assert_true(arena_offset(a, &at) && at % 4096 == 0);
		memset(a, 1, n);
		memset(b, 2, n);
		assert_int_equal(a[n - 1], 1);
		cached_before = arena_cached_bytes();
		arena_free(a, n);
		assert_true(arena_cached_bytes() >= cached_before + n);
		c = arena_alloc(n);
		assert_ptr_equal(a, c);
		arena_free(c, n);
		arena_free(b, n);
	}
	assert_false(arena_offset(&at, &at));
}

static void exported_tensor__is_mapped_in_place_and_returned(void **state)
{
	struct pair p = pair_new();
	MU_AUTO_TENSOR t = floats(N, 5);
	struct mu_tensor mapped = export_and_map(&p, &t);
	struct mu_err err;

	assert_true(exporter_accepts(&t));
	assert_true(mu_tensor_has_remote_refs(&t) && !mu_tensor_is_own(&t) &&
		    !mu_tensor_is_own(&mapped));
	assert_true(mapped.data != t.data);
	assert_memory_equal(mapped.data, t.data, N * sizeof(float));
	mu_tensor_unref(&mapped);
	assert_int_equal(p.conn->returns.len, sizeof(uint64_t));
	assert_ok(exporter_returned(p.exporter, mu_buf_span(&p.conn->returns), &err), &err);
	assert_int_equal(exporter_count(p.exporter), 0);
	assert_true(mu_tensor_is_own(&t) && !mu_tensor_has_remote_refs(&t));
	stream_conn_unref(p.conn);
	exporter_free(p.exporter);
	close(p.peer_fd);
}

static void queued_tensor__has_a_remote_reference_until_its_frame_is_freed(void **state)
{
	struct pair p = pair_new();
	struct mu_tensor t = floats(N << 8, 1), sent = mu_tensor_ref(&t);
	MU_AUTO_BUF head = {0};
	struct mu_err err;

	p.conn->polls_out = true; /* as while the socket is full */
	mu_buf_puts(&head, "head");
	assert_ok(stream_conn_send(p.conn, &head, &sent, mu_tensor_bytes(&t), &err), &err);
	assert_true(mu_tensor_has_remote_refs(&t));
	stream_conn_shutdown(p.conn);
	assert_false(mu_tensor_has_remote_refs(&t));
	mu_tensor_unref(&t);
	stream_conn_unref(p.conn);
	exporter_free(p.exporter);
	close(p.peer_fd);
}

static void imported_tensor__outlives_its_connection(void **state)
{
	struct pair p = pair_new();
	MU_AUTO_TENSOR t = floats(N, 1);
	struct mu_tensor mapped = export_and_map(&p, &t);
	int fds[SHARE_FDS];

	stream_conn_unref(p.conn);
	exporter_free(p.exporter);
	assert_true(mu_tensor_has_remote_refs(&t));
	assert_memory_equal(mapped.data, t.data, N * sizeof(float));
	mu_tensor_unref(&mapped); /* the last reference: closes the liveness pipe */
	p.exporter = exporter_new(fds);
	assert_true(mu_tensor_is_own(&t));
	exporter_free(p.exporter);
	close(fds[SHARE_LIVENESS]);
	close(p.peer_fd);
}

static void delayed_frame__when_its_tensor_changes__has_the_value_of_the_send(void **state)
{
	struct pair p = pair_new();
	struct streams owner = {0};
	MU_AUTO_TENSOR t = floats(2, 5);
	struct mu_tensor sent = mu_tensor_ref(&t);
	MU_AUTO_BUF frame = {0};
	float head = 1, got[3];
	struct mu_err err;

	mu_buf_put(&frame, &head, sizeof head);
	p.conn->owner = &owner;
	p.conn->polls_out = true; /* as while the socket is full */
	assert_ok(stream_conn_send(p.conn, &frame, &sent, 2 * sizeof(float), &err), &err);
	MU_DATA(float, &t)[0] = 7;
	p.conn->polls_out = false;
	stream_conn_flush(p.conn);
	assert_int_equal(read(p.peer_fd, got, sizeof got), sizeof got);
	assert_true(got[0] == 1 && got[1] == 5 && got[2] == 6);
	exporter_free(p.exporter);
	stream_conn_unref(p.conn);
	close(p.peer_fd);
}

static void invalid_handles__are_rejected(void **state)
{
	struct pair p = pair_new();
	struct mu_shape shape = mu_shape_vec(1000);
	struct shm_handle handle = {1, 32};
	struct mu_tensor t;
	uint64_t id = htole64(77);
	struct mu_err err;

	assert_fails(exporter_returned(p.exporter, (struct mu_span){(char *)&id, 8}, &err), &err,
		     MU_INVALID_ARGUMENT, "but not exported");
	assert_fails(importer_map(p.importer, &t, MU_FLOAT, &shape, &handle, &err), &err,
		     MU_INVALID_ARGUMENT, "outside of the shared memory");
	handle.offset = UINT64_MAX - 63;
	assert_fails(importer_map(p.importer, &t, MU_FLOAT, &shape, &handle, &err), &err,
		     MU_INVALID_ARGUMENT, "outside of the shared memory");
	handle.offset = 0; /* integer types are never exported: indices must not change */
	assert_fails(importer_map(p.importer, &t, MU_INT64, &shape, &handle, &err), &err,
		     MU_INVALID_ARGUMENT, "outside of the shared memory");
	stream_conn_unref(p.conn);
	exporter_free(p.exporter);
	close(p.peer_fd);
}

static void unsealed_file__is_rejected(void **state)
{
	struct stream_conn *c;
	int ends[2], liveness[2], fds[SHARE_FDS];
	struct mu_err err;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(pipe(liveness), 0);
	c = stream_conn_new(NULL, ends[0]);
	fds[SHARE_FILE] = memfd_create("test", MFD_ALLOW_SEALING);
	fds[SHARE_LIVENESS] = liveness[1];
	assert_int_equal(ftruncate(fds[SHARE_FILE], 4096), 0);
	assert_null(importer_new(c, stream_conn_return, fds, &err));
	assert_int_equal(fds[SHARE_FILE], -1);
	assert_int_equal(fds[SHARE_LIVENESS], -1);
	stream_conn_unref(c);
	close(ends[1]);
	close(liveness[0]);
}

static void descriptors__are_sent_with_bytes(void **state)
{
	int ends[2], liveness[2], got[SHARE_FDS] = {-1, -1};
	struct mu_err err;
	char text[8];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(pipe(liveness), 0);
	assert_ok(share_send(ends[0], MU_SPAN("hello"), liveness, &err), &err);
	assert_int_equal(share_recv(ends[1], text, sizeof(text), got), 5);
	assert_true(got[0] >= 0 && got[1] >= 0);
	assert_int_equal(write(got[1], "x", 1), 1);
	assert_int_equal(read(liveness[0], text, 1), 1);
	assert_ok(share_send(ends[0], MU_SPAN("more"), liveness, &err), &err);
	/* got is full, so share_recv() closes the descriptors */
	assert_int_equal(share_recv(ends[1], text, sizeof(text), got), 4);
	share_close(got);
	close(ends[0]);
	close(ends[1]);
	close(liveness[0]);
	close(liveness[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(blocks__are_reused_and_do_not_overlap),
	    cmocka_unit_test(exported_tensor__is_mapped_in_place_and_returned),
	    cmocka_unit_test(queued_tensor__has_a_remote_reference_until_its_frame_is_freed),
	    cmocka_unit_test(imported_tensor__outlives_its_connection),
	    cmocka_unit_test(delayed_frame__when_its_tensor_changes__has_the_value_of_the_send),
	    cmocka_unit_test(invalid_handles__are_rejected),
	    cmocka_unit_test(unsealed_file__is_rejected),
	    cmocka_unit_test(descriptors__are_sent_with_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
