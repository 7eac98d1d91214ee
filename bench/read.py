#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads data files from the page cache with our reader and tf.data, alternating; prints the best of several rounds.

Both sides must find the same number of records.  "a core" is bytes per CPU second, which several
threads do not improve.
"""
import argparse
import os
import pathlib
import resource
import struct
import subprocess
import tempfile
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

ROWS, FEATURES = 200_000, 784


def write_idx(path, rng):
    with open(path, "wb") as f:
        f.write(struct.pack(">HBBII", 0, 8, 2, ROWS, FEATURES))
        f.write(rng.integers(0, 256, ROWS * FEATURES, dtype=np.uint8).tobytes())


def write_csv(path, rng):
    table = rng.integers(0, 256, (20_000, 65))
    np.savetxt(path, table, fmt="%d", delimiter=",")


def write_records(path, rng, size, count):
    with tf.io.TFRecordWriter(str(path)) as w:
        for _ in range(count):
            w.write(rng.bytes(size))


def rows_of(dataset, batch):
    """Counts the rows in batches, which is faster for tf.data than single rows."""
    return int(dataset.batch(batch).reduce(np.int64(0), lambda n, x: n + tf.shape(
        x[0] if isinstance(x, tuple) else x, out_type=tf.int64)[0]))


def theirs(kind, path):
    if kind == "idx":
        return rows_of(tf.data.FixedLengthRecordDataset(str(path), FEATURES, header_bytes=12), 1024)
    if kind == "csv":
        return rows_of(tf.data.experimental.CsvDataset(str(path), [tf.float32] * 65), 1024)
    return rows_of(tf.data.TFRecordDataset(str(path), buffer_size=1 << 20), 1024)


def measure_theirs(kind, path):
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    seen = theirs(kind, path)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used, seen


def measure_ours(program, kind, path):
    out = subprocess.run([program, kind, str(path)], check=True, capture_output=True, text=True)
    wall, used, seen = out.stdout.split()
    return float(wall), float(used), int(seen)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="the built bench/read_files")
    parser.add_argument("--rounds", type=int, default=5)
    o = parser.parse_args()
    rng = np.random.default_rng(1)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-read-"))
    files = {"idx": ("idx", folder / "images"), "csv": ("csv", folder / "table.csv"),
             "tfrecord, 3 KB each": ("tfrecord", folder / "large"),
             "tfrecord, 150 bytes each": ("tfrecord", folder / "small")}
    try:
        write_idx(files["idx"][1], rng)
        write_csv(files["csv"][1], rng)
        write_records(folder / "large", rng, 3072, 50_000)
        write_records(folder / "small", rng, 150, 200_000)
        print(f"{'file':26} {'MB':>5} {'ours GB/s':>10} {'a core':>7} {'tf.data GB/s':>13} "
              f"{'a core':>7} {'times':>6}")
        for name, (kind, path) in files.items():
            ours, peer = [], []
            for _ in range(o.rounds):
                ours.append(measure_ours(o.program, kind, path))
                peer.append(measure_theirs(kind, path))
            if ours[0][2] != peer[0][2]:
                raise SystemExit(f"{name}: {ours[0][2]} rows here, {peer[0][2]} there")
            size = path.stat().st_size / 1e9
            a, b = ([size / min(m[i] for m in side) for i in (0, 1)] for side in (ours, peer))
            print(f"{name:26} {size * 1e3:5.0f} {a[0]:10.2f} {a[1]:7.2f} {b[0]:13.3f} {b[1]:7.3f} "
                  f"{a[1] / b[1]:6.1f}", flush=True)
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


if __name__ == "__main__":
    main()
