#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoint files in both directions: TensorFlow reads ours, and we read TensorFlow's.

usage: bundle_both_ways.py [BUILD_DIR]      (run from the repository root, with TensorFlow's Python)
"""
import os
import shlex
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
build = sys.argv[1] if len(sys.argv) > 1 else "build/release"
tmp = tempfile.mkdtemp(prefix="bundle")
tool = os.path.join(tmp, "bundle_tool")
flags = ["-fsanitize=address,undefined"] if "asan" in build else []
subprocess.check_call([*shlex.split(os.environ.get("CC", "gcc")), "-std=gnu17", "-D_GNU_SOURCE", "-I.", "-g", *flags, "-o", tool,
                       "tests/tools/bundle_tool.c", f"{build}/libmuster-base.a", "-lyaml", "-lcjson", "-lz", "-lm", "-pthread"])


def run(*args):
    return subprocess.run([tool, *args], check=True, stdout=subprocess.PIPE, text=True).stdout


def dump(text):
    out = {}
    for line in text.splitlines():
        name, dtype, shape, *values = line.split(" ")
        dims = [int(d) for d in shape.strip("[]").split(",") if d]
        if dtype == "string":
            value = np.array([bytes.fromhex(v) for v in values], object)
        else:
            value = np.array([float(v) for v in values], "f" if dtype == "float" else "d")
        out[name] = value.reshape(dims)
    return out


def piece_of(whole):
    def init(shape, dtype=None, partition_info=None):
        at = tuple(slice(o, o + n) for o, n in zip(partition_info.var_offset, shape))
        return tf.constant(whole[at])
    return init


def equal(got, want, what):
    assert got.shape == want.shape and (got == want).all(), (what, got, want)


# TensorFlow reads our checkpoint.
ours = f"{tmp}/deep/ours-7"
run("write", ours)
reader = tf.train.load_checkpoint(ours)
shapes = reader.get_variable_to_shape_map()
assert len(shapes) == 6005, len(shapes)
equal(reader.get_tensor("z/matrix"), (np.arange(1200) * 0.5).reshape(40, 30).astype("f"), "matrix")
equal(reader.get_tensor("global_step"), np.array(-3), "global_step")
equal(reader.get_tensor("a/flags"), np.array([False, True, False, True, False]), "flags")
equal(reader.get_tensor("a/words"), np.array([b"", b"\0", b"bc", b"cde"], object), "words")
equal(reader.get_tensor("empty"), np.zeros((0, 3), "f"), "empty")
for i in (0, 2999, 5999):
    equal(reader.get_tensor("many/%05d" % i), np.array([-3, -2, -1]), i)

# We and TensorFlow merge our sharded checkpoint.
want_p = np.arange(780, dtype="f").reshape(6, 130)
for who in ("us", "tf"):
    parts = [f"{tmp}/{who}_temp/part-{i:05d}-of-00002" for i in range(2)]
    for i, part in enumerate(parts):
        run("part", part, str(i))
    merged = f"{tmp}/merged_{who}"
    if who == "us":
        run("merge", merged, *parts)
        assert not os.path.exists(f"{tmp}/us_temp")
    else:
        with tf.Session() as sess:
            sess.run(tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=merged))
    equal(tf.train.load_checkpoint(merged).get_tensor("p"), want_p, "p by " + who)
    with tf.Session() as sess:
        part = sess.run(tf.raw_ops.RestoreV2(prefix=merged, tensor_names=["p"], shape_and_slices=["6 130 1,3:7,20"],
                                             dtypes=[tf.float32])[0])
    equal(part, want_p[1:4, 7:27], "slice by TensorFlow")
    equal(dump(run("dump", merged))["p"], want_p, "dump p")
    equal(dump(run("slice", merged, "p", "6 130 1,3:7,20"))["p"], want_p[1:4, 7:27], "slice by us")

# We read TensorFlow's checkpoints: plain, partitioned and sharded.
with tf.Graph().as_default(), tf.Session() as sess:
    rng = np.random.RandomState(1)
    values = {
        "f": rng.randn(17, 9).astype("f"), "i": np.int64(5), "b": np.array([True, False]),
        "s": np.array([[b"", b"x" * 300], [b"\0\xff", b"yz"]], object), "e": np.zeros((0,), "f"),
    }
    for name, value in values.items():
        tf.get_variable(name, initializer=tf.constant(value), use_resource=name != "s")
    big = rng.randn(20, 33).astype("f")
    tf.get_variable("big", big.shape, initializer=piece_of(big), partitioner=tf.fixed_size_partitioner(3))
    wide = rng.randn(3, 200).astype("f")
    tf.get_variable("wide", wide.shape, initializer=piece_of(wide), partitioner=tf.fixed_size_partitioner(2, axis=1))
    sess.run(tf.global_variables_initializer())
    for sharded in (False, True):
        prefix = tf.train.Saver(sharded=sharded).save(sess, f"{tmp}/theirs-{sharded}")
        got = dump(run("dump", prefix))
        for name, value in {**values, "big": big, "wide": wide}.items():
            equal(got[name], np.asarray(value), name)
        equal(dump(run("slice", prefix, "big", "20 33 5,10:30,3"))["big"], big[5:15, 30:33], "cut of parts")
        equal(dump(run("slice", prefix, "f", "17 9 16,1:-"))["f"], values["f"][16:], "cut of a whole")

# The index files are identical byte for byte.
with tf.Graph().as_default(), tf.Session() as sess:
    names = [b"many/%05d" % i for i in range(6000)]
    words = np.array([b"", b"\0", b"bc", b"cde"], object)
    tensors = [np.array([False, True, False, True, False]), words, np.zeros((0, 3), "f"), np.array(-3, "i8")]
    tensors += [np.arange(3, dtype="i8") - 3] * 6000 + [(np.arange(1200) * 0.5).reshape(40, 30).astype("f")]
    names = [b"a/flags", b"a/words", b"empty", b"global_step"] + names + [b"z/matrix"]
    sess.run(tf.raw_ops.SaveV2(prefix=f"{tmp}/same", tensor_names=names, shape_and_slices=[b""] * len(names),
                               tensors=[tf.constant(t) for t in tensors]))
    for end in (".data-00000-of-00001", ".index"):
        assert open(f"{tmp}/same" + end, "rb").read() == open(ours + end, "rb").read(), end
print("bundle both ways: ok")
