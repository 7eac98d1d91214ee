/* SPDX-License-Identifier: Apache-2.0 */
/* Any PNG: five kinds of colour, 1 to 16 bits, interlaced or not.
 *
 * A file is a signature and chunks.  What stands before the first IDAT says what the pixels are;
 * the IDATs together are one deflated run of rows, each behind the number of the filter that it
 * went through.  An interlaced picture is seven small ones, one behind the other.  How pixels
 * become other kinds of pixels follows libpng as TensorFlow calls it, also where that is odd: a
 * picture of fewer than 8 bits without alpha is given an alpha of its largest sample (3 of 2 bits),
 * not of 255. A chunk that may be left out is passed over when its checksum is wrong; any other is
 * an error. */
#include <math.h>
#include <zlib.h>

#include "lib/io/png.h"

enum { GREY = 0, RGB = 2, PALETTE = 3, GREY_ALPHA = 4, RGB_ALPHA = 6, COLOURED = 2, ALPHA = 4 };
enum { HEAD = 13, FRAME = 12 }; /* bytes of IHDR's data; of a chunk around its data */
/* A byte of deflate's becomes at most so many; sides, as TensorFlow bounds them. */
enum { MOST_INFLATED = 1032, MAX_SIDE = 1 << 27, MAX_PIXELS = 1 << 29 };

struct chunk {
	const char *type;
	struct mu_span data;
	bool sound; /* its checksum is right */
};

static uint32_t get32(const char *at)
{
	const unsigned char *p = (const unsigned char *)at;

	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool next_chunk(struct mu_span *rest, struct chunk *c)
{
	if (rest->len < FRAME || get32(rest->data) > rest->len - FRAME)
		return false;
	size_t n = get32(rest->data);
	c->type = rest->data + 4;
	c->data = (struct mu_span){rest->data + 8, n};
	c->sound =
	    get32(rest->data + 8 + n) == crc32(0, (const unsigned char *)c->type, (uInt)(n + 4));
	rest->data += n + FRAME;
	rest->len -= n + FRAME;
	return true;
}

static bool is(const struct chunk *c, const char *type)
{
	return memcmp(c->type, type, 4) == 0;
}

static bool may_be_left_out(const struct chunk *c)
{
	return c->type[0] & 0x20;
}

/* ---- what stands before the pixels ---- */

static unsigned samples(unsigned colour)
{
	static const unsigned char of[] = {1, 0, 3, 1, 2, 0, 4};

	return of[colour];
}

static int read_head(struct mu_png *p, const struct chunk *c, struct mu_err *err)
{
	/* bits allowed for each kind of colour, as a set */
	static const uint32_t bits[] = {
	    [GREY] = 1u << 1 | 1u << 2 | 1u << 4 | 1u << 8 | 1u << 16,
	    [RGB] = 1u << 8 | 1u << 16,
	    [PALETTE] = 1u << 1 | 1u << 2 | 1u << 4 | 1u << 8,
	    [GREY_ALPHA] = 1u << 8 | 1u << 16,
	    [RGB_ALPHA] = 1u << 8 | 1u << 16,
	};
	const unsigned char *h = (const unsigned char *)c->data.data;

	if (!is(c, "IHDR") || c->data.len != HEAD || !c->sound)
		return mu_fail(err, MU_INVALID_ARGUMENT, "Invalid PNG header");
	p->width = get32(c->data.data);
	p->height = get32(c->data.data + 4);
	p->bits = h[8];
	p->colour = h[9];
	p->interlaced = h[12];
	if (p->colour >= MU_COUNT(bits) || p->bits > 16 || !(bits[p->colour] >> p->bits & 1) ||
	    h[10] || h[11] || h[12] > 1)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Invalid PNG header: colour %u of %u bits, method %u, filter %u, "
			       "interlace %u",
			       p->colour, p->bits, h[10], h[11], h[12]);
	if (!p->width || !p->height || p->width >= MAX_SIDE || p->height >= MAX_SIDE ||
	    (uint64_t)p->width * p->height >= MAX_PIXELS)
		return mu_fail(err, MU_INVALID_ARGUMENT, "PNG size too large for int: %u by %u",
			       p->width, p->height);
	return 0;
}

static int read_palette(struct mu_png *p, struct mu_span data, struct mu_err *err)
{
	size_t most = (size_t)1 << p->bits;

	if (p->colour != PALETTE)
		return 0; /* a hint, for screens of 256 colours */
	if (!data.len || data.len % 3 || data.len > (size_t)3 * 256)
		return mu_fail(err, MU_INVALID_ARGUMENT, "Invalid PNG: a palette of %zu bytes",
			       data.len);
	p->colours = data.len / 3 < most ? (unsigned)(data.len / 3) : (unsigned)most;
	for (unsigned i = 0; i < p->colours; i++) {
		memcpy(p->palette[i], data.data + (size_t)3 * i, 3);
		p->palette[i][3] = 255;
	}
	return 0;
}

