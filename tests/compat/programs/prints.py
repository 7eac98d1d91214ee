# SPDX-License-Identifier: Apache-2.0
"""Output of Print and PrintV2 in files and in the task's output, between the lines "<<" and ">>"; texts of failed
assertions."""
import tempfile

import numpy as np

from common import TARGET, answer, tf

raw = tf.raw_ops
VALUES = [["a\nb", "é\x01", "q\"'\\", ""], [[[1, 2], [3, 4]], [[5, 6], [7, 8]]], np.zeros([2, 0]), np.zeros([0, 2]), np.zeros([1, 1, 1]), 7,
          [[1.5, np.nan], [np.inf, 1e-8]], [[True], [False]], "text", np.complex64([1 + 2j, 3]), np.float16([1.5]), [b"\x00z"]]
path = f"{tempfile.mkdtemp()}/printed"


def outcome(run):
    try:
        run()
        return "done"
    except tf.errors.OpError as e:
        text = e.message[max(e.message.find("assertion failed"), 0):].split("\n\t")[0].split("\nRecent")[0]
        return [type(e).__name__, text if text.startswith("assertion") else None]


with tf.device("/job:worker/task:0"), tf.Session(TARGET) as s:
    text = tf.placeholder(tf.string, None)
    streams = ["stdout", "stderr", "file://" + path, "file:///nonexistent/x", "file://", "nowhere", ""]
    out = [outcome(lambda: s.run(raw.PrintV2(input=text, output_stream="stderr"), {text: "<<"}))]
    for stream in streams:
        for more in ({}, {"end": ""}, {"end": "|end|\n"}):
            line = raw.PrintV2(input=text, output_stream=stream, **more)
            out.append([outcome(lambda: s.run(line, {text: t})) for t in ("two\nlines", "", b"\x00 \xff", ["one"], ["a", "b"])])
    for value in map(tf.constant, VALUES):
        for n in (3, 0, 1, 5, -1):
            out.append(outcome(lambda: s.run(raw.Print(input=1.0, data=[value, 7], message=f"{n}: ", summarize=n))))
            out.append(outcome(lambda: s.run(raw.Assert(condition=False, data=[value, "x"], summarize=n))))
    limited = [tf.Print(1.0, [n], f"first {n}: ", first_n=n) for n in (0, 1, 2)]
    for fetch in (*limited, limited, limited, limited[1:]):
        s.run(fetch)
    s.run(raw.PrintV2(input=text, output_stream="stderr"), {text: ">>"})
    with open(path, "rb") as f:
        answer([out, f.read().decode("latin-1")])
