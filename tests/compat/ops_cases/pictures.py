# SPDX-License-Identifier: Apache-2.0
"""Colour conversions, image crops, and JPEG files."""
import base64
import itertools
import subprocess
import zlib

import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, I, L, i32, ints, real

H = np.float16


def colours():
    corners = np.array(list(itertools.product((0, 0.5, 1), repeat=3)), F)
    for t, tol in ((F, {"rtol": 1e-5, "atol": 1e-6}), (D, {"rtol": 1e-10, "atol": 1e-12}), (H, {"atol": 2e-2})):
        for x in (real(t, 40, 3, low=0, high=1), real(t, 2, 3, 5, 3, low=-1, high=2), corners.astype(t), real(t, 3, low=0, high=1), real(t, 0, 3)):
            yield Case("RGBToHSV", {"images": x}, **tol)
            if np.all(x >= 0) and np.all(x <= 1):
                yield Case("HSVToRGB", {"images": x}, **tol)
    for t, tol in ((F, {"rtol": 1e-4, "atol": 1e-5}), (H, {"rtol": 2e-2, "atol": 2e-2})):
        pictures = (real(t, 2, 4, 5, 3, low=0, high=1), real(t, 4, 5, 3, low=0, high=1), corners.astype(t).reshape(1, 9, 3, 3), real(t, 0, 4, 3))
        for x, by in itertools.product(pictures, (-0.9, -0.3, 0, 0.25, 0.7, 1)):
            yield Case("AdjustHue", {"images": x, "delta": np.array(by, F)}, **tol)
        for x, by in itertools.product(pictures, (0, 0.5, 1, 1.5, 10)):
            yield Case("AdjustSaturation", {"images": x, "scale": np.array(by, F)}, **tol)
        for x, by in itertools.product((*pictures, real(t, 2, 3, 4, 5, 7)), (-1, 0, 0.5, 2)):
            yield Case("AdjustContrastv2", {"images": x, "contrast_factor": np.array(by, F)}, **tol)
    x = real(F, 4, 5, 3)
    for op, by in (("AdjustHue", "delta"), ("AdjustSaturation", "scale"), ("AdjustContrastv2", "contrast_factor")):
        for image, amount in ((x[0], np.array(1, F)), (x, np.array([1], F)), (x[..., :2], np.array(1, F))):
            if op != "AdjustContrastv2" or image.shape[-1] == 3:
                yield Case(op, {"images": image, by: amount})
    yield Case("RGBToHSV", {"images": x[..., :2]})
    yield Case("HSVToRGB", {"images": np.array(1, F)})


def boxes():
    where = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [0.9, 0.8, 0.2, 0.1], [-0.3, 0.5, 0.5, 1.4], [0.5, 0.5, 0.5, 0.5]], F)
    of, tol = i32(0, 1, 1, 0, 1), {"rtol": 1e-4, "atol": 1e-4}
    for t, method, size in itertools.product((F, D, H, np.uint8, np.int8, np.int16, np.uint16, I, L), ("bilinear", "nearest"), ((3, 4), (1, 1), (7, 2))):
        x = real(t, 2, 5, 6, 3) if np.dtype(t).kind == "f" else ints(t, 2, 5, 6, 3, low=0, high=100)
        yield Case("CropAndResize", {"image": x, "boxes": where, "box_ind": of, "crop_size": i32(*size)},
                   {"method": method, "extrapolation_value": 7.5}, **tol)
        g = real(F, 5, *size, 3)
        if np.dtype(t).kind == "f":
            yield Case("CropAndResizeGradImage", {"grads": g, "boxes": where, "box_ind": of, "image_size": i32(2, 5, 6, 3)},
                       {"T": t, "method": method}, rtol=2e-2 if t == H else 1e-4, atol=2e-2 if t == H else 1e-4)
        if method == "bilinear":
            yield Case("CropAndResizeGradBoxes", {"grads": g, "image": x, "boxes": where, "box_ind": of}, rtol=1e-3, atol=1e-2)
    x = real(F, 2, 5, 6, 3)
    none = {"boxes": np.zeros((0, 4), F), "box_ind": i32()}
    yield Case("CropAndResize", {"image": x, **none, "crop_size": i32(2, 2)})
    for image, b, o, size in ((x[0], where, of, (2, 2)), (x, where[:, :3], of, (2, 2)), (x, where, of[:3], (2, 2)), (x, where, of + 1, (2, 2)),
                              (x, where, of - 1, (2, 2)), (x, where, of, (0, 2)), (x, where, of, (2,)), (x[:, :0], where, of, (2, 2))):
        yield Case("CropAndResize", {"image": image, "boxes": b, "box_ind": o, "crop_size": i32(*size)})


