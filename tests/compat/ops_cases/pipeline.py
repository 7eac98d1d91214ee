# SPDX-License-Identifier: Apache-2.0
"""Ops that parse sequence examples."""
import numpy as np
import tensorflow.compat.v1 as tf

from ops_cases import Case, F, L, scalar, strs
from ops_cases.records import NONE, _example, _objects


def _sequence(context=None, **lists):
    message = tf.train.SequenceExample()
    message.context.CopyFrom(tf.train.Example.FromString(_example(**(context or {}))).features)
    for key, rows in lists.items():
        into = message.feature_lists.feature_list[key]
        for row in rows:
            into.feature.add().CopyFrom(tf.train.Example.FromString(_example(f=row)).features.feature["f"])
    return message.SerializeToString()


BATCH = [_sequence({"x": [1.0, 2.0], "w": [b"a", b"b"]}, n=[[1, 2], [], [3]], v=[[1.0, 2.0], [3.0, 4.0]], s=[[b"q"]]),
         _sequence({"x": [3.0, 4.0], "m": [5]}, n=[[4]], v=[], s=[[b"r"], [b"t"], [b"u"]]),
         _sequence({"x": [5.0, 6.0], "w": [b"c"]}, n=[], v=[[7.0, 8.0]], s=[[b"v"]])]
TYPES = {"x": tf.float32, "w": tf.string, "m": tf.int64, "n": tf.int64, "v": tf.float32, "s": tf.string, "z": tf.float32}
EMPTY = {tf.float32: np.array([], F), tf.int64: np.array([], L), tf.string: NONE}


def _word(k):
    return np.array(k.encode(), dtype=object)


def _parse(op, records, sparse="", dense="", ragged="", lists="", rows="", jagged="", shapes=None, row_shapes=None, lacking="", defaults=None,
           splits=tf.int64, name=None, **more):
    """Each argument from `sparse` to `jagged` lists the keys of that kind, one letter per key."""
    defaults = defaults or [EMPTY[TYPES[k]] for k in dense]
    attrs = {"context_sparse_types": [TYPES[k] for k in sparse], "context_dense_shapes": shapes or [[2]] * len(dense),
             "feature_list_sparse_types": [TYPES[k] for k in lists], "feature_list_dense_types": [TYPES[k] for k in rows],
             "feature_list_dense_shapes": row_shapes or [[2] if k == "v" else [] if k == "n" else [1] for k in rows]}
    inputs = {"serialized": records, "debug_name": NONE if name is None else name, "context_dense_defaults": defaults}
    if op == "ParseSequenceExample":
        attrs.update(context_sparse_keys=list(sparse), context_dense_keys=list(dense), feature_list_sparse_keys=list(lists),
                     feature_list_dense_keys=list(rows), feature_list_dense_missing_assumed_empty=list(lacking),
                     Ncontext_sparse=len(sparse), Ncontext_dense=len(dense), Nfeature_list_sparse=len(lists), Nfeature_list_dense=len(rows))
    elif op == "ParseSingleSequenceExample":
        inputs.update(debug_name=np.array(b"", dtype=object), feature_list_dense_missing_assumed_empty=strs(*lacking) if lacking else NONE,
                      context_sparse_keys=list(map(_word, sparse)), context_dense_keys=list(map(_word, dense)),
                      feature_list_sparse_keys=list(map(_word, lists)), feature_list_dense_keys=list(map(_word, rows)))
    else:
        keys = lambda letters: strs(*letters) if letters else NONE
        inputs.update(context_sparse_keys=keys(sparse), context_dense_keys=keys(dense), context_ragged_keys=keys(ragged),
                      feature_list_sparse_keys=keys(lists), feature_list_dense_keys=keys(rows), feature_list_ragged_keys=keys(jagged),
                      feature_list_dense_missing_assumed_empty=np.array([k in lacking for k in rows], bool))
        attrs.update(context_ragged_value_types=[TYPES[k] for k in ragged], context_ragged_split_types=[splits] * len(ragged),
                     feature_list_ragged_value_types=[TYPES[k] for k in jagged], feature_list_ragged_split_types=[splits] * len(jagged),
                     Ncontext_sparse=len(sparse), Nfeature_list_sparse=len(lists), Nfeature_list_dense=len(rows))
    return Case(op, inputs, attrs, **more)


def _ended(x):
    """Zeroes the unused row splits of a single example, which stock leaves uninitialized."""
    return x if x.shape or x.dtype.kind != "i" else x * 0


def sequences():
    three, one = _objects(*BATCH), np.array(BATCH[0], dtype=object)
    for op, records in (("ParseSequenceExample", three), ("ParseSequenceExampleV2", three), ("ParseSequenceExampleV2", one),
                        ("ParseSingleSequenceExample", one)):
        yield _parse(op, records, sparse="wm", dense="x", lists="ns", rows="v")
        yield _parse(op, records, lists="nz", rows="vs")
        yield _parse(op, records, rows="z")
        yield _parse(op, records, rows="z", lacking="z")
        yield _parse(op, records, rows="zv", lacking="z")
        yield _parse(op, records, rows="n")
        yield _parse(op, records, rows="v", row_shapes=[[3]])
        yield _parse(op, records, rows="v", row_shapes=[[1, 2]])
        yield _parse(op, records, dense="m")
        yield _parse(op, records, dense="m", shapes=[[1]], defaults=[np.array([9], L)])
        yield _parse(op, records, dense="x", shapes=[[3]])
        yield _parse(op, records, dense="w", shapes=[[]], defaults=[_word("-")])
        TYPES["n"] = tf.float32
        yield _parse(op, records, lists="n")
        TYPES["n"] = tf.int64
    for splits in (tf.int32, tf.int64):
        for records in (three, one):
            yield _parse("ParseSequenceExampleV2", records, ragged="wm", jagged="nz", rows="v", splits=splits, seen=_ended)
            yield _parse("ParseSequenceExampleV2", records, sparse="m", dense="x", ragged="w", lists="s", jagged="vn", splits=splits, seen=_ended)
    for op in ("ParseSequenceExample", "ParseSequenceExampleV2"):
        yield _parse(op, three, sparse="w", name=strs("a", "b", "c"))
        yield _parse(op, _objects(), sparse="w", dense="x", lists="n", rows="v")
        yield _parse(op, _objects(b"no example", BATCH[0]), sparse="w")
        yield _parse(op, _objects(b""), sparse="w", lists="n")
        yield _parse(op, _objects(BATCH[0][:-3]), lists="n")
    yield _parse("ParseSingleSequenceExample", np.array(b"", dtype=object), sparse="w", lists="n")
    yield _parse("ParseSingleSequenceExample", np.array(b"no example", dtype=object), sparse="w")
    yield _parse("ParseSingleSequenceExample", three, sparse="w")


def pipeline_cases():
    yield from sequences()
