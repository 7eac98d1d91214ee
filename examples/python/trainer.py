# SPDX-License-Identifier: Apache-2.0
"""A distributed trainer: every task runs this file. The flags define the task.

    hosts="--ps_hosts=localhost:2222,localhost:2223 --worker_hosts=localhost:2224,localhost:2225"
    python -m muster trainer.py $hosts --job_name=ps --task_index=0 &
    python -m muster trainer.py $hosts --job_name=ps --task_index=1 &
    python -m muster trainer.py $hosts --job_name=worker --task_index=0 &
    python -m muster trainer.py $hosts --job_name=worker --task_index=1

Each worker builds the same graph: parameters on the parameter servers, round robin, and the computation on itself
(between-graph replication).  With --sync a step waits for gradients of --aggregate workers.
"""
import argparse
import sys
import time

import numpy as np
import tensorflow as tf

FEATURES, CLASSES, BATCH = 20, 5, 32


def batch(step):
    """Random points around one centre for each class, as a function of the step."""
    centres = np.random.RandomState(1).uniform(-1, 1, [CLASSES, FEATURES])
    rng = np.random.RandomState(step)
    labels = rng.randint(0, CLASSES, BATCH)
    return (centres[labels] + rng.normal(0, 0.4, [BATCH, FEATURES])).astype(np.float32), labels


def model(x, labels):
    hidden = tf.layers.dense(x, 16, tf.nn.relu, kernel_initializer=tf.glorot_uniform_initializer(seed=1))
    logits = tf.layers.dense(hidden, CLASSES, kernel_initializer=tf.glorot_uniform_initializer(seed=2))
    return tf.losses.sparse_softmax_cross_entropy(labels, logits)


def train(cluster, server):
    chief = FLAGS.task_index == 0
    with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{FLAGS.task_index}", cluster=cluster)):
        x = tf.placeholder(tf.float32, [None, FEATURES])
        labels = tf.placeholder(tf.int64, [None])
        loss = model(x, labels)
        global_step = tf.contrib.framework.get_or_create_global_step()
        optimizer = tf.train.AdagradOptimizer(0.05)
        hooks = [tf.train.StopAtStepHook(last_step=FLAGS.steps)]
        if FLAGS.sync:
            workers = cluster.num_tasks("worker")
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, total_num_replicas=workers,
                                                       replicas_to_aggregate=FLAGS.aggregate or workers)
            hooks.append(optimizer.make_session_run_hook(chief))
        train_op = optimizer.minimize(loss, global_step=global_step)

    # a worker needs only the parameter servers: it can start and run without the other workers
    config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{FLAGS.task_index}"])
    local_steps, step, loss_value = 0, 0, float("nan")
    with tf.train.MonitoredTrainingSession(master=server.target, is_chief=chief, hooks=hooks, config=config,
                                           checkpoint_dir=FLAGS.checkpoint_dir, save_checkpoint_steps=50,
                                           save_checkpoint_secs=None, stop_grace_period_secs=5) as sess:
        while not sess.should_stop():
            data, classes = batch(1000 * FLAGS.task_index + local_steps)
            _, loss_value, step = sess.run([train_op, loss, global_step], {x: data, labels: classes})
            local_steps += 1
            time.sleep(FLAGS.pause)
    print(f"worker {FLAGS.task_index}: {local_steps} steps here, global step {step}, loss {loss_value:.6f}")


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    else:
        train(cluster, server)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ps_hosts", required=True, help="host:port,…")
    parser.add_argument("--worker_hosts", required=True, help="host:port,…")
    parser.add_argument("--job_name", required=True, choices=["ps", "worker"])
    parser.add_argument("--task_index", type=int, default=0)
    parser.add_argument("--steps", type=int, default=300, help="total steps of all workers")
    parser.add_argument("--sync", action="store_true")
    parser.add_argument("--aggregate", type=int, default=0, help="gradients per synchronous step [number of workers]")
    parser.add_argument("--checkpoint_dir")
    parser.add_argument("--pause", type=float, default=0, help="seconds between two steps")
    FLAGS, unparsed = parser.parse_known_args()
    tf.app.run(main=main, argv=[sys.argv[0]] + unparsed)
