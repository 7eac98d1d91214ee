/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a kubeconfig, alone and merged with itself, and the proxy that it names. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/kube/kube_config.h"
#include "lib/kube/kube_tunnel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[64], *twice[2] = {path, path};
	struct mu_err err;

	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, data, size) == (ssize_t)size)
		for (int n = 1; n <= 2; n++) {
			struct kube_config c = {0};
			struct kube_tunnel t;

			if (kube_config_parse(&c, twice, n, NULL, &err) < 0)
				continue;
			if (c.proxy_url && kube_tunnel_parse(&t, c.proxy_url, &err) == 0)
				kube_tunnel_fini(&t);
			kube_config_fini(&c);
		}
	close(fd);
	return 0;
}
