/* SPDX-License-Identifier: Apache-2.0 */
/* plan_print, and the objects of its actions as this program would send them. */
#include "operator/controller/dry_run.h"

#include "operator/controller/render.h"
#include "operator/plan/plan_print.h"

enum { FILE_LIMIT = 4 << 20 };

static void print_object(void *out, const struct job_spec *spec, const struct plan_action *a)
{
	cJSON *object = render_action(spec, a, "muster-system", NULL);
	char *text = object ? cJSON_Print(object) : NULL;

	if (text)
		mu_buf_printf(out, "---\n%s\n", text);
	free(text);
	cJSON_Delete(object);
}

int dry_run(struct mu_buf *out, const char *file, const char *image, bool objects,
	    struct mu_err *err)
{
	MU_AUTO(job_spec_free) struct job_spec *spec = NULL;
	MU_AUTO_BUF text = {0};
	int rc = mu_buf_read_file(&text, file, FILE_LIMIT, err);

	if (rc == 0)
		rc = job_spec_parse(&spec, mu_buf_span(&text), file, err);
	if (rc == 0)
		plan_print(out, spec, &(struct plan_options){.image = image},
			   objects ? print_object : NULL, out);
	return rc;
}
