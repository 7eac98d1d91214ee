/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as a kubeconfig, alone and merged with itself, and its server addresses; and as
 * a URL. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/kube/kube_server.h"
#include "lib/net/http_url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_url(const uint8_t *data, size_t size)
{
	MU_AUTO_FREE char *text = mu_xstrndup((const char *)data, size);
	struct mu_http_url url;

	if (mu_http_url_parse(&url, text, NULL) < 0)
		return;
	mu_http_url_is_loopback(&url);
	mu_http_url_fini(&url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[64], *twice[2] = {path, path};
	struct mu_err err;

	read_url(data, size);
	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, data, size) == (ssize_t)size)
		for (int n = 1; n <= 2; n++) {
			struct kube_config c = {0};
			struct kube_server server;

			if (kube_config_parse(&c, twice, n, NULL, &err) < 0)
				continue;
			if (kube_server_init(&server, &c, &err) == 0)
				kube_server_fini(&server);
			kube_config_fini(&c);
		}
	close(fd);
	return 0;
}
