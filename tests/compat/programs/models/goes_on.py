# SPDX-License-Identifier: Apache-2.0
"""Increments a counter on the ps. The chief counts, reports the step, and stays; another worker reports its start step.

goes_on.py FOLDER STEPS: writes checkpoints to FOLDER, where the chief waits for the file `over`.
"""
import pathlib
import sys
import time

from common import TARGET, TASK, answer, tf

folder, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2])
with tf.device("/job:ps/task:0"):
    count = tf.train.get_or_create_global_step()
    more = tf.assign_add(count, 1)
with tf.train.MonitoredTrainingSession(
        master=TARGET, is_chief=TASK == 0, checkpoint_dir=str(folder), save_checkpoint_steps=1_000_000,
        save_checkpoint_secs=None, save_summaries_steps=None, save_summaries_secs=None, log_step_count_steps=None) as sess:
    start = int(sess.run_step_fn(lambda step_context: step_context.session.run(count)))
    for _ in range(steps):
        sess.run(more)
    if TASK == 0:
        (folder / "reached").touch()
        end = time.time() + 120
        while not (folder / "over").exists() and time.time() < end:
            time.sleep(0.05)
    step = int(sess.run_step_fn(lambda step_context: step_context.session.run(count)))
answer({"start": start, "step": step})
