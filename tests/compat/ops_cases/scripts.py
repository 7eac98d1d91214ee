# SPDX-License-Identifier: Apache-2.0
"""Further ops of old scripts: complex functions, quantised training, strings, audio, images."""
import base64
import itertools
import struct

import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, I, L, i32, ints, real, rng, scalar, strs

NARROW, WIDE = np.complex64, np.complex128


def pairs(x):
    """Splits complex numbers into reals, so that the case's tolerance applies."""
    return np.stack([x.real, x.imag]) if np.iscomplexobj(x) else x


def complex_numbers():
    for t in (NARROW, WIDE):
        near = {"rtol": 2e-5, "atol": 2e-6, "seen": pairs} if t == NARROW else {"rtol": 1e-9, "atol": 1e-12, "seen": pairs}
        x = (real(D, 3, 4) + 1j * real(D, 3, 4)).astype(t)
        y = (real(D, 3, 4) + 1j * real(D, 3, 4)).astype(t)
        for op in "Sign Sqrt Rsqrt Reciprocal Inv Exp Expm1 Log Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Sigmoid".split():
            yield Case(op, {"x": x}, **near)
        for op in "Sign Sqrt Exp Sinh Expm1".split():
            yield Case(op, {"x": np.array([0, 1e-9, 1e-9j, -1, 1j], t)}, **near)
        for op in "Pow SquaredDifference DivNoNan MulNoNan Xdivy Xlogy Xlog1py".split():
            yield Case(op, {"x": x, "y": y}, **near)
            yield Case(op, {"x": x, "y": y[0]}, **near)
        for op in "DivNoNan MulNoNan Xdivy Xlogy Xlog1py".split():
            yield Case(op, {"x": np.array([0, 0, 2 + 1j], t), "y": np.array([0, 1j, 0 if op != "Xdivy" else 1], t)}, **near)
        for op in "SigmoidGrad TanhGrad SqrtGrad RsqrtGrad ReciprocalGrad InvGrad".split():
            yield Case(op, {"y": x, "dy": y}, **near)


RANGES = ((-1.0, 1.0), (0.0, 1.0), (-6.3, 0.2), (0.5, 2.0), (-3.0, -0.5), (-0.1, 6.0))


def quantised_training():
    x = real(F, 4, 5, 3, low=-7, high=7)
    grad = real(F, 4, 5, 3)
    for low, high in RANGES:
        for bits, narrow in ((8, False), (8, True), (4, False), (16, True), (2, False)):
            attrs = {"num_bits": bits, "narrow_range": narrow}
            ends = {"min": scalar(low, F), "max": scalar(high, F)}
            # halfway between two of so many steps the last bit of the scale decides
            step = (high - low) / 2**15 if bits == 16 else 1e-6
            yield Case("FakeQuantWithMinMaxVars", {"inputs": x, **ends}, attrs, atol=step)
            yield Case("FakeQuantWithMinMaxVarsGradient", {"gradients": grad, "inputs": x, **ends}, attrs, rtol=1e-5)
            yield Case("FakeQuantWithMinMaxArgs", {"inputs": x}, {"min": low, "max": high, **attrs}, atol=step)
            yield Case("FakeQuantWithMinMaxArgsGradient", {"gradients": grad, "inputs": x}, {"min": low, "max": high, **attrs})
    ends = {"min": np.array([-1, -2, 0], F), "max": np.array([1, 0.5, 3], F)}
    for a, g in ((x, grad), (x[0], grad[0]), (x[0, 0], grad[0, 0]), (x.reshape(2, 2, 5, 3), grad.reshape(2, 2, 5, 3))):
        yield Case("FakeQuantWithMinMaxVarsPerChannel", {"inputs": a, **ends}, atol=1e-6)
        yield Case("FakeQuantWithMinMaxVarsPerChannelGradient", {"gradients": g, "inputs": a, **ends}, {"narrow_range": True}, rtol=1e-5)
    yield Case("FakeQuantWithMinMaxVars", {"inputs": x, "min": scalar(0, F), "max": scalar(0, F)})
    for bad in ({"min": np.zeros([2], F)}, {"max": np.ones([2], F)}):
        yield Case("FakeQuantWithMinMaxVarsPerChannel", {"inputs": x, **ends, **bad})
        yield Case("FakeQuantWithMinMaxVarsPerChannelGradient", {"gradients": grad, "inputs": x, **ends, **bad})
    yield Case("FakeQuantWithMinMaxVarsGradient", {"gradients": grad[0], "inputs": x, "min": scalar(-1, F), "max": scalar(1, F)})


