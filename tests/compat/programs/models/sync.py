# SPDX-License-Identifier: Apache-2.0
"""Synchronous training in lockstep: this program decides which workers' gradients form a step, not the timing.

The data are small whole numbers and the rates powers of two, in float64, so that every sum is exact whatever its
order: the variables have to be those of the stock runtime to the last bit.
"""
import tempfile
import threading
import time

import numpy as np

from common import CLUSTER, answer_each, forget, tf

STEPS = 4
ROWS, FEATURES, WORDS = 4, 3, 8


def numbers(worker, step, shape, low=-2, high=3):
    return np.random.RandomState(100 * worker + step).randint(low, high, shape).astype(np.float64)


class Worker:
    """A replica with its own graph, monitored session and task."""

    def __init__(self, index, workers, aggregate, build, folder):
        self.index, self.error = index, None
        chief = index == 0
        with tf.Graph().as_default() as graph:
            with tf.device(tf.train.replica_device_setter(cluster=tf.train.ClusterSpec(CLUSTER),
                                                          worker_device=f"/job:worker/task:{index}")):
                self.feeds, loss, self.variables, inner = build()
                step = tf.train.get_or_create_global_step()
                optimizer = tf.train.SyncReplicasOptimizer(inner, replicas_to_aggregate=aggregate,
                                                           total_num_replicas=workers)
                self.train = optimizer.minimize(loss, global_step=step)
            tf.summary.scalar("loss", loss)
            self.step = step
            self.counts = [accumulator.num_accumulated() for accumulator, _ in optimizer._accumulator_list]
            # without initial tokens a step ends only when its update is complete
            hook = optimizer.make_session_run_hook(chief, num_tokens=0)
            self.session = tf.train.MonitoredTrainingSession(
                "grpc://" + CLUSTER["worker"][index], is_chief=chief, hooks=[hook], checkpoint_dir=folder,
                save_checkpoint_steps=1000, save_checkpoint_secs=None, save_summaries_steps=None,
                save_summaries_secs=None, log_step_count_steps=None,
                stop_grace_period_secs=0)
            self.plain_session = tf.Session("grpc://" + CLUSTER["worker"][index], graph=graph)

    def run(self, step):
        try:
            feed = {tensor: make(self.index, step) for tensor, make in self.feeds.items()}
            self.session.run(self.train, feed)
        except Exception as e:  # the thread that waits raises it
            self.error = e

    def look(self):
        return self.session.run_step_fn(lambda step_context: step_context.session.run([*self.variables, self.step]))


def together(workers, step):
    """Runs the workers so that each adds its gradients after the previous one. The result of a sparse accumulator
    depends on the order."""
    threads = [threading.Thread(target=w.run, args=(step,), daemon=True) for w in workers]
    end = time.time() + 200
    for i, (worker, thread) in enumerate(zip(workers, threads)):
        thread.start()
        last = i + 1 == len(workers)
        while thread.is_alive() and (last or min(worker.plain_session.run(worker.counts)) <= i):
            time.sleep(0.002)
            if time.time() > end:
                raise RuntimeError(f"step {step} of worker {worker.index} does not end")
    for worker, thread in zip(workers, threads):
        thread.join(200)
        if worker.error:
            raise worker.error


def train(build, workers, aggregate):
    """Trains in lockstep, and returns the variables after each step. If aggregate < workers, one worker per step is
    late."""
    folder = tempfile.mkdtemp(prefix="sync-")
    crew = [Worker(i, workers, aggregate, build, folder) for i in range(workers)]
    seen = [crew[0].look()]
    for step in range(STEPS):
        late = [crew[-1 - step % workers]] if aggregate < workers else []
        together([w for w in crew if w not in late], step)
        together(late, step)  # its gradient belongs to a past step, so it is dropped
        seen.append(crew[-1].look())
    for w in reversed(crew):
        w.session.close()
        w.plain_session.close()
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(folder))
    saved = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    exact = lambda v: v.tobytes().hex() if isinstance(v, np.ndarray) else int(v)
    return {"seen": [[exact(v) for v in values] for values in seen], "saved": {k: exact(np.asarray(v)) for k, v in saved.items()},
            "values": [np.asarray(v).tolist() for v in seen[-1]]}


def dense(optimizer):
    def build():
        x, y = tf.placeholder(tf.float64, [ROWS, FEATURES]), tf.placeholder(tf.float64, [ROWS])
        w = tf.get_variable("w", initializer=np.array([1.0, -1.0, 0.5]))
        b = tf.get_variable("b", initializer=np.float64(0.25))
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(x * w, 1) + b - y))
        feeds = {x: lambda i, s: numbers(i, s, [ROWS, FEATURES]), y: lambda i, s: numbers(i, s + 50, [ROWS])}
        return feeds, loss, [w, b], optimizer()
    return build


def sparse(optimizer, resource):
    """Trains a table with IndexedSlices gradients. Both workers use some of the same rows, and one worker uses a row
    twice."""
    def build():
        rows = tf.placeholder(tf.int64, [ROWS])
        y = tf.placeholder(tf.float64, [ROWS, 2])
        table = tf.get_variable("table", initializer=np.arange(2.0 * WORDS).reshape(WORDS, 2) / 4, use_resource=resource)
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, rows) - y)) / 2
        feeds = {rows: lambda i, s: numbers(i, s, [ROWS], 0, WORDS).astype(np.int64), y: lambda i, s: numbers(i, s + 50, [ROWS, 2])}
        return feeds, loss, [table], optimizer()
    return build


def _descent():
    return tf.train.GradientDescentOptimizer(0.125)


def _momentum():
    return tf.train.MomentumOptimizer(0.125, 0.5)


def two_workers():
    return train(dense(_descent), 2, 2)


def two_workers_with_momentum():
    return train(dense(_momentum), 2, 2)


def a_backup_worker():
    return train(dense(_descent), 3, 2)


def sparse_gradients():
    return train(sparse(_descent, resource=False), 2, 2)


def sparse_gradients_of_a_resource_variable():
    return train(sparse(_descent, resource=True), 2, 2)


def sparse_gradients_with_momentum():
    return train(sparse(_momentum, resource=False), 2, 2)


def sparse_gradients_and_a_backup_worker():
    return train(sparse(_descent, resource=False), 3, 2)


answer_each(forget)
