# SPDX-License-Identifier: Apache-2.0
"""Softmax regression, the classic between-graph trainer.

softmax.py STEPS FOLDER [SECONDS]: trains to global step STEPS with checkpoints in FOLDER, taking at least
SECONDS for a step.  The batch of a step depends only on the global step that it starts from, so that one worker
alone is deterministic, also across a restart from a checkpoint.
"""
import sys
import time

import numpy as np

from common import CLUSTER, TARGET, TASK, answer, tf

steps, folder = int(sys.argv[1]), sys.argv[2]
pause = float(sys.argv[3]) if len(sys.argv) > 3 else 0
FEATURES, CLASSES, BATCH = 64, 10, 32

rng = np.random.RandomState(7)
centres = rng.rand(CLASSES, FEATURES).astype(np.float32)
labels = rng.randint(0, CLASSES, 2000)
images = (centres[labels] + 0.3 * rng.randn(2000, FEATURES)).astype(np.float32)
one_hot = np.eye(CLASSES, dtype=np.float32)[labels]


def batch(step):
    rows = np.random.RandomState(1000 + step).randint(0, len(images), BATCH)
    return images[rows], one_hot[rows]


setter = tf.train.replica_device_setter(cluster=tf.train.ClusterSpec(CLUSTER), worker_device=f"/job:worker/task:{TASK}")
with tf.device(setter):
    x = tf.placeholder(tf.float32, [None, FEATURES])
    y = tf.placeholder(tf.float32, [None, CLASSES])
    w = tf.Variable(tf.zeros([FEATURES, CLASSES]), name="weights")
    b = tf.Variable(tf.zeros([CLASSES]), name="biases")
    logits = tf.matmul(x, w) + b
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=logits))
    global_step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=global_step)
    with tf.control_dependencies([train]):
        next_step = global_step.read_value()

losses = []
with tf.train.MonitoredTrainingSession(
        master=TARGET, is_chief=TASK == 0, checkpoint_dir=folder, save_checkpoint_steps=50,
        save_checkpoint_secs=None, save_summaries_steps=None, save_summaries_secs=None, log_step_count_steps=50,
        hooks=[tf.train.StopAtStepHook(last_step=steps)]) as sess:
    start = step = int(sess.run_step_fn(lambda step_context: step_context.session.run(global_step)))
    while not sess.should_stop():
        features, wanted = batch(step)
        _, value, step = sess.run([train, loss, next_step], {x: features, y: wanted})
        losses.append(float(value))
        step = int(step)
        time.sleep(pause)

answer({"start": start, "step": step, "losses": losses})
