/* SPDX-License-Identifier: Apache-2.0 */
/* Objects, watches and lists in protobuf, whole and broken, wherever the network cuts them. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/pb.h"
#include "lib/kube/kube_pb.h"

static const struct kube_fields inner[] = {
    {"name", NULL, 1, KUBE_TEXT}, {"code", NULL, 2, KUBE_NUMBER}, {0}};
static const struct kube_fields gpu[] = {{.name = "gpu"}, {0}};
static const struct kube_fields wanted[] = {
    {"name", NULL, 1, KUBE_TEXT},    {"n", NULL, 2, KUBE_NUMBER},    {"yes", NULL, 3, KUBE_TRUTH},
    {"at", NULL, 4, KUBE_TIME},      {"one", inner, 5, KUBE_OBJECT}, {"many", inner, 6, KUBE_LIST},
    {"labels", NULL, 7, KUBE_TEXTS}, {"room", gpu, 8, KUBE_AMOUNTS}, {0}};

static const char want[] = "{\"name\":\"p\",\"n\":-7,\"yes\":true,\"at\":1700000000,"
			   "\"one\":{\"name\":\"q\"},\"many\":[{\"code\":3},{}],"
			   "\"labels\":{\"a\":\"b\",\"e\":\"\"},\"room\":{\"gpu\":\"8\"}}";

static void put_pair(struct mu_buf *b, uint32_t number, const char *key, const char *value)
{
	size_t at = mu_pb_begin(b, number);

	mu_pb_put_str(b, 1, key);
	mu_pb_put_str(b, 2, value);
	mu_pb_end(b, at);
}

/* All forms, and between them what nobody asked for. */
static void put_message(struct mu_buf *b)
{
	size_t at;

	mu_pb_put_str(b, 1, "p");
	mu_pb_put_str(b, 9, "nobody's");
	mu_pb_put_int(b, 2, -7);
	mu_pb_put_fixed64(b, 10, 5);
	mu_pb_put_int(b, 3, 1);
	at = mu_pb_begin(b, 4);
	mu_pb_put_int(b, 1, 1700000000);
	mu_pb_put_int(b, 2, 0);
	mu_pb_end(b, at);
	at = mu_pb_begin(b, 5);
	mu_pb_put_str(b, 1, "q");
	mu_pb_put_fixed32(b, 11, 5);
	mu_pb_end(b, at);
	at = mu_pb_begin(b, 6);
	mu_pb_put_str(b, 1, ""); /* as the server writes what is not set */
	mu_pb_put_int(b, 2, 3);
	mu_pb_end(b, at);
	put_pair(b, 7, "a", "b");
	at = mu_pb_begin(b, 6);
	mu_pb_end(b, at);
	put_pair(b, 7, "e", "");
	put_pair(b, 8, "cpu",
		 "\n\1"
		 "4");
	put_pair(b, 8, "gpu",
		 "\n\1"
		 "8");
}

/* What is around a message of that kind; returns where it begins, for mu_pb_end. */
static size_t begin_around(struct mu_buf *b, const char *kind)
{
	mu_buf_put(b, "k8s", 4);
	put_pair(b, 1, "v1", kind);
	return mu_pb_begin(b, 2);
}

static void put_object(struct mu_buf *b, const char *encoding)
{
	size_t at = begin_around(b, "Pod");

	put_message(b);
	mu_pb_end(b, at);
	mu_pb_put_str(b, 3, encoding);
}

static void expect(cJSON *o, const char *text)
{
	MU_AUTO_FREE char *got = o ? cJSON_PrintUnformatted(o) : NULL;

	cJSON_Delete(o);
	if (text)
		assert_string_equal(got, text);
	else
		assert_null(got);
}

static void object__comes_with_what_is_wanted_and_nothing_else(void **state)
{
	MU_AUTO_BUF b = {0};

	put_object(&b, "");
	expect(kube_pb(mu_buf_span(&b), wanted), want);
	expect(kube_pb_message(MU_SPAN(""), wanted), "{}");
	expect(kube_pb(mu_buf_span(&b), NULL), NULL);
	expect(kube_pb(mu_buf_span(&b), gpu), NULL); /* fields without numbers */
}

