/* SPDX-License-Identifier: Apache-2.0 */
/* Which connections stay within the host, and when their reader looks for more. */
#include "tests/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "task/rpc/h2/conn.h"
#include "task/rpc/h2/loop.h"

struct pair {
	int other;
	struct h2_conn *c;
};

static const struct h2_side side = {.client = true};

static int listener(int family, struct sockaddr_storage *at, socklen_t *len)
{
	struct sockaddr_in *four = (struct sockaddr_in *)at;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)at;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(at, 0, sizeof(*at));
	*len = family == AF_INET ? sizeof(*four) : sizeof(*six);
	at->ss_family = (sa_family_t)family;
	if (family == AF_INET)
		four->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		six->sin6_addr = in6addr_loopback;
	if (fd < 0 || bind(fd, (struct sockaddr *)at, *len) || listen(fd, 1) ||
	    getsockname(fd, (struct sockaddr *)at, len)) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

/* A connection from `from` (NULL: as the system likes) to a listener; false: no such family here.
 */
static bool connected(struct pair *p, int family, const char *from)
{
	struct sockaddr_storage at;
	struct sockaddr_in own = {.sin_family = AF_INET};
	socklen_t len;
	int l = listener(family, &at, &len), fd;

	if (l < 0)
		return false;
	fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (from) {
		assert_int_equal(inet_pton(AF_INET, from, &own.sin_addr), 1);
		assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	}
	assert_int_equal(connect(fd, (struct sockaddr *)&at, len), 0);
	p->other = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	assert_true(p->other >= 0);
	close(l);
	p->c = h2_conn_new(&side, NULL, fd);
	h2_near_tune(p->c);
	return true;
}

static void put(struct pair *p)
{
	close(p->other);
	h2_conn_unref(p->c);
}

static void near__when_both_ends_have_one_address__is_known(void **state)
{
	struct pair p;

	assert_true(connected(&p, AF_INET, NULL));
	assert_true(p.c->near);
	put(&p);
	if (connected(&p, AF_INET6, NULL)) {
		assert_true(p.c->near);
		put(&p);
	}
}

static void near__when_the_ends_have_two_addresses__is_left_alone(void **state)
{
	struct pair p;
	int fds[2];

	assert_true(connected(&p, AF_INET, "127.0.0.2"));
	assert_false(p.c->near);
	put(&p);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	p = (struct pair){fds[1], h2_conn_new(&side, NULL, fds[0])};
	h2_near_tune(p.c);
	assert_false(p.c->near);
	put(&p);
}

/* In the middle of a large frame.  A unix socket stands for one within the host: it holds a piece
 * on every system. */
static void in_a_frame(struct pair *p)
{
	int fds[2], room = 2 * H2_PIECE;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	*p = (struct pair){fds[1], h2_conn_new(&side, NULL, fds[0])};
	p->c->near = true;
	p->c->in_data = true;
	p->c->data_left = H2_LARGE;
}

static void send_bytes(struct pair *p, size_t n)
{
	char *bytes = mu_xcalloc(1, n);

	assert_int_equal(send(p->other, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL), n);
	free(bytes);
}

static void look__when_a_piece_is_there__is_worth_a_read(void **state)
{
	struct pair p;

	in_a_frame(&p);
	send_bytes(&p, H2_PIECE);
	assert_true(h2_near_look(p.c));
	put(&p);
}

static void look__when_less_comes__ends(void **state)
{
	struct pair p;

	in_a_frame(&p);
	send_bytes(&p, H2_PIECE - 1);
	assert_false(h2_near_look(p.c));
	put(&p);
}

static void look__when_there_is_no_reason__is_left_out(void **state)
{
	struct pair p;

	in_a_frame(&p);
	send_bytes(&p, H2_PIECE);
	p.c->in_data = false;
	assert_false(h2_near_look(p.c)); /* between frames */
	p.c->in_data = true;
	p.c->data_left = H2_LARGE - 1;
	assert_false(h2_near_look(p.c)); /* the end of one */
	p.c->data_left = H2_LARGE;
	p.c->near = false;
	assert_false(h2_near_look(p.c)); /* from another host */
	p.c->near = true;
	assert_true(h2_near_look(p.c));
	pthread_mutex_lock(&p.c->lock);
	h2_out_number(p.c, H2_WINDOW_UPDATE, 0, 1);
	pthread_mutex_unlock(&p.c->lock);
	assert_false(h2_near_look(p.c)); /* the sender may wait for what is queued */
	put(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(near__when_both_ends_have_one_address__is_known),
	    cmocka_unit_test(near__when_the_ends_have_two_addresses__is_left_alone),
	    cmocka_unit_test(look__when_a_piece_is_there__is_worth_a_read),
	    cmocka_unit_test(look__when_less_comes__ends),
	    cmocka_unit_test(look__when_there_is_no_reason__is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
