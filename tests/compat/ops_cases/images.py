# SPDX-License-Identifier: Apache-2.0
"""Images: PNG files of every kind, malformed ones, and image summaries."""
import itertools
import struct
import zlib

import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, ints, real, rng

GREY, RGB, PALETTE, GREY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
SAMPLES = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGB_ALPHA: 4}
KINDS = [(GREY, b) for b in (1, 2, 4, 8, 16)] + [(PALETTE, b) for b in (1, 2, 4, 8)] + [
    (k, b) for k in (RGB, GREY_ALPHA, RGB_ALPHA) for b in (8, 16)]
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def text(b):
    return np.array(b, dtype=object)


def chunk(kind, data=b""):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def rows(pixels, bits, filters):
    """Packs samples; each row uses the next PNG filter type."""
    out, before = b"", None
    step = max(1, pixels.shape[2] * bits // 8)
    for y, row in enumerate(pixels):
        flat = row.reshape(-1)
        if bits == 16:
            line = flat.astype(">u2").tobytes()
        else:
            line = np.packbits(np.unpackbits(flat.astype(np.uint8)[:, None], axis=1)[:, 8 - bits:].reshape(-1)).tobytes()
        line = np.frombuffer(line, np.uint8).astype(int)
        up = np.zeros_like(line) if before is None else before
        left, corner = (np.concatenate([np.zeros(step, int), x[:-step]])[:len(line)] for x in (line, up))
        to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
        near = np.where((to_left <= to_up) & (to_left <= to_corner), left, np.where(to_up <= to_corner, up, corner))
        kind = filters[y % len(filters)]
        taken = (line - [0 * line, left, up, (left + up) // 2, near][kind]) & 255
        out += bytes([kind]) + bytes(taken.tolist())
        before = line
    return out


def png(pixels, colour, bits, filters=(0,), interlaced=False, notes=b"", pieces=1):
    h, w, _ = pixels.shape
    parts = [pixels[y::dy, x::dx] for x, y, dx, dy in PASSES] if interlaced else [pixels]
    packed = zlib.compress(b"".join(rows(p, bits, filters) for p in parts if p.size))
    n = -(-len(packed) // pieces)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, bits, colour, 0, 0, interlaced)) + notes +
            b"".join(chunk(b"IDAT", packed[i:i + n]) for i in range(0, len(packed), n)) + chunk(b"IEND"))


def any_pixels(colour, bits, h=7, w=11, top=None):
    return rng.randint(0, top or 1 << bits, (h, w, SAMPLES[colour]))


def palette(n):
    return chunk(b"PLTE", rng.randint(0, 256, 3 * n).astype(np.uint8).tobytes())


def decode(contents, **attrs):
    return Case("DecodePng", {"contents": text(contents)}, attrs)


def files():
    for (colour, bits), interlaced in itertools.product(KINDS, (False, True)):
        for h, w in ((7, 11), (1, 1), (9, 3), (16, 16)):
            for clear in (False, True):
                notes = palette(1 << bits) if colour == PALETTE else b""
                pixels = any_pixels(colour, bits, h, w)
                if clear and colour == PALETTE:
                    notes += chunk(b"tRNS", bytes(range(1, 1 + (1 << bits) // 2)))
                elif clear and colour in (GREY, RGB):
                    notes += chunk(b"tRNS", struct.pack(">%dH" % SAMPLES[colour], *pixels[0, 0]))
                file = png(pixels, colour, bits, (4, 3, 2, 1, 0), interlaced, notes, pieces=3)
                for channels, t in itertools.product((0, 1, 3, 4), (tf.uint8, tf.uint16)):
                    yield decode(file, channels=channels, dtype=t)
    for contents, t in ((file, tf.uint8), (file, tf.uint16), (file, tf.float32)):
        yield Case("DecodeImage", {"contents": text(contents)}, {"dtype": t, "channels": 3})
    # the grey value of every colour, without and with gamma
    cube = np.stack(np.meshgrid(*[range(0, 256, 15)] * 3), -1).reshape(18, -1, 3)
    for notes in (b"", chunk(b"gAMA", struct.pack(">I", 45455)), chunk(b"gAMA", struct.pack(">I", 100000)),
                  chunk(b"gAMA", struct.pack(">I", 60000)), chunk(b"sRGB", b"\0"), chunk(b"pHYs", struct.pack(">IIB", 2835, 2835, 1)),
                  chunk(b"tEXt", b"Comment\0words")):
        yield decode(png(cube, RGB, 8, notes=notes), channels=1)
        yield decode(png(cube, RGB, 8, notes=notes), channels=3)
    for notes, t in itertools.product((b"", chunk(b"gAMA", struct.pack(">I", 45455)), chunk(b"gAMA", struct.pack(">I", 60000))),
                                      (tf.uint8, tf.uint16)):
        yield decode(png(any_pixels(RGB, 16, 40, 40), RGB, 16, notes=notes), channels=1, dtype=t)


def broken():
    pixels = any_pixels(GREY, 8)
    whole = png(pixels, GREY, 8)
    ends = [0, 4, 8, 12, 20, 33, 40, len(whole) - 20, len(whole) - 12, len(whole) - 1]
    for n in ends:
        yield decode(whole[:n])
    for at in (1, 10, 18, 24, 25, 26, 27, 28, 30, 36, 40, 60, len(whole) - 15, len(whole) - 3):
        yield decode(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
    yield decode(whole + b"more")
    for colour, bits in ((1, 8), (5, 8), (7, 8), (GREY, 3), (GREY, 32), (RGB, 4), (PALETTE, 16), (RGB_ALPHA, 4)):
        head = struct.pack(">IIBBBBB", 11, 7, bits, colour, 0, 0, 0)
        yield decode(whole[:8] + chunk(b"IHDR", head) + whole[33:])
    for h, w in ((0, 1), (1, 0), (1 << 27, 1), (1, 1 << 27), (1 << 15, 1 << 14), (1 << 31, 1), (8, 11), (7, 12)):
        head = struct.pack(">IIBBBBB", w, h, 8, GREY, 0, 0, 0)
        yield decode(whole[:8] + chunk(b"IHDR", head) + whole[33:])
    yield decode(whole[:8] + whole[33:])
    yield decode(png(pixels, GREY, 8, notes=chunk(b"ABCD", b"x")))
    yield decode(png(pixels, GREY, 8, notes=chunk(b"abCd", b"x")[:-1] + b"!"))
    yield decode(png(pixels, GREY, 8, notes=palette(4)))
    yield decode(png(any_pixels(PALETTE, 2), PALETTE, 2))
    yield decode(png(any_pixels(PALETTE, 4), PALETTE, 4, notes=palette(5)))
    yield decode(png(any_pixels(PALETTE, 2), PALETTE, 2, notes=palette(4) + chunk(b"tRNS", b"123456")))
    yield decode(png(any_pixels(RGB, 8), RGB, 8, notes=chunk(b"tRNS", b"12")), channels=4)
    yield decode(png(pixels, GREY, 8), channels=2)
    yield decode(png(pixels, GREY, 8), channels=5)
    yield decode(b"no picture at all")
    for contents, expected in ((rows(pixels, 8, (0,))[:-1], 7), (rows(pixels, 8, (0,)) + b"123456789", 7)):
        yield decode(whole[:33] + chunk(b"IDAT", zlib.compress(contents)) + chunk(b"IEND"))
    yield decode(whole[:33] + chunk(b"IDAT", zlib.compress(rows(pixels, 8, (0,)).replace(b"\0", b"\x07", 1))) + chunk(b"IEND"))
    yield decode(whole[:33] + chunk(b"IDAT", b"no deflate") + chunk(b"IEND"))


class Decoder:
    """Decodes PNG files with TensorFlow, to compare encoded images."""

    def __init__(self):
        with tf.Graph().as_default() as g:
            self.file = tf.placeholder(tf.string)
            self.of = {t: tf.raw_ops.DecodePng(contents=self.file, dtype=t) for t in (tf.uint8, tf.uint16)}
        self.session = tf.Session(graph=g)

    def __call__(self, contents, t=tf.uint8):
        return self.session.run(self.of[t], {self.file: contents})


decoder = []


def decoded(contents, t=tf.uint8):
    if not decoder:
        decoder.append(Decoder())
    return decoder[0](contents, t)


def pixels_8(b):
    return decoded(b.item(), tf.uint8)


def pixels_16(b):
    return decoded(b.item(), tf.uint16)


def encodings():
    pixels_of = {np.uint8: pixels_8, np.uint16: pixels_16}
    for t, channels, level in itertools.product((np.uint8, np.uint16), (1, 2, 3, 4), (-1, 0, 9)):
        x = rng.randint(0, 256 if t == np.uint8 else 65536, (5, 6, channels)).astype(t)
        yield Case("EncodePng", {"image": x}, {"compression": level}, seen=pixels_of[t])
    yield Case("EncodePng", {"image": x[:, :, 0]})
    yield Case("EncodePng", {"image": x[:0]})
    yield Case("EncodePng", {"image": np.zeros((0, 2, 2, 3), np.uint8)})
    yield Case("EncodePng", {"image": np.zeros((2, 2, 5), np.uint8)})


def summary(b):
    """Returns tags, sizes and pixels of a summary, all but its compressed bytes."""
    s = tf.Summary.FromString(b.item())
    said = "".join(f"{v.tag} {v.image.height} {v.image.width} {v.image.colorspace} "
                   f"{decoded(v.image.encoded_image_string).tolist()}\n" for v in s.value)
    return text(said.encode())


def summaries():
    tag = text(b"scope/of it")
    for t, depth, most in itertools.product((F, D, np.float16, np.uint8), (1, 3, 4), (1, 2, 5)):
        for low, high in ((0, 255), (-1, 1), (0, 1), (-300, 5), (0, 1e-7)):
            if t == np.uint8 and low < 0:
                continue
            x = ints(t, 3, 4, 5, depth, low=0, high=256) if t == np.uint8 else real(t, 3, 4, 5, depth, low=low, high=high)
            yield Case("ImageSummary", {"tag": tag, "tensor": x}, {"max_images": most}, seen=summary)
            if t == np.uint8:
                continue
            x[0, 1, 2, 0], x[1, 0, 0, depth - 1], x[2] = np.nan, np.inf, -np.inf
            yield Case("ImageSummary", {"tag": tag, "tensor": x}, {"max_images": most}, seen=summary)
            yield Case("ImageSummary", {"tag": tag, "tensor": x},
                       {"max_images": most, "bad_color": tf.make_tensor_proto(np.array([1, 2, 3, 4], np.uint8))}, seen=summary)
    x = real(F, 2, 4, 5, 3)
    for bad in (np.array([1, 2], np.uint8), np.array([[1, 2, 3]], np.uint8), np.array([1., 2, 3], F)):
        yield Case("ImageSummary", {"tag": tag, "tensor": x}, {"bad_color": tf.make_tensor_proto(bad)}, seen=summary)
    for odd in (x[..., :2], x[0], x[:, :, :, :0]):
        yield Case("ImageSummary", {"tag": tag, "tensor": odd}, seen=summary)
    yield Case("ImageSummary", {"tag": tag, "tensor": x[:0]}, seen=summary)
    yield Case("ImageSummary", {"tag": tag, "tensor": x[:, :0]}, seen=summary)


def image_cases():
    for group in (files, broken, encodings, summaries):
        yield from group()
