# SPDX-License-Identifier: Apache-2.0
"""Functions and constants that every client program imports."""
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
    """Calls run() and returns the class and the message of the TensorFlow error that it raises."""
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
    """Calls the function in a thread, and returns its result, its exception, or a note that it exceeds the limit."""
    got = []

    def run():
        with tf.Graph().as_default():
            try:
                got.append(plain(function()))
            except tf.errors.OpError as e:  # a failure is expected if the other kind of server fails, too
                got.append(f"raises {type(e).__name__}")
                print(function.__name__, e, file=sys.stderr)
            except Exception as e:
                got.append(f"raises {type(e).__name__}: {e}")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(limit)
    return got[0] if got else f"takes longer than {limit} s"


def answer_each(after=lambda: None, limit=200):
    """Runs each public function of the program that has no parameters, or those that the command line names.

        Each function has its own graph and `limit` seconds; after() runs behind each.

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
    os._exit(0)  # ends threads that still block


def forget():
    """Resets the state that the sessions left on the tasks."""
    tf.Session.reset(TARGET)


def answer(value):
    """Prints the program's result, which is compared between stock servers and ours."""
    print(json.dumps(value), flush=True)
