/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster specification: created from JSON, queried for its jobs and tasks, and written in three
 * formats.
 *
 *	cluster_spec
 */
#include <stdio.h>

#include "muster/server.h"

static const char text[] = "{\"ps\": [\"ps0.example.com:2222\", \"ps1.example.com:2222\"],"
			   " \"worker\": [\"worker0.example.com:2222\","
			   " \"worker1.example.com:2222\", \"worker2.example.com:2222\"]}";

static void print_cluster(const struct mu_cluster *c)
{
	const struct mu_cluster_job *workers = mu_cluster_job(c, "worker");
	MU_AUTO_BUF dict = {0};
	MU_AUTO_BUF def = {0};

	printf("jobs:");
	for (unsigned i = 0; i < c->n_jobs; i++)
		printf(" %s", c->jobs[i].name);
	printf("\nnum_tasks: %u\ntask_indices:", mu_cluster_num_tasks(c, "worker"));
	for (unsigned i = 0; i < workers->n_tasks; i++)
		printf(" %d", workers->tasks[i].index);
	printf("\ntask_address: %s\njob_tasks:", mu_cluster_address(c, "worker", 2, NULL));
	for (unsigned i = 0; i < workers->n_tasks; i++)
		printf(" %s", workers->tasks[i].address);
	mu_cluster_write_json(c, &dict);
	mu_cluster_write_def(c, &def);
	printf("\nas_dict: %.*s\nas_cluster_def: ", (int)dict.len, dict.data);
	for (size_t i = 0; i < def.len; i++)
		printf("%02x", (unsigned char)def.data[i]);
	putchar('\n');
}

int main(void)
{
	MU_AUTO_CLUSTER cluster = {0};
	struct mu_err err;

	if (mu_cluster_parse_json(&cluster, mu_span_of(text), &err)) {
		fprintf(stderr, "cluster_spec: %s\n", err.msg);
		return 1;
	}
	print_cluster(&cluster);
	/* The error of an unknown task lists the known ones. */
	if (!mu_cluster_address(&cluster, "worker", 7, &err))
		printf("worker 7: %s\n", err.msg);
	return 0;
}
