# SPDX-License-Identifier: Apache-2.0
"""Strings with encoded values: serialized tensors, raw numbers, hash buckets of words."""
import itertools

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto

from ops_cases import Case, D, F, I, L, real, scalar, strs

EVERY = (F, D, I, L, np.int8, np.uint8, np.int16, np.uint16, np.float16, np.bool_, np.complex64)


def text(b):
    return np.array(b, dtype=object)


def buckets():
    words = strs("", "a", "ab", "seven77", "eight888", "nine99999", "sixteen16sixteen", "x" * 100, "é☃")
    for n in (1, 2, 1000, 1 << 62, (1 << 63) - 1):
        yield Case("StringToHashBucket", {"string_tensor": words}, {"num_buckets": n})
        for key in ([0, 0], [1, 2], [-1, 1 << 62]):
            yield Case("StringToHashBucketStrong", {"input": words.reshape(3, 3)}, {"num_buckets": n, "key": key})
    for length in range(40):  # every number of complete words and of remaining bytes
        each = text(bytes(range(200, 200 + length)))
        yield Case("StringToHashBucket", {"string_tensor": each}, {"num_buckets": 1 << 62})
        yield Case("StringToHashBucketStrong", {"input": each}, {"num_buckets": 1 << 62, "key": [5, 6]})
    for key in ([], [1], [1, 2, 3]):
        yield Case("StringToHashBucketStrong", {"input": words}, {"num_buckets": 5, "key": key})


def padded():
    words = strs("", "a", "hello", "a longer line")
    for t, n, little in itertools.product((tf.uint8, tf.int8, tf.int16, tf.uint16, tf.int32, tf.int64, tf.float32,
                                           tf.float64), (1, 4, 8, 16), (True, False)):
        attrs = {"out_type": t, "little_endian": little}
        yield Case("DecodePaddedRaw", {"input_bytes": words, "fixed_length": scalar(n)}, attrs)
        yield Case("DecodePaddedRaw", {"input_bytes": text(b"one string"), "fixed_length": scalar(n)}, attrs)
    for n in (0, -4):
        yield Case("DecodePaddedRaw", {"input_bytes": words, "fixed_length": scalar(n)}, {"out_type": tf.uint8})


def protos():
    """Serializes whole tensors to TensorProto strings and parses them."""
    for t in EVERY:
        for x in (real(F, 2, 3).astype(t), real(F).astype(t), real(F, 0, 4).astype(t)):
            yield Case("SerializeTensor", {"tensor": x})
            yield Case("ParseTensor", {"serialized": text(tf.make_tensor_proto(x).SerializeToString())}, {"out_type": tf.as_dtype(t)})
    words = strs("", "a", "hello").reshape(3, 1)
    yield Case("SerializeTensor", {"tensor": words})
    whole = tf.make_tensor_proto(words).SerializeToString()
    yield Case("ParseTensor", {"serialized": text(whole)}, {"out_type": tf.string})
    splat = TensorProto(dtype=1, float_val=[2.5])
    for n in (2, 3):
        splat.tensor_shape.dim.add(size=n)
    yield Case("ParseTensor", {"serialized": text(splat.SerializeToString())}, {"out_type": tf.float32})
    for bad in (b"no tensor", whole[:-1]):
        yield Case("ParseTensor", {"serialized": text(bad)}, {"out_type": tf.string})
    yield Case("ParseTensor", {"serialized": text(whole)}, {"out_type": tf.int32})
    yield Case("ParseTensor", {"serialized": text(b"")}, {"out_type": tf.float32})


def bytes_cases():
    for group in (buckets, padded, protos):
        yield from group()