def quantised_and_back():
    for t in (F, D):
        x = real(t, 3, 4, low=-3, high=3)
        low, high = scalar(-1.5, t), scalar(2.0, t)
        for given in (True, False):
            for signed in (True, False):
                for bits in (8, 4, 2):
                    for mode in ("HALF_TO_EVEN", "HALF_UP"):
                        attrs = {"signed_input": signed, "range_given": given, "round_mode": mode}
                        for narrow in (False, True):
                            yield Case("QuantizeAndDequantizeV2", {"input": x, "input_min": low, "input_max": high}, {**attrs, "num_bits": bits, "narrow_range": narrow}, atol=1e-6)
                    attrs.pop("round_mode")
                    yield Case("QuantizeAndDequantizeV3", {"input": x, "input_min": low, "input_max": high, "num_bits": scalar(bits)}, attrs, atol=1e-6)
        for axis, lows, highs in ((0, [-1, -2, -0.5], [1, 2, 3]), (1, [-1, -2, -0.5, -1], [1, 2, 3, 0.5])):
            ends = {"input_min": np.array(lows, t), "input_max": np.array(highs, t)}
            for given in (True, False):
                yield Case("QuantizeAndDequantizeV2", {"input": x, **ends}, {"range_given": given, "axis": axis}, atol=1e-6)
                yield Case("QuantizeAndDequantizeV4", {"input": x, **ends}, {"range_given": given, "axis": axis}, atol=1e-6)
            yield Case("QuantizeAndDequantizeV4Grad", {"gradients": real(t, 3, 4), "input": x, **ends}, {"axis": axis})
        yield Case("QuantizeAndDequantizeV4Grad", {"gradients": real(t, 3, 4), "input": x, "input_min": low, "input_max": high})
    x = real(F, 3, 4)
    yield Case("QuantizeAndDequantizeV2", {"input": x, "input_min": scalar(2, F), "input_max": scalar(1, F)}, {"range_given": True})
    # two-element ranges without an axis would abort stock's process, so there is no such case
    yield Case("QuantizeAndDequantizeV2", {"input": x, "input_min": np.zeros([2], F), "input_max": np.ones([2], F)}, {"range_given": True, "axis": 1})
    yield Case("QuantizeAndDequantizeV2", {"input": x, "input_min": scalar(0, F), "input_max": scalar(1, F)}, {"axis": 5})
    yield Case("QuantizeAndDequantizeV3", {"input": x, "input_min": scalar(0, F), "input_max": scalar(1, F), "num_bits": scalar(70)})


def first_quantised_and_back():
    for t in (F, D):
        x = real(t, 3, 4, low=-3, high=3)
        for bits, signed, given in itertools.product((8, 4), (True, False), (True, False)):
            attrs = {"num_bits": bits, "signed_input": signed, "range_given": given}
            yield Case("QuantizeAndDequantize", {"input": x}, {**attrs, "input_min": -1.5, "input_max": 2.0}, producer=21, atol=1e-6)
    for bad in ({"range_given": True, "input_min": 2.0, "input_max": 1.0}, {"num_bits": 70}):
        yield Case("QuantizeAndDequantize", {"input": x}, bad, producer=21)


def as_integers(x):
    return x.view(x.dtype[0]) if x.dtype.fields else x


def sums_of_quantised_layers():
    def quantized(x):
        return np.array(x, I).view(tf.qint32.as_numpy_dtype)

    def ends(low, high):
        return {"input_min": scalar(low, F), "input_max": scalar(high, F)}

    for numbers in (ints(I, 3, 4, low=-5000, high=90000), ints(I, 5, low=-2**31, high=2**31 - 1), [7, 7], [-3, -900], [2**31 - 1, -2**31], 0):
        x = quantized(numbers)
        for low, high in ((-400.0, 400.0), (0, 1e6), (-3e5, 2e5), (-1, -0.5), (2, 2), (-0.0, 0.0)):
            yield Case("RequantizationRange", {"input": x, **ends(low, high)})
            yield Case("QuantizeDownAndShrinkRange", {"input": x, **ends(low, high)}, {"out_type": tf.quint8}, seen=as_integers)
            for (to_low, to_high), t in itertools.product(((-1, 1), (0, 255), (-6.5, 0.25), (0, 0), (-3, -1)), (tf.quint8, tf.qint8)):
                yield Case("Requantize", {"input": x, **ends(low, high), "requested_output_min": scalar(to_low, F), "requested_output_max": scalar(to_high, F)}, {"out_type": t}, seen=as_integers)
    x, empty = quantized([1, 2]), quantized(np.zeros([0], I))
    yield Case("RequantizationRange", {"input": empty, **ends(-1, 1)})
    yield Case("QuantizeDownAndShrinkRange", {"input": empty, **ends(-1, 1)}, {"out_type": tf.quint8}, seen=as_integers)
    for low, high in ((1, 2), (-1, -2), (np.nan, 1)):
        yield Case("Requantize", {"input": x, **ends(-1, 1), "requested_output_min": scalar(low, F), "requested_output_max": scalar(high, F)}, {"out_type": tf.quint8}, seen=as_integers)


