# SPDX-License-Identifier: Apache-2.0
"""Examples and features: parses examples, maps numbers and strings to buckets and crosses; warm starts."""
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, D, F, I, L, i32, ints, real, scalar, strs


def _example(**features):
    kinds = {bytes: ("bytes_list", tf.train.BytesList), float: ("float_list", tf.train.FloatList),
             int: ("int64_list", tf.train.Int64List)}
    message = tf.train.Example()
    for key, values in features.items():
        feature = message.features.feature[key]
        if values:
            name, make = kinds[type(values[0])]
            getattr(feature, name).CopyFrom(make(value=values))
    return message.SerializeToString()


def _unpacked():
    """An example with an unpacked list, an unknown field, and a repeated key."""
    floats = b"".join(b"\x0d" + np.float32(v).tobytes() for v in (5, 6))
    numbers = b"\x08\x07\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    def entry(key, tag, values):
        feature = bytes([tag, len(values)]) + values
        body = b"\x0a" + bytes([len(key)]) + key + b"\x12" + bytes([len(feature)]) + feature
        return b"\x0a" + bytes([len(body)]) + body
    features = entry(b"x", 0x12, floats[:5]) + entry(b"x", 0x12, floats) + entry(b"n", 0x1a, numbers)
    return b"\x18\x05\x0a" + bytes([len(features)]) + features


def _objects(*records):
    return np.array(list(records) + [None], dtype=object)[:-1]


NONE = np.array([], dtype=object)
WORD = {"s": np.array(b"-", dtype=object), "none": np.array([], dtype=object)}


def _batch(op, records, sparse=(), dense=(), ragged=(), names=NONE):
    """Lists (key, type) in `sparse`, (key, default, shape) in `dense`, and (key, value type, split type) in `ragged`."""
    word = lambda k: np.array(k.encode(), dtype=object)
    inputs = {"serialized": records, "names": names, "dense_defaults": [d for _, d, _ in dense]}
    if op == "ParseExample":
        inputs.update(sparse_keys=[word(k) for k, _ in sparse], dense_keys=[word(k) for k, _, _ in dense])
    else:
        inputs.update(sparse_keys=strs(*[k for k, _ in sparse]), dense_keys=strs(*[k for k, _, _ in dense]),
                      ragged_keys=strs(*[k for k, _, _ in ragged]))
    attrs = {"sparse_types": [t for _, t in sparse], "dense_shapes": [s for _, _, s in dense]}
    if op == "ParseExampleV2":
        attrs.update(num_sparse=len(sparse), ragged_value_types=[t for _, t, _ in ragged],
                     ragged_split_types=[s for _, _, s in ragged])
    return Case(op, inputs, attrs)


def examples():
    three = _objects(_example(x=[1.0, 2.0], n=[3], w=[b"a", b"b"]), _example(x=[3.0, 4.0], n=[], w=[b"c"]),
                     _example(x=[5.0, 6.0], n=[7, 8], more=[1]))
    default = {F: np.array([], F), L: np.array([], L), str: NONE}
    for op in ("ParseExample", "ParseExampleV2"):
        yield _batch(op, three, [("n", tf.int64), ("w", tf.string), ("absent", tf.float32)],
                     [("x", default[F], [2])])
        yield _batch(op, three, [("n", tf.int64)], [("x", default[F], [1, 2]), ("w", np.array(b"-", dtype=object), [None])])
        yield _batch(op, three, [], [("n", scalar(-1, L), [None]), ("x", scalar(0, F), [None, 2])])
        yield _batch(op, three, [], [("x", scalar(0, F), [None, 3])])
        yield _batch(op, three, [], [("n", scalar(-1, L), [])])
        yield _batch(op, three, [], [("n", default[L], [1])])
        yield _batch(op, three, [], [("absent", np.array([1, 2], F), [2])])
        yield _batch(op, three, [], [("absent", default[str], [])])
        yield _batch(op, three, [], [("absent", np.array([1, 2, 3], F), [2])])
        yield _batch(op, three, [("x", tf.int64)])
        yield _batch(op, three, [("x", tf.float32)], names=strs("a", "b", "c"))
        yield _batch(op, three, [("x", tf.float32)], names=strs("a", "b"))
        yield _batch(op, _objects(), [("x", tf.float32)], [("y", default[F], [2])])
        yield _batch(op, _objects(_unpacked()), [("x", tf.float32), ("n", tf.int64)])
        yield _batch(op, _objects(b"no example"), [("x", tf.float32)])
        yield _batch(op, _objects(_example(x=[1.0])[:-2]), [("x", tf.float32)])
        yield _batch(op, _objects(b""), [("x", tf.float32)], [("y", scalar(4, F), [])])
    for splits in (tf.int32, tf.int64):
        yield _batch("ParseExampleV2", three, ragged=[("n", tf.int64, splits), ("w", tf.string, splits)])
    one = np.array(three[0], dtype=object)
    yield _batch("ParseExampleV2", one, [("w", tf.string)], [("x", default[F], [2]), ("n", scalar(0, L), [None])])
    yield _batch("ParseExample", one, [("w", tf.string)])
    for dense in (["x", "n"], ["x", "absent"]):
        yield Case("ParseSingleExample", {"serialized": one, "dense_defaults": [default[F], default[L]]},
                   {"num_sparse": 2, "sparse_keys": ["w", "nothing"], "dense_keys": dense,
                    "sparse_types": [tf.string, tf.float32], "dense_shapes": [[2], []]})
    for key, kind, shape in (("x", F, [3]), ("x", L, [2]), ("n", F, []), ("w", str, [])):  # types or shapes that differ from the record's
        yield Case("ParseSingleExample", {"serialized": one, "dense_defaults": [default[kind]]},
                   {"num_sparse": 0, "sparse_keys": [], "dense_keys": [key], "sparse_types": [], "dense_shapes": [shape]})
    yield Case("ParseSingleExample", {"serialized": one, "dense_defaults": []},
               {"num_sparse": 1, "sparse_keys": ["x"], "dense_keys": [], "sparse_types": [tf.int64], "dense_shapes": []})
    yield Case("ParseSingleExample", {"serialized": one, "dense_defaults": [scalar(0, F)]},
               {"num_sparse": 0, "sparse_keys": [], "dense_keys": ["x"], "sparse_types": [], "dense_shapes": [[None, 1]]})