/* One colour that is clear, or how clear each of the palette is. */
static void read_clear(struct mu_png *p, struct mu_span data)
{
	const unsigned char *d = (const unsigned char *)data.data;

	if (p->colour == PALETTE ? !data.len || data.len > p->colours
				 : p->colour & ALPHA || data.len != 2 * samples(p->colour))
		return;
	p->has_clear = true;
	for (unsigned i = 0; p->colour == PALETTE && i < data.len; i++)
		p->palette[i][3] = d[i];
	for (unsigned i = 0; p->colour != PALETTE && i < samples(p->colour); i++)
		p->clear[i] = (uint16_t)(d[2 * i] << 8 | d[2 * i + 1]);
}

static int read_note(struct mu_png *p, const struct chunk *c, struct mu_err *err)
{
	if (is(c, "PLTE"))
		return read_palette(p, c->data, err);
	if (is(c, "tRNS"))
		read_clear(p, c->data);
	else if (is(c, "gAMA") && c->data.len == 4 && !p->gamma)
		p->gamma = get32(c->data.data);
	else if (is(c, "sRGB") && c->data.len == 1)
		p->gamma = 45455;
	else if (!may_be_left_out(c))
		return mu_fail(err, MU_INVALID_ARGUMENT, "Invalid PNG: chunk '%.4s' cannot be read",
			       c->type);
	return 0;
}

/* All chunks from the first with pixels on: they are sound, and there is an end. */
static int check_rest(struct mu_png *p, struct chunk *c, struct mu_span rest, struct mu_err *err)
{
	bool running = true;

	for (;;) {
		if (!c->sound && !may_be_left_out(c))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Invalid PNG: chunk '%.4s' is damaged", c->type);
		if (is(c, "IEND"))
			return 0;
		running &= is(c, "IDAT");
		if (running)
			p->packed += c->data.len;
		if (!next_chunk(&rest, c))
			return mu_fail(err, MU_INVALID_ARGUMENT, "Invalid PNG: it is cut short");
	}
}

int mu_png_open(struct mu_png *p, struct mu_span file, struct mu_err *err)
{
	static const char signature[8] = {'\x89', 'P', 'N', 'G', '\r', '\n', '\x1a', '\n'};
	struct chunk c;
	int rc;

	*p = (struct mu_png){0};
	if (file.len < sizeof signature || memcmp(file.data, signature, sizeof signature) != 0)
		return mu_fail(err, MU_INVALID_ARGUMENT, "this is no PNG");
	p->chunks = (struct mu_span){file.data + sizeof signature, file.len - sizeof signature};
	for (bool first = true;; first = false) {
		struct mu_span before = p->chunks;
		if (!next_chunk(&p->chunks, &c))
			return mu_fail(err, MU_INVALID_ARGUMENT, "Invalid PNG: it is cut short");
		if (is(&c, "IDAT") && !first) {
			struct mu_span rest = p->chunks;
			p->chunks = before;
			if (p->colour == PALETTE && !p->colours)
				return mu_fail(err, MU_INVALID_ARGUMENT,
					       "Invalid PNG: its palette is missing");
			return check_rest(p, &c, rest, err);
		}
		if (!first && !c.sound && may_be_left_out(&c))
			continue;
		if (!first && !c.sound)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Invalid PNG: chunk '%.4s' is damaged", c.type);
		if ((rc = first ? read_head(p, &c, err) : read_note(p, &c, err)))
			return rc;
	}
}

/* ---- rows ---- */

/* Where the small pictures of an interlaced one have their pixels: the first, and the step. */
static const struct pass {
	unsigned char x, y, dx, dy;
} passes[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
	      {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}},
  whole = {0, 0, 1, 1};

static size_t row_bytes(const struct mu_png *p, size_t width)
{
	return (width * samples(p->colour) * p->bits + 7) / 8;
}

static size_t along(uint32_t side, unsigned from, unsigned step)
{
	return side > from ? (side - from + step - 1) / step : 0;
}

static size_t pass_bytes(const struct mu_png *p, size_t width, size_t height)
{
	return width ? height * (row_bytes(p, width) + 1) : 0;
}

static unsigned char straight(unsigned a, unsigned b, unsigned c)
{
	int to_a = abs((int)b - (int)c), to_b = abs((int)a - (int)c);
	int to_c = abs((int)a + (int)b - 2 * (int)c);

	return (unsigned char)(to_a <= to_b && to_a <= to_c ? a : to_b <= to_c ? b : c);
}