def one(data):
    return np.array(data, dtype=object)


def texts():
    words = [b"", b"a", b"ab", b"abc", bytes(range(256)), "w\u00f6rld".encode()]
    for pad in (False, True):
        yield Case("EncodeBase64", {"input": one(words)}, {"pad": pad})
    for pad in (False, True):
        safe = [base64.urlsafe_b64encode(w) if pad else base64.urlsafe_b64encode(w).rstrip(b"=") for w in words]
        yield Case("DecodeBase64", {"input": one(safe)})
    for bad in (b"a", b"ab+/", b"a=bc", b"abc!", b"ab c", b"a\0bc", b"abcde"):
        yield Case("DecodeBase64", {"input": one(bad)})
    for more in ({}, {"width": 5}, {"width": 5, "fill": "-"}, {"width": 1}):
        yield Case("AsString", {"input": strs("a", "", "bc")}, more)


def wave(samples, channels=1, rate=8000, bits=16, kind=1, extra=b"", format_more=b"", cut=0):
    data = np.asarray(samples, "<i2").tobytes()
    form = struct.pack("<HHIIHH", kind, channels, rate, rate * channels * 2, channels * 2, bits) + format_more
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + extra + b"data" + struct.pack("<I", len(data)) + data
    return (b"RIFF" + struct.pack("<I", len(body)) + body)[:-cut or None]


def sounds():
    some = rng.randint(-32768, 32767, 12)
    for channels in (1, 2, 3):
        for more in ({}, {"desired_channels": 1}, {"desired_channels": 2}, {"desired_samples": 3}, {"desired_samples": 20, "desired_channels": 1}):
            yield Case("DecodeWav", {"contents": one(wave(some, channels))}, more)
    yield Case("DecodeWav", {"contents": one(wave(some, extra=b"LIST" + struct.pack("<I", 4) + b"abcd", format_more=b"\0\0"))})
    for bad in (b"", b"RIFFxxxxWAVE", wave(some, bits=8), wave(some, kind=3), wave(some, channels=0), wave(some, cut=5), wave(some)[:30], b"x" * 60):
        yield Case("DecodeWav", {"contents": one(bad)})
    for frames, channels in ((5, 1), (4, 2)):
        yield Case("EncodeWav", {"audio": real(F, frames, channels, low=-1.2, high=1.2), "sample_rate": scalar(16000)})
    for bad in ({"audio": real(F, 4)}, {"sample_rate": i32(1, 2)}, {"audio": real(F, 0, 1)}):
        yield Case("EncodeWav", {"audio": real(F, 4, 1), "sample_rate": scalar(16000), **bad})
    for shape in ((2, 9), (4, 9, 2)):
        for most in (1, 3):
            yield Case("AudioSummaryV2", {"tag": one(b"s"), "tensor": real(F, *shape, low=-1, high=1), "sample_rate": scalar(44100, F)}, {"max_outputs": most})
    for bad in ({"tensor": real(F, 4)}, {"tag": strs("a", "b")}, {"sample_rate": real(F, 2)}):
        yield Case("AudioSummaryV2", {"tag": one(b"s"), "tensor": real(F, 2, 9), "sample_rate": scalar(44100, F), **bad})


def speech():
    near = {"rtol": 1e-4, "atol": 1e-4}
    for samples, channels, size, stride in ((400, 1, 64, 32), (300, 2, 50, 10), (63, 1, 64, 1), (256, 1, 256, 100), (100, 1, 2, 3)):
        sound = real(F, samples, channels, low=-1, high=1)
        for squared in (True, False):
            yield Case("AudioSpectrogram", {"input": sound}, {"window_size": size, "stride": stride, "magnitude_squared": squared}, **near)
    yield Case("AudioSpectrogram", {"input": real(F, 40)}, {"window_size": 16, "stride": 8})
    for shape in ((1, 3, 257), (2, 2, 129), (1, 0, 129)):
        power = real(F, *shape, low=0, high=9)
        for more in ({}, {"dct_coefficient_count": 20, "filterbank_channel_count": 24}, {"upper_frequency_limit": 7600.0, "lower_frequency_limit": 100.0}):
            yield Case("Mfcc", {"spectrogram": power, "sample_rate": scalar(16000)}, more, **near)
    yield Case("Mfcc", {"spectrogram": np.zeros([1, 2, 129], F), "sample_rate": scalar(8000)}, {"upper_frequency_limit": 3900.0}, **near)
    for bad in ({"spectrogram": real(F, 3, 129)}, {"sample_rate": i32(1, 2)}):
        yield Case("Mfcc", {"spectrogram": real(F, 1, 3, 129), "sample_rate": scalar(16000), **bad})


