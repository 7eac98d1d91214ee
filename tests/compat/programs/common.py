# SPDX-License-Identifier: Apache-2.0
"""What every client program here starts with."""
import json
import os

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)

CLUSTER = json.loads(os.environ["COMPAT_CLUSTER"])
TASK = int(os.environ["COMPAT_TASK"])
TARGET = "grpc://" + CLUSTER["worker"][TASK]


def answer(value):
    """The program's result, compared between stock servers and ours."""
    print(json.dumps(value), flush=True)