def encoded(pixels, **attrs):
    with tf.Graph().as_default(), tf.Session() as s:
        return s.run(tf.raw_ops.EncodeJpeg(image=pixels, **attrs))


def text(b):
    return np.array(b, dtype=object)


# Two files with four components, which no TensorFlow op can write: CMYK and YCCK.
FOUR_COLOURS = [zlib.decompress(base64.b85decode(f)) for f in ((
    b"c-"
    b"s4a<NrGbKF5^&q*R6!1`zmvo57iZgN==yjg^C)ot=}DgNsLmmxr61M^Z?bUqn_)UQSj@Mn*wJPhCMtM_EQj!(3Cxz|h3RL|)y}*22g}&)CH1{{aRO4hA4(aTa9o6=aAMWbhVb_<w{!o`"
    b"Hdpl@SaWpn#EynT3^&or9B$8>nEb00R>vGcywlGb<|#3sANeD9^wm$SS00=*T7<n8>bFC}Pw&aUqAY)5e3MK^H%$7$+4qadL@?OGrwos;O&eYMGdtnOj&|IlH*JxqEne1&4%&g-"
    b"1k2C8wmOrDtSj6_=Ejl~+_&HMg|3wRd!OO`1Gq>a^)IX3ko)c*)Xb%U7&iwQ2K~t=qQm*tzS_;Uh<n9Y1mM)TPT;u3o!-"
    b"<L0f0j~+jH`t13Om#;p4`uyeVx9>lG{`!B5fse(R!IvSD!JC1>p5fq+(EkiN_FN~R^m!<~_QUFb5p|;fZvp_$VSAJ"), (
    b"c-"
    b"s4a<NrGbKF5^&q*R6!1|VSif1AOXfrE{WosE@)ot>SNlY@&#gqMe#n@3Vem|sLzN?uM@N=8OOMNeHpNk>^mM#EfF$H36U#6(`*($>PrM$g#92xJH&CnqNlH;)7_uY{4JjG__A;Qs*z5e"
    b"^0*WMNcdU=n0x7Gz{mV)%cAL7stuk(Ch)7@&ZWiJ66!jh%y&iyNq5s{jKNBQrA-"
    b"3o|P#3ky)T7AViaBFHMFXz0i$9GJ+iR48K9IB_9|veU+cqCpows2C>|HF0u@iAzXIsj8`KXlj|5nweWzS~<J8y19FJdIg7shJ{B&MkS}Drln_OW)+u|mX%jjRyDV@wzYS3c1@Z*W$Lu)"
    b"GiJ_Ow0OzVWy@ErT(xQQmaW^i@7THP(BUITj~zd8^3<ivSFT>We&gn?hmRgVdHU@6i<hrHe)|07>$mSee*Oaai;;nu5eBgOOAzQUCKeWE7Iu)o7@5jJ3IthL6%E;h90S=C3x$=88aYIq"
    b"CNA7~kW<+>=!0ld(M2vX6_bamA3<IN`;0h`HId~rxW^Fwy2Zf9!U&8%pgS2D>=~~ASpA<t_dkP_#-hz8+BI7L8K%j%iUh|0zX<@>sMfF"))]