static void object__cut_anywhere__is_never_read_beyond_its_end(void **state)
{
	MU_AUTO_BUF b = {0};
	size_t whole;

	put_object(&b, "");
	whole = b.len - 2; /* the encoding, which may be missing */
	for (size_t n = 0; n < whole; n++) {
		char *cut = malloc(n + 1); /* its own, so that a sanitizer sees each step over */

		memcpy(cut, b.data, n);
		cJSON_Delete(kube_pb_message((struct mu_span){cut, n}, wanted));
		cJSON_Delete(kube_pb_event((struct mu_span){cut, n}, wanted));
		if (n > 4 + 2 + 9) /* there is a message, and it is cut */
			expect(kube_pb((struct mu_span){cut, n}, wanted), NULL);
		free(cut);
	}
	expect(kube_pb((struct mu_span){b.data, whole}, wanted), want);
}

static void object__that_is_broken__is_none(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} broken[] = {
	    {"k8s", 3},
	    {"k8s\1", 4},               /* another encoding of what is around */
	    {"K8s\0", 4},               /* */
	    {"k8s\0\22\2\10\1", 8},     /* a number for a text */
	    {"k8s\0\22\3\22\1x", 9},    /* a text for a number */
	    {"k8s\0\22\3\52\1\200", 9}, /* an object that ends within a number */
	    {"k8s\0\22\4\72\2\12\5", 10},
	    {"k8s\0\22\5\25\0\0\0\0", 11}, /* four bytes for a number */
	    {"k8s\0\22\2\13\14", 8},       /* a group */
	    {"k8s\0\22\2\2\0", 8},         /* field 0 */
	};
	MU_AUTO_BUF b = {0};

	for (unsigned i = 0; i < MU_COUNT(broken); i++)
		expect(kube_pb((struct mu_span){broken[i].text, broken[i].len}, wanted), NULL);
	put_object(&b, "gzip");
	expect(kube_pb(mu_buf_span(&b), wanted), NULL);
}