/* Undoes a filter: `before` is the row above, or NULL; `step` the bytes from pixel to pixel. */
static bool unfilter(unsigned filter, unsigned char *row, const unsigned char *before, size_t n,
		     size_t step)
{
	for (size_t i = 0; i < n && filter; i++) {
		unsigned a = i >= step ? row[i - step] : 0, b = before ? before[i] : 0;
		unsigned c = before && i >= step ? before[i - step] : 0;
		const unsigned add[] = {0, a, b, (a + b) / 2, straight(a, b, c)};
		if (filter >= MU_COUNT(add))
			return false;
		row[i] = (unsigned char)(row[i] + add[filter]);
	}
	return true;
}

static int unfilter_all(const struct mu_png *p, unsigned char *raw, size_t width, size_t height,
			struct mu_err *err)
{
	size_t n = row_bytes(p, width), bits = samples(p->colour) * p->bits;
	const unsigned char *before = NULL;

	for (size_t y = 0; y < height; y++, raw += n + 1) {
		if (!unfilter(raw[0], raw + 1, before, n, bits < 8 ? 1 : bits / 8))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Invalid PNG data: row %zu has filter %u", y, raw[0]);
		before = raw + 1;
	}
	return 0;
}

/* Puts a pixel of a pass where it belongs: whole bytes, or the bits of one sample. */
static void put_pixel(unsigned char *to, size_t x, const unsigned char *from, size_t at,
		      unsigned bits)
{
	if (bits >= 8) {
		memcpy(to + x * (bits / 8), from + at * (bits / 8), bits / 8);
		return;
	}
	unsigned per = 8 / bits, mask = (1u << bits) - 1;
	unsigned v = from[at / per] >> (8 - bits - at % per * bits) & mask;
	to[x / per] |= (unsigned char)(v << (8 - bits - x % per * bits));
}

static int inflate_rows(const struct mu_png *p, unsigned char *raw, size_t n, struct mu_err *err)
{
	z_stream z = {.next_out = raw, .avail_out = (uInt)n};
	struct mu_span rest = p->chunks;
	struct chunk c;
	int state = Z_OK;

	if (inflateInit(&z) != Z_OK)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory to inflate a picture");
	while (state == Z_OK && z.avail_out && next_chunk(&rest, &c) && is(&c, "IDAT")) {
		z.next_in = (unsigned char *)(uintptr_t)c.data.data;
		z.avail_in = (uInt)c.data.len;
		while (state == Z_OK && z.avail_in && z.avail_out)
			state = inflate(&z, Z_NO_FLUSH);
	}
	inflateEnd(&z);
	return z.avail_out
		   ? mu_fail(err, MU_INVALID_ARGUMENT,
			     "Invalid PNG data: %u bytes of %zu are missing", z.avail_out, n)
		   : 0;
}

/* The pixels of one small picture among those of the whole; returns where the next one is. */
static const unsigned char *spread(const struct mu_png *p, const struct pass *at,
				   const unsigned char *from, unsigned char *rows)
{
	size_t width = along(p->width, at->x, at->dx), height = along(p->height, at->y, at->dy);
	unsigned bits = samples(p->colour) * p->bits;

	for (size_t y = 0; width && y < height; y++, from += row_bytes(p, width) + 1) {
		unsigned char *row = rows + (at->y + y * at->dy) * (row_bytes(p, p->width) + 1);
		for (size_t x = 0; x < width; x++)
			put_pixel(row + 1, at->x + x * at->dx, from + 1, x, bits);
	}
	return from;
}

int mu_png_rows(struct mu_png *p, struct mu_err *err)
{
	const struct pass *pass = p->interlaced ? passes : &whole;
	unsigned n_passes = p->interlaced ? MU_COUNT(passes) : 1;
	MU_AUTO_FREE unsigned char *raw = NULL;
	size_t n = 0, at = 0;
	int rc;

	for (unsigned i = 0; i < n_passes; i++)
		n += pass_bytes(p, along(p->width, pass[i].x, pass[i].dx),
				along(p->height, pass[i].y, pass[i].dy));
	/* so that a small file cannot ask for much memory */
	if (n / MOST_INFLATED > p->packed || n > UINT32_MAX)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Invalid PNG data: %zu bytes cannot hold %u by %u pixels", p->packed,
			       p->width, p->height);
	if (!(raw = malloc(n)))
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %u by %u pixels",
			       p->width, p->height);
	if ((rc = inflate_rows(p, raw, n, err)))
		return rc;
	for (unsigned i = 0; i < n_passes; i++) {
		size_t width = along(p->width, pass[i].x, pass[i].dx);
		size_t height = along(p->height, pass[i].y, pass[i].dy);
		if (width && (rc = unfilter_all(p, raw + at, width, height, err)))
			return rc;
		at += pass_bytes(p, width, height);
	}
	if (!p->interlaced) {
		p->rows = mu_steal(&raw);
		return 0;
	}
	if (!(p->rows = calloc(pass_bytes(p, p->width, p->height), 1)))
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %u by %u pixels",
			       p->width, p->height);
	const unsigned char *from = raw;
	for (unsigned i = 0; i < n_passes; i++)
		from = spread(p, &pass[i], from, p->rows);
	return 0;
}

