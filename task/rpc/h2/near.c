/* SPDX-License-Identifier: Apache-2.0 */
/* Large messages between two tasks of one host, each with a processor of its own.
 *
 * What is sent there is copied into the system's memory on one processor and out of it on another,
 * so it counts whether the second finds it in a cache: the sender may be ahead by a part of that
 * only, instead of by the megabytes that a line between hosts needs.  And the bytes keep coming: a
 * reader who sleeps in between is woken some seventy times for 100 MB, which takes as long as a
 * third of the copying.  So it looks for the next piece a moment before it sleeps. */
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "task/rpc/h2/conn.h"

enum {
	AHEAD = 512 << 10, /* the system doubles it; from 256 to 512 KiB it is the same */
	LOOK_US = 200,
};

/* Whether both ends have one address, which only a connection within a host has. */
static bool within_host(int fd)
{
	struct sockaddr_storage a[2];
	struct sockaddr *own = (struct sockaddr *)&a[0], *other = (struct sockaddr *)&a[1];
	socklen_t len[2] = {sizeof(a[0]), sizeof(a[1])};

	if (getsockname(fd, own, &len[0]) || getpeername(fd, other, &len[1]) ||
	    own->sa_family != other->sa_family)
		return false;
	if (own->sa_family == AF_INET)
		return ((struct sockaddr_in *)own)->sin_addr.s_addr ==
		       ((struct sockaddr_in *)other)->sin_addr.s_addr;
	return own->sa_family == AF_INET6 &&
	       IN6_ARE_ADDR_EQUAL(&((struct sockaddr_in6 *)own)->sin6_addr,
				  &((struct sockaddr_in6 *)other)->sin6_addr);
}

void h2_near_tune(struct h2_conn *c)
{
	int ahead = AHEAD;

	c->near = !c->tls && within_host(c->fd);
	if (c->near)
		setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &ahead, sizeof(ahead));
}

/* What is queued here goes first: the other end may wait for it. */
static bool nothing_to_send(struct h2_conn *c)
{
	bool nothing;

	pthread_mutex_lock(&c->lock);
	nothing = !h2_out_left(c);
	pthread_mutex_unlock(&c->lock);
	return nothing;
}

bool h2_near_look(struct h2_conn *c)
{
	int64_t end;
	int there;

	if (!c->near || !c->in_data || c->data_left < H2_LARGE || !nothing_to_send(c))
		return false;
	end = mu_clock_us() + LOOK_US;
	do {
		if (ioctl(c->fd, FIONREAD, &there))
			return false;
		if (there >= H2_PIECE)
			return true;
		sched_yield(); /* who has something to do goes first */
	} while (mu_clock_us() < end);
	return false;
}