static void text__that_is_no_utf8__can_be_said_in_json_all_the_same(void **state)
{
	static const struct {
		const char *in, *out;
	} texts[] = {
	    {"plain", "plain"},
	    {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"},
	    {"\xf4\x8f\xbf\xbf \xed\x9f\xbf", "\xf4\x8f\xbf\xbf \xed\x9f\xbf"},
	    {"cut \xe2\x82", "cut ??"},
	    {"\xff\x80", "??"},
	    {"\xc0\xaf \xc1\x81", "?? ??"},                /* longer than need be */
	    {"\xe0\x9f\xbf \xf0\x8f\xbf\xbf", "??? ????"}, /* likewise */
	    {"\xed\xa0\x80 \xf4\x90\x80\x80", "??? ????"}, /* half of a pair; beyond the last */
	    {"\xc3z \xe2\x82z \xf5\x80\x80\x80", "?z ??z ????"},
	};
	MU_AUTO_BUF b = {0};

	for (unsigned i = 0; i < MU_COUNT(texts); i++) {
		cJSON *o;

		mu_buf_clear(&b);
		mu_pb_put_str(&b, 1, texts[i].in);
		o = kube_pb_message(mu_buf_span(&b), inner);
		assert_string_equal(cJSON_GetObjectItem(o, "name")->valuestring, texts[i].out);
		cJSON_Delete(o);
	}
	expect(kube_pb_message((struct mu_span){"\n\3a\0b", 5}, inner), "{\"name\":\"a?b\"}");
}

/* ---- watches ---- */

static void put_frame(struct mu_buf *b, const char *type, struct mu_span object)
{
	MU_AUTO_BUF event = {0};
	size_t at;

	mu_pb_put_str(&event, 1, type);
	at = mu_pb_begin(&event, 2);
	mu_pb_put_bytes(&event, 1, object);
	mu_pb_end(&event, at);
	mu_buf_putc(b, 0);
	mu_buf_putc(b, 0);
	mu_buf_putc(b, (char)(event.len >> 8));
	mu_buf_putc(b, (char)event.len);
	mu_buf_put(b, event.data, event.len);
}

static int collect(void *arg, struct mu_span frame, struct mu_err *err)
{
	cJSON *event = kube_pb_event(frame, wanted);
	MU_AUTO_FREE char *text = event ? cJSON_PrintUnformatted(event) : NULL;

	cJSON_Delete(event);
	mu_buf_printf(arg, "<%s>", text ? text : "none");
	return 0;
}

/* How long the next piece is, of those that are left: short ones in every other round. */
static size_t piece_of(size_t left, int round, unsigned *seed)
{
	size_t n = 1 + (size_t)rand_r(seed) % (round % 2 ? 9 : 700);

	return n < left ? n : left;
}

static void watch__cut_anywhere__gives_its_events(void **state)
{
	MU_AUTO_BUF object = {0};
	MU_AUTO_BUF long_one = {0};
	MU_AUTO_BUF stream = {0};
	MU_AUTO_BUF expected = {0};
	unsigned seed = 5;

	put_object(&object, "");
	mu_buf_put(&long_one, object.data, object.len);
	for (int i = 0; i < 20; i++)
		mu_pb_put_str(&long_one, 77, "not wanted at all");
	put_frame(&stream, "ADDED", mu_buf_span(&object));
	mu_buf_put(&stream, "\0\0\0", 4); /* a frame with nothing in it */
	put_frame(&stream, "BOOKMARK", mu_buf_span(&long_one));
	put_frame(&stream, "ERROR",
		  (struct mu_span){"k8s\0\22\17\32\7too old\42\1r\60\232\3", 4 + 2 + 15});
	mu_buf_printf(&expected,
		      "<{\"type\":\"ADDED\",\"object\":%s}><none>"
		      "<{\"type\":\"BOOKMARK\",\"object\":%s}>"
		      "<{\"type\":\"ERROR\",\"object\":{\"message\":\"too old\",\"reason\":\"r\","
		      "\"code\":410}}>",
		      want, want);
	for (int round = 0; round < 500; round++) {
		MU_AUTO_BUF out = {0};
		struct kube_frames frames = {.frame = collect, .arg = &out};

		for (size_t at = 0, n; at < stream.len; at += n) {
			n = piece_of(stream.len - at, round, &seed);
			assert_int_equal(kube_frames_feed(&frames, stream.data + at, n, NULL), 0);
		}
		assert_int_equal(frames.rest.len, 0);
		assert_string_equal(out.data, expected.data);
		mu_buf_fini(&frames.rest);
	}
}

static void watch__with_an_event_of_any_size__is_refused_before_it_is_kept(void **state)
{
	struct kube_frames frames = {.frame = collect};
	struct mu_err err = {0};

	assert_int_equal(kube_frames_feed(&frames, "\xff\xff\xff\xff...", 7, &err),
			 -MU_RESOURCE_EXHAUSTED);
	mu_buf_fini(&frames.rest);
	frames.rest = (struct mu_buf){0};
	assert_int_equal(kube_frames_feed(&frames, "\1", 1, &err), 0);
	assert_int_equal(kube_frames_feed(&frames, "\0\0\0", 3, &err), -MU_RESOURCE_EXHAUSTED);
	mu_buf_fini(&frames.rest);
}

/* ---- lists ---- */

static int collect_item(void *arg, struct mu_span message, struct mu_err *err)
{
	mu_buf_printf(arg, "<%zu>", message.len);
	return 0;
}

static void put_list(struct mu_buf *b, int items)
{
	size_t list = begin_around(b, "PodList"), at = mu_pb_begin(b, 1);

	mu_pb_put_str(b, 1, "");
	mu_pb_put_str(b, 2, "77");
	mu_pb_put_str(b, 3, "token");
	mu_pb_put_int(b, 4, 12);
	mu_pb_end(b, at);
	mu_pb_put_int(b, 90, -1); /* of some later version */
	for (int i = 0; i < items; i++) {
		at = mu_pb_begin(b, 2);
		for (int k = 0; k < i * i; k++)
			mu_buf_putc(b, 'x');
		mu_pb_end(b, at);
	}
	mu_pb_end(b, list);
	mu_pb_put_str(b, 3, "");
	mu_pb_put_str(b, 4, "");
}

static void list__cut_anywhere__gives_its_items_and_where_it_goes_on(void **state)
{
	MU_AUTO_BUF list = {0};
	unsigned seed = 9;

	put_list(&list, 20);
	for (int round = 0; round < 500; round++) {
		MU_AUTO_BUF out = {0};
		struct kube_pb_items items = {.fn = collect_item, .arg = &out};

		for (size_t at = 0, n; at < list.len; at += n) {
			n = piece_of(list.len - at, round, &seed);
			assert_false(items.whole && at + n < list.len - 4);
			assert_int_equal(kube_pb_items_feed(&items, list.data + at, n, NULL), 0);
		}
		assert_true(items.whole);
		assert_string_equal(out.data, "<0><1><4><9><16><25><36><49><64><81><100><121><144>"
					      "<169><196><225><256><289><324><361>");
		expect(mu_steal(&items.around),
		       "{\"metadata\":{\"resourceVersion\":\"77\",\"continue\":\"token\"}}");
		kube_pb_items_fini(&items);
	}
}

static void list__that_is_cut_short_or_broken__is_never_whole(void **state)
{
	MU_AUTO_BUF list = {0};
	MU_AUTO_BUF out = {0};
	struct mu_err err = {0};

	put_list(&list, 5);
	for (size_t n = 1; n < list.len - 4; n++) {
		struct kube_pb_items items = {.fn = collect_item, .arg = &out};

		assert_int_equal(kube_pb_items_feed(&items, list.data, n, &err), 0);
		assert_false(items.whole);
		kube_pb_items_fini(&items);
	}
	/* each byte broken in turn: an error or another list, and never a step too far */
	for (size_t i = 0; i < list.len; i++)
		for (int flip = 1; flip < 256; flip *= 2) {
			struct kube_pb_items items = {.fn = collect_item, .arg = &out};

			list.data[i] ^= (char)flip;
			kube_pb_items_feed(&items, list.data, list.len, &err);
			list.data[i] ^= (char)flip;
			kube_pb_items_fini(&items);
			mu_buf_clear(&out);
		}
}

static void list__with_an_item_of_any_size__is_refused(void **state)
{
	/* a list of 2 GiB with one item of 1 GiB */
	static const char huge[] = "k8s\0\22\200\200\200\200\10\22\200\200\200\200\4";
	struct kube_pb_items items = {.fn = collect_item};
	struct mu_err err = {0};

	assert_int_equal(kube_pb_items_feed(&items, huge, sizeof(huge) - 1, &err),
			 -MU_RESOURCE_EXHAUSTED);
	kube_pb_items_fini(&items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(object__comes_with_what_is_wanted_and_nothing_else),
	    cmocka_unit_test(object__cut_anywhere__is_never_read_beyond_its_end),
	    cmocka_unit_test(object__that_is_broken__is_none),
	    cmocka_unit_test(text__that_is_no_utf8__can_be_said_in_json_all_the_same),
	    cmocka_unit_test(watch__cut_anywhere__gives_its_events),
	    cmocka_unit_test(watch__with_an_event_of_any_size__is_refused_before_it_is_kept),
	    cmocka_unit_test(list__cut_anywhere__gives_its_items_and_where_it_goes_on),
	    cmocka_unit_test(list__that_is_cut_short_or_broken__is_never_whole),
	    cmocka_unit_test(list__with_an_item_of_any_size__is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