void mu_png_fini(struct mu_png *p)
{
	free(p->rows);
	p->rows = NULL;
}

/* ---- pixels of another kind ---- */

unsigned mu_png_channels(const struct mu_png *p)
{
	return p->colour != PALETTE ? samples(p->colour) : p->has_clear ? 4 : 3;
}

static unsigned sample(const struct mu_png *p, const unsigned char *row, size_t i)
{
	unsigned per = p->bits < 8 ? 8 / p->bits : 1;

	if (p->bits == 16)
		return (unsigned)row[2 * i] << 8 | row[2 * i + 1];
	return row[i / per] >> (8 - p->bits - i % per * p->bits) & ((1u << p->bits) - 1);
}

/* Red, green, blue and alpha of 16 bits where the file has them, else of 8. */
static void pixel(const struct mu_png *p, const unsigned char *row, size_t x, unsigned v[4])
{
	unsigned n = samples(p->colour), s[4] = {0},
		 widen = p->bits < 8 ? 255 / ((1u << p->bits) - 1) : 1;
	bool clear = p->has_clear;

	for (unsigned i = 0; i < n; i++) {
		s[i] = sample(p, row, x * n + i);
		clear &= s[i] == (p->clear[i] & ((1u << p->bits) - 1));
	}
	v[3] = (1u << p->bits) - 1;
	if (p->colour == PALETTE) {
		static const unsigned char none[4] = {0, 0, 0, 255};
		const unsigned char *c = s[0] < p->colours ? p->palette[s[0]] : none;
		for (unsigned i = 0; i < 3; i++)
			v[i] = c[i];
		v[3] = p->has_clear ? c[3] : v[3];
		return;
	}
	for (unsigned i = 0; i < 3; i++)
		v[i] = s[p->colour & COLOURED ? i : 0] * widen;
	if (p->colour & ALPHA)
		v[3] = s[n - 1];
	else if (p->has_clear)
		v[3] = clear ? 0 : p->bits == 16 ? 65535 : 255;
}

/* Sums of light are made of light: a file that says how its numbers follow from light has them
 * turned back, as libpng has it with tables for 8 bits. */
struct light {
	bool used;
	unsigned char to[256], from[256];
};

static void light_init(struct light *l, uint32_t gamma)
{
	l->used = gamma && (gamma < 95000 || gamma > 105000);
	for (int i = 0; l->used && i < 256; i++) {
		l->to[i] = (unsigned char)floor(255 * pow(i / 255., 1e5 / gamma) + .5);
		l->from[i] = (unsigned char)floor(255 * pow(i / 255., gamma * 1e-5) + .5);
	}
}

/* 0.299 red, 0.587 green and the rest blue, in 32768ths. */
static unsigned grey_of(const struct light *l, const unsigned v[3], bool wide)
{
	enum { R = 9797, G = 19234, B = 32768 - R - G };

	if (v[0] == v[1] && v[0] == v[2])
		return v[0];
	if (wide)
		return (v[0] * R + v[1] * G + v[2] * B + 16384) >> 15;
	return l->used
		   ? l->from[(l->to[v[0]] * R + l->to[v[1]] * G + l->to[v[2]] * B + 16384) >> 15]
		   : (v[0] * R + v[1] * G + v[2] * B) >> 15;
}

int mu_png_pixels(const struct mu_png *p, unsigned channels, unsigned bits, void *out,
		  struct mu_err *err)
{
	bool coloured = p->colour & COLOURED, wide = p->bits == 16;
	unsigned char *to8 = out;
	uint16_t *to16 = out;
	struct light light;

	light_init(&light, p->gamma);
	if (channels < 3 && coloured && wide && light.used)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "colours of 16 bits with a gamma cannot be made grey here");
	for (uint32_t y = 0; y < p->height; y++) {
		const unsigned char *row = p->rows + y * (row_bytes(p, p->width) + 1) + 1;
		for (uint32_t x = 0; x < p->width; x++) {
			unsigned v[4];
			pixel(p, row, x, v);
			if (channels < 3 && coloured)
				v[0] = grey_of(&light, v, wide);
			v[channels < 3 ? 1 : 3] = v[3];
			for (unsigned i = 0; i < channels; i++)
				if (bits == 16)
					*to16++ = (uint16_t)(wide ? v[i] : v[i] * 257);
				else
					*to8++ = (unsigned char)(wide ? v[i] >> 8 : v[i]);
		}
	}
	return 0;
}