def jpegs():
    """Skips the cases in a build without libjpeg, where the ops fail."""
    if subprocess.run(["pkg-config", "--exists", "libjpeg"], check=False).returncode:
        return
    y, x = np.mgrid[0:37, 0:51]
    smooth = np.stack([x * 5, y * 6, (x + y) * 2], -1).astype(np.uint8)
    rough = np.random.RandomState(11).randint(0, 256, (16, 24, 3)).astype(np.uint8)
    files = [encoded(p, **a) for p in (smooth, rough, smooth[..., :1]) for a in (
        {}, {"quality": 30}, {"progressive": True}, {"chroma_downsampling": False}, {"optimize_size": True, "quality": 100})]
    for f in files + FOUR_COLOURS:
        yield Case("ExtractJpegShape", {"contents": text(f)})
        for channels, ratio, fancy, method in itertools.product((0, 1, 3), (1, 2, 8), (True, False), ("", "INTEGER_FAST", "INTEGER_ACCURATE")):
            if fancy or ratio == 1:
                yield Case("DecodeJpeg", {"contents": text(f)}, {
                    "channels": channels, "ratio": ratio, "fancy_upscaling": fancy, "dct_method": method})
        for window in ((0, 0, 16, 24), (3, 5, 9, 11), (8, 16, 8, 8), (1, 0, 2, 24), (15, 23, 1, 1), (0, 0, 17, 99), (-1, 0, 2, 2), (0, 0, 0, 2)):
            for method in ("", "INTEGER_ACCURATE"):
                yield Case("DecodeAndCropJpeg", {"contents": text(f), "crop_window": i32(*window)}, {"dct_method": method})
        for n in (0, 3, 20, 200, len(f) // 2, len(f) - 2):
            yield Case("DecodeJpeg", {"contents": text(f[:n])})
        yield Case("ExtractJpegShape", {"contents": text(f[:20])}, {"output_type": tf.int64})
    for pixels in (smooth, rough, smooth[..., :1]):
        for attrs in ({}, {"quality": 0}, {"progressive": True, "optimize_size": True}, {"chroma_downsampling": False}, {"density_unit": "cm", "x_density": 7},
                      {"xmp_metadata": "<x/>"}, {"format": "rgb"}, {"format": "grayscale"}):
            yield Case("EncodeJpeg", {"image": pixels}, attrs)
        for quality in (0, 50, 100, 101):
            yield Case("EncodeJpegVariableQuality", {"images": pixels, "quality": np.array(quality, I)})
    with tf.Graph().as_default(), tf.Session() as s:
        png = s.run(tf.raw_ops.EncodePng(image=rough))
    for f, op, t in itertools.product((files[0], files[-1]), ("DecodeImage", "DecodePng"), (tf.uint8, tf.uint16, tf.float32)):
        for channels in (0, 1, 3, 4):
            if op == "DecodeImage" or t != tf.float32:
                yield Case(op, {"contents": text(f)}, {"dtype": t, "channels": channels})
    for channels in (0, 1, 3):
        yield Case("DecodeJpeg", {"contents": text(png)}, {"channels": channels})
    for f in (b"no picture", files[0][:2] + files[0][30:]):
        yield Case("DecodeJpeg", {"contents": text(f)})
    yield Case("DecodeJpeg", {"contents": np.array([files[0]], dtype=object)})
    for attrs in ({"channels": 4}, {"ratio": 3}, {"dct_method": "FAST"}):
        yield Case("DecodeJpeg", {"contents": text(files[0])}, attrs)
    for pixels in (smooth[0], smooth[..., :2], smooth[:0]):
        yield Case("EncodeJpeg", {"image": pixels})


def picture_cases():
    for group in (colours, boxes, jpegs):
        yield from group()


def old_picture_cases():
    for t in (F, D, np.uint8, np.int8, np.int16, I):
        for x, limits in itertools.product((ints(t, 2, 3, 4, 2, low=0, high=90), ints(t, 0, 3, 4, 2), ints(t, 3, 4, 1)), ((0, 100), (30, 20), (-9, np.nan))):
            yield Case("AdjustContrast", {"images": x, "contrast_factor": np.array(1.5, F), "min_value": np.array(limits[0], F), "max_value": np.array(limits[1], F)},
                       producer=1, rtol=1e-4, atol=1e-4)
    for t, seeds, size in itertools.product((F, np.uint8), ((1, 2), (3, 4), (5, 0), (0, 7)), ((2, 3), (7, 3), (2, 9), (7, 9), (8, 3), (0, 3), (1, 1), (2,), (1, 2, 3))):
        yield Case("RandomCrop", {"image": np.arange(126).reshape(7, 9, 2).astype(t), "size": np.array(size, np.int64)}, {"seed": seeds[0], "seed2": seeds[1]}, producer=7)