def buckets():
    for t in (F, D, I, L):
        yield Case("Bucketize", {"input": ints(t, 4, 5)}, {"boundaries": [-3.0, 0.0, 0.0, 4.5]})
    yield Case("Bucketize", {"input": np.array([np.nan, np.inf, -np.inf, 1], F)}, {"boundaries": [-1.0, 1.0]})
    yield Case("Bucketize", {"input": real(F, 3)}, {"boundaries": []})
    yield Case("Bucketize", {"input": real(F, 3)}, {"boundaries": [1.0, 0.0]})


def crosses():
    rows = np.array([[0, 0], [0, 1], [2, 0]], L)
    other = np.array([[0, 0], [1, 0], [2, 0], [2, 1]], L)
    words, numbers, dense = strs("a", "bb", "c" * 70), np.array([5, -6, 7, 8], L), np.array([[1, 2], [3, 4], [5, 6]], L)
    shape = np.array([3, 2], L)
    sides = {"indices": [rows, other], "values": [words, numbers], "shapes": [shape, shape]}
    text = strs("p", "q", "r").reshape(3, 1)
    for n, key in ((0, 956888297470), (20, 956888297470), (7, 1)):
        yield Case("SparseCross", {**sides, "dense_inputs": [dense]},
                   {"hashed_output": True, "num_buckets": n, "hash_key": key, "out_type": tf.int64, "internal_type": tf.int64})
    only = {"indices": [rows, rows], "values": [words, words], "shapes": [shape, shape], "dense_inputs": [text]}
    yield Case("SparseCross", only, {"hashed_output": True, "num_buckets": 100, "hash_key": 956888297470, "out_type": tf.int64,
                                     "internal_type": tf.string})
    yield Case("SparseCross", only, {"hashed_output": False, "num_buckets": 0, "hash_key": 3, "out_type": tf.string,
                                     "internal_type": tf.string})
    yield Case("SparseCross", {**sides, "dense_inputs": [dense]},
               {"hashed_output": False, "num_buckets": 0, "hash_key": 3, "out_type": tf.string, "internal_type": tf.int64})
    far = {"indices": [np.array(r, L) for r in ([[3, 0], [70, 0], [70, 1], [999, 0]], [[2, 0], [70, 0], [999, 0], [999, 1]], )],
           "values": [strs("a", "b", "c", "d"), numbers], "shapes": [np.array([1000, 2], L)] * 2, "dense_inputs": []}
    backward = np.array([[70, 0], [3, 0], [999, 0], [999, 1]], L)
    for sides_far in (far, {**far, "indices": [far["indices"][0], backward]}, {**far, "indices": [backward, far["indices"][1]]}):
        yield Case("SparseCrossV2", {**sides_far, "sep": strs("+").reshape(())})
    for sep in (strs("_X_"), strs("")):
        yield Case("SparseCrossV2", {**sides, "dense_inputs": [dense, text], "sep": sep.reshape(())})
    for n, strong in ((100, False), (0, False), (100, True)):
        kinds = {**sides, "dense_inputs": [text] if strong else [text, dense]}
        yield Case("SparseCrossHashed", {**kinds, "num_buckets": np.array(n, L), "strong_hash": np.array(strong), "salt": np.array([137, 2], L)})
    for broken in ({"shapes": [shape, np.array([4, 2], L)]}, {"values": [words, numbers[:3]]}, {"shapes": [shape, np.array([3], L)]},
                   {"indices": [rows, np.array([[0, 0], [1, 0], [2, 0], [9, 1]], L)]}):
        yield Case("SparseCross", {**sides, **broken, "dense_inputs": [dense]},
                   {"hashed_output": True, "num_buckets": 9, "hash_key": 3, "out_type": tf.int64, "internal_type": tf.int64})


def matrices():
    prefix = tempfile.mkdtemp(prefix="muster-") + "/model"
    with tf.Graph().as_default(), tf.Session() as s:
        name = np.array(b"m", dtype=object)
        s.run(tf.raw_ops.SaveV2(prefix=prefix, tensor_names=["m"], shape_and_slices=[""], tensors=[np.arange(12, dtype=F).reshape(4, 3)]))
    for rows, cols, missing, wide in (([3, 0], [], 0, 3), ([-1, 2, -1], [], 6, 3), ([1, -1], [2, -1, 0, -1], 6, 4), 
                                      ([0, 0], [], 0, 3), ([0, -1], [], 2, 3), ([0, -1], [], 4, 3), ([0], [0, 1], 0, 3),
                                      ([], [], 0, 3)):
        yield Case("LoadAndRemapMatrix", {"ckpt_path": np.array(prefix.encode(), dtype=object), "old_tensor_name": name,
                                          "row_remapping": np.array(rows, L), "col_remapping": np.array(cols, L),
                                          "initializing_values": real(F, missing)}, {"num_rows": len(rows), "num_cols": wide})


def record_cases():
    for group in (examples, buckets, crosses, matrices):
        yield from group()
