# SPDX-License-Identifier: Apache-2.0
"""What every client program here starts with."""
import inspect
import json
import os
import sys
import threading
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)

CLUSTER = json.loads(os.environ["COMPAT_CLUSTER"])
TASK = int(os.environ["COMPAT_TASK"])
TARGET = "grpc://" + CLUSTER["worker"][TASK]


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, bytes):
        return value.decode()
    return plain(value.tolist()) if isinstance(value, (np.ndarray, np.generic)) else value


def error_of(run):
    """Class and first line of what it raises."""
    try:
        return ["no error", plain(run())]
    except tf.errors.OpError as e:
        return [type(e).__name__, e.message]


def field(number, data):
    """One length-delimited protobuf field, for requests that TensorFlow's Python API does not send."""
    size, out = len(data), bytearray([number << 3 | 2])
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes(out) + bytes([size]) + data


def bounded(function, limit):
    """What it returns or raises, or that it takes longer than it may."""
    got = []

    def run():
        with tf.Graph().as_default():
            try:
                got.append(plain(function()))
            except tf.errors.OpError as e:  # the other servers' answer tells whether it is meant
                got.append(f"raises {type(e).__name__}")
                print(function.__name__, e, file=sys.stderr)
            except Exception as e:
                got.append(f"raises {type(e).__name__}: {e}")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(limit)
    return got[0] if got else f"takes longer than {limit} s"


def answer_each(after=lambda: None, limit=200):
    """Each function of the program that takes nothing and is not _private, or those that the command line names.

    Each has a graph of its own, `limit` seconds, and is followed by after().
    """
    out = {}
    for name, function in list(vars(sys.modules["__main__"]).items()):
        if getattr(function, "__module__", "") != "__main__" or name.startswith("_") or inspect.signature(function).parameters:
            continue
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        start = time.time()
        out[name] = bounded(function, limit)
        after()
        print(f"{name}: {time.time() - start:.2f} s", file=sys.stderr, flush=True)
    answer(out)
    os._exit(0)  # whatever still hangs


def forget():
    """What the sessions left on the tasks."""
    tf.Session.reset(TARGET)


def answer(value):
    """The program's result, compared between stock servers and ours."""
    print(json.dumps(value), flush=True)
