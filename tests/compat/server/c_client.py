# SPDX-License-Identifier: Apache-2.0
"""The C client on stock's servers and on ours: examples/softmax.c, asynchronously and synchronously."""
import os
import re
import subprocess

import numpy as np

from cluster import PATIENCE, ROOT
from compare import Different, both, checkpoint, folder

STEPS = 3000  # as in the program
LOSS = re.compile(r"progress step=(\d+) .* loss=(\S+) ")
PROGRAM = ROOT / "build/release/examples/softmax"


def train(cluster, of, *in_step):
    """Trains; returns the last loss of each worker, and the checkpoint that the servers wrote."""
    path = f"{folder}/{of}-{cluster.name}"
    if not PROGRAM.exists():
        raise Different(f"{PROGRAM} is not there: make examples")
    ps = len(cluster.spec["ps"])
    clients = [subprocess.Popen([PROGRAM, f"grpc://{address}", str(i), str(ps), path, *map(str, in_step)], cwd=ROOT,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for i, address in enumerate(cluster.spec["worker"])]
    losses = []
    try:
        for client in clients:
            out, err = client.communicate(timeout=150)
            if client.returncode:
                raise RuntimeError(f"{cluster.name}: softmax ended with {client.returncode}: {err.strip()[-800:]}")
            losses += [float(loss) for _, loss in LOSS.findall(out)][-1:]
    finally:
        for client in clients:
            client.kill()
            client.wait()
    return losses, checkpoint(path)


def check(losses, saved):
    if {k: v.shape for k, v in saved.items()} != {"W": (64, 10), "b": (10,), "global_step": ()}:
        raise Different(f"the checkpoint holds {sorted(saved)}")
    if not STEPS <= int(saved["global_step"]) <= STEPS + 2:
        raise Different(f"the checkpoint is of step {saved['global_step']}")
    if not losses or not max(losses) < 0.8 or not np.abs(saved["W"]).max() > 0.1:
        raise Different(f"the losses are {losses} after {STEPS} steps")


def c_client():
    """the C client trains on stock's servers and on ours, 2 ps and 2 workers, async"""
    for losses, saved in both(lambda c: train(c, "c"), ps=2):
        check(losses, saved)
    return f"losses {losses}"


def c_client_sync():
    """the C client trains on stock's servers and on ours, synchronously"""
    for losses, saved in both(lambda c: train(c, "c-sync", 2), ps=2):
        check(losses, saved)
    return f"losses {losses}"


def c_client_callables():
    """callables of the C client on stock's servers and on ours"""
    def run(cluster):
        env = dict(os.environ, MUSTER_TEST_TARGET=cluster.spec["worker"][0])
        return subprocess.run([ROOT / "build/release/tests/client/callable_test"], env=env, capture_output=True, text=True,
                              timeout=PATIENCE)

    for done in both(run):
        if done.returncode or "[  PASSED  ] 3" not in done.stdout + done.stderr:
            raise Different(f"{done.stdout[-500:]}{done.stderr[-800:]}")


def save_with_tensorflow(path, step):
    """Saves the variables of softmax.c with TensorFlow: zero weights, and a recognizable value in b."""
    import tensorflow.compat.v1 as tf
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.get_variable("W", initializer=np.zeros((64, 10), np.float32))
        tf.get_variable("b", initializer=np.full(10, 100, np.float32))
        tf.get_variable("global_step", initializer=np.int64(step))
        sess.run(tf.global_variables_initializer())
        tf.train.Saver().save(sess, f"{path}/model.ckpt", global_step=step)


def c_client_goes_on():
    """the C client continues from a checkpoint of TensorFlow's, on stock's servers and on ours"""
    for_steps = 500

    def run(cluster):
        save_with_tensorflow(f"{folder}/c-on-{cluster.name}", STEPS - for_steps)
        return train(cluster, "c-on")

    for losses, saved in both(run, ps=2):
        check(losses, saved)
        # the gradients of b sum to 0 over the classes, so the mean of b does not change
        if not abs(saved["b"].mean() - 100) < 0.1:
            raise Different(f"b is {saved['b']}: it was not restored")
    return f"from step {STEPS - for_steps}"


CASES = [c_client, c_client_sync, c_client_goes_on, c_client_callables]