def bmp(pixels, down=False, bits=None):
    h, w, n = pixels.shape
    turned = pixels[:, :, [2, 1, 0, 3][:n]] if n > 1 else pixels
    rows = b"".join(r.tobytes() + b"\0" * (-n * w % 4) for r in (turned if down else turned[::-1]))
    return b"BM" + struct.pack("<IHHI", 54 + len(rows), 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, w, -h if down else h, 1, bits or 8 * n, 0, len(rows), 0, 0, 0, 0) + rows


def bitmaps():
    for n in (1, 3, 4):
        pixels = rng.randint(0, 255, (3, 5, n)).astype(np.uint8)
        for down in (False, True):
            for channels in (0, 3, 4, 1):
                yield Case("DecodeBmp", {"contents": one(bmp(pixels, down))}, {"channels": channels})
        for t in (np.uint8, np.uint16, F):
            yield Case("DecodeImage", {"contents": one(bmp(pixels))}, {"dtype": t})
    yield Case("DecodeBmp", {"contents": one(bmp(pixels))}, {"channels": 3})
    for bad in (b"BM", b"", b"xx" * 40, bmp(pixels)[:-1], bmp(pixels, bits=16), bmp(pixels)[:30]):
        yield Case("DecodeBmp", {"contents": one(bad)})


def gif_frame(pixels, left=0, top=0, transparent=None, interlaced=False, colours=None):
    """Encodes one frame. Its codes are the pixel values, and a clear code comes before the code table grows."""
    h, w = pixels.shape
    rows = [y for first, step in ((0, 8), (4, 8), (2, 4), (1, 2)) for y in range(first, h, step)] if interlaced else range(h)
    codes = [c for i, pixel in enumerate(p for y in rows for p in pixels[y]) for c in ([256, pixel] if i % 250 == 0 else [pixel])] + [257]
    bits = sum(int(c) << 9 * i for i, c in enumerate(codes)).to_bytes((9 * len(codes) + 7) // 8, "little")
    blocks = b"".join(bytes([len(bits[i:i + 255])]) + bits[i:i + 255] for i in range(0, len(bits), 255)) + b"\0"
    control = b"" if transparent is None else b"!\xf9\4" + struct.pack("<BHB", 1, 0, transparent) + b"\0"
    local = b"" if colours is None else colours.tobytes()
    return (control + b"," + struct.pack("<HHHHB", left, top, w, h, (0x87 if local else 0) | (0x40 if interlaced else 0)) + local
            + b"\x08" + blocks)


def gif(*frames, colours=None, width=5, height=4):
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0 if colours is None else 0xF7, 0, 0) + (b"" if colours is None else colours.tobytes()) + b"".join(frames) + b";"


def animations():
    table, own = rng.randint(0, 255, (2, 256, 3)).astype(np.uint8)
    big, small = rng.randint(0, 255, (4, 5)), rng.randint(0, 4, (2, 3))
    tall = rng.randint(0, 255, (19, 23))
    files = [gif(gif_frame(big), colours=table), gif(gif_frame(tall, interlaced=True), colours=table, width=23, height=19),
             gif(gif_frame(big), gif_frame(small, left=1, top=1), gif_frame(small, left=3, top=3, transparent=2), colours=table),
             gif(gif_frame(small, left=2, top=1, transparent=1), gif_frame(big, transparent=7, colours=own), colours=table),
             gif(gif_frame(big, colours=own)), gif(gif_frame(big)), gif(colours=table), gif(gif_frame(big), gif_frame(big), colours=table)[:-30],
             gif(gif_frame(big), colours=table)[:-30], gif(gif_frame(big), colours=table)[:200], gif(gif_frame(big), colours=table, width=9, height=2),
             b"GIF89a", b"GIF8", gif(b"!\xfe\3abc\0", gif_frame(big), colours=table)]
    for data in files:
        yield Case("DecodeGif", {"contents": one(data)})
        yield Case("DecodeImage", {"contents": one(data)})
        yield Case("DecodeImage", {"contents": one(data)}, {"expand_animations": False})
        yield Case("DecodePng", {"contents": one(data)})
        yield Case("DecodeJpeg", {"contents": one(data)})
    for t, channels in itertools.product((np.uint8, np.uint16, F), (0, 1, 3, 4)):
        yield Case("DecodeImage", {"contents": one(files[2])}, {"dtype": t, "channels": channels})
    for bad in (b"", b"xx" * 40, bmp(tall[..., None].astype(np.uint8))):
        yield Case("DecodeGif", {"contents": one(bad)})


def script_cases():
    for group in (complex_numbers, quantised_training, quantised_and_back, first_quantised_and_back, sums_of_quantised_layers, texts, sounds, speech, bitmaps, animations):
        yield from group()
