/* SPDX-License-Identifier: Apache-2.0 */
/* sent_forms KUBECONFIG RESOURCE=FILE...: what a real API server makes of an object that it gets as
 * protobuf is what it makes of the same as JSON.
 *
 * A file's object has every member that can be sent so, which is seen to; each is created twice,
 * with dryRun, and the answers must be the same. */
#include <stdio.h>

#include "lib/kube/kube_client.h"
#include "lib/kube/kube_pb.h"
#include "operator/control/render.h"

enum { ROWS_MAX = 512 };
static const struct kube_fields *said[ROWS_MAX];
static int n_said, failed;

static void fail_with(const char *what, const char *why)
{
	fprintf(stderr, "sent_forms: %s: %s\n", what, why);
	failed++;
}

static void say(const struct kube_fields *row)
{
	if (n_said < ROWS_MAX)
		said[n_said++] = row;
}

static bool is_said(const struct kube_fields *row)
{
	for (int i = 0; i < n_said; i++)
		if (said[i] == row)
			return true;
	return false;
}

/* Notes the rows whose members the object has. */
static void look_for(const cJSON *object, const struct kube_fields *fields)
{
	for (; fields->name; fields++) {
		const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, fields->name), *item;

		if (fields->form == KUBE_WITHIN)
			look_for(object, fields->below);
		else if (value)
			say(fields);
		if (value && fields->form == KUBE_OBJECT)
			look_for(value, fields->below);
		if (fields->form == KUBE_LIST)
			cJSON_ArrayForEach(item, value) look_for(item, fields->below);
	}
}

static void all_are_said(const struct kube_fields *fields)
{
	for (; fields->name; fields++) {
		bool deep = fields->form == KUBE_OBJECT || fields->form == KUBE_LIST ||
			    fields->form == KUBE_WITHIN;

		if (fields->form != KUBE_WITHIN && !is_said(fields))
			fail_with(fields->name, "no object has it, so its number is not proven");
		if (deep)
			all_are_said(fields->below);
	}
}

/* The object as it would be stored, as text, without what is another one each time. */
static char *made(struct kube_client *c, const char *resource, struct mu_span body,
		  const char *type)
{
	MU_AUTO_FREE char *path =
	    mu_xasprintf("/api/v1/namespaces/default/%s?dryRun=All", resource);
	struct kube_request rq = {
	    .method = "POST", .path = path, .content_type = type, .body = body};
	struct mu_err err = {0};
	cJSON *out = NULL, *metadata;
	char *text;

	if (kube_call(c, &rq, &out, &err) < 0) {
		fail_with(type ? "protobuf" : "JSON", err.msg);
		return NULL;
	}
	metadata = cJSON_GetObjectItem(out, "metadata");
	cJSON_DeleteItemFromObject(metadata, "uid");
	cJSON_DeleteItemFromObject(metadata, "creationTimestamp");
	cJSON_DeleteItemFromObject(
	    cJSON_GetArrayItem(cJSON_GetObjectItem(metadata, "managedFields"), 0), "time");
	text = cJSON_PrintUnformatted(out);
	cJSON_Delete(out);
	return text;
}

static void compare(struct kube_client *c, const char *resource, const char *file)
{
	const struct kube_fields *fields = render_fields(resource);
	MU_AUTO_BUF json = {0};
	MU_AUTO_BUF protobuf = {0};
	MU_AUTO_FREE char *a = NULL;
	MU_AUTO_FREE char *b = NULL;
	cJSON *object;

	if (!fields || mu_buf_read_file(&json, file, 1 << 20, NULL) < 0 ||
	    !(object = cJSON_ParseWithLength(json.data, json.len))) {
		fail_with(file, "cannot be read");
		return;
	}
	look_for(object, fields);
	all_are_said(fields);
	if (!kube_pb_write(&protobuf, object, fields))
		fail_with(file, "cannot be said in protobuf");
	cJSON_Delete(object);
	a = made(c, resource, mu_buf_span(&json), NULL);
	b = made(c, resource, mu_buf_span(&protobuf), kube_pb_type);
	if (a && b && strcmp(a, b) != 0) {
		fail_with(file, "JSON and protobuf differ");
		fprintf(stderr, "%s\n%s\n", a, b);
	}
	printf("sent_forms: %s: %zu bytes of JSON, %zu of protobuf\n", resource, json.len,
	       protobuf.len);
}

int main(int argc, char **argv)
{
	struct kube_config config = {0};
	struct kube_client *c;
	struct mu_err err = {0};

	if (argc < 2 || kube_config_load(&config, argv[1], NULL, &err) < 0 ||
	    kube_client_new(&c, &config, &err) < 0) {
		fprintf(stderr, "sent_forms: %s\n", argc < 2 ? "which kubeconfig?" : err.msg);
		return 1;
	}
	for (int i = 2; i < argc; i++) {
		char *file = strchr(argv[i], '=');

		if (file)
			*file++ = 0;
		compare(c, argv[i], file ? file : "");
	}
	kube_client_free(c);
	return failed != 0;
}
