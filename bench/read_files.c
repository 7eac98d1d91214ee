/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one file of a data set and prints the elapsed and CPU seconds; read.py alternates it with
 * tf.data. The sum of the data is computed, so that the compiler cannot remove the reads. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "lib/base/clock.h"
#include "lib/io/csv.h"
#include "lib/io/idx.h"
#include "lib/io/tfrecord.h"

static int read_idx(const char *path, double *seen, struct mu_err *err)
{
	MU_AUTO_TENSOR t = {0};
	int rc = mu_idx_read(&t, path, err);

	if (!rc)
		*seen = (double)t.shape.dim[0];
	return rc;
}

static int read_csv(const char *path, double *seen, struct mu_err *err)
{
	MU_AUTO_TENSOR t = {0};
	int rc = mu_csv_read(&t, path, NULL, false, err);

	if (!rc)
		*seen = (double)t.shape.dim[0];
	return rc;
}

static int read_tfrecord(const char *path, double *seen, struct mu_err *err)
{
	MU_AUTO(mu_tfrecord_reader_free) struct mu_tfrecord_reader *r = NULL;
	struct mu_span record;
	int rc = mu_tfrecord_open(&r, path, err);

	if (rc)
		return rc;
	while ((rc = mu_tfrecord_next(r, &record, err)) > 0)
		*seen += 1;
	return rc;
}

static double processor(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*read)(const char *path, double *seen, struct mu_err *err);
	} kinds[] = {{"idx", read_idx}, {"csv", read_csv}, {"tfrecord", read_tfrecord}};
	double from, used, seen = 0;
	struct mu_err err;

	for (size_t i = 0; argc == 3 && i < MU_COUNT(kinds); i++) {
		if (strcmp(argv[1], kinds[i].name) != 0)
			continue;
		from = mu_clock();
		used = processor();
		if (kinds[i].read(argv[2], &seen, &err)) {
			fprintf(stderr, "%s\n", err.msg);
			return 1;
		}
		printf("%.6f %.6f %.0f\n", mu_clock() - from, processor() - used, seen);
		return 0;
	}
	fprintf(stderr, "read_files: expected idx|csv|tfrecord FILE\n");
	return 2;
}
