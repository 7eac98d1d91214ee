# SPDX-License-Identifier: Apache-2.0
"""Runs a function on stock servers and on ours, and compares the results."""
import itertools
import re
import tempfile
import threading

from cluster import Cluster

TOLERANCE = 1e-5
folder = tempfile.mkdtemp(prefix="compat-")
lines = []  # the reports of the current case, as (line, error)
names = itertools.count()  # numbers for folder names


class Different(Exception):
    pass


def report(name, error=None, note=""):
    lines.append((name, str(error) if error else None))
    print(f"  {'FAILED  ' if error else 'ok      '} {name}{'  ' + note if note else ''}", flush=True)
    if error:
        print("    " + str(error).replace("\n", "\n    "), flush=True)


def close(a, b, path="answer"):
    """Raises Different unless the structures and strings are equal and the numbers differ by at most TOLERANCE."""
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            raise Different(f"{path}: stock has {sorted(a)}, ours {sorted(b)}")
        for k in a:
            close(a[k], b[k], f"{path}.{k}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            close(x, y, f"{path}[{i}]")
    elif isinstance(a, float) and isinstance(b, (int, float)):
        if not abs(a - b) <= TOLERANCE * max(1, abs(a)):
            raise Different(f"{path}: stock {a!r}, ours {b!r}")
    elif a != b:
        raise Different(f"{path}: stock {a!r}, ours {b!r}")


def both(run, **tasks):
    """Calls run(cluster) for both kinds of server at the same time; returns (stock's answer, ours).

    The cluster has a ps and two workers unless `tasks` says otherwise, as in ps=2, chief=1.
    """
    got, wrong = {}, {}

    def once(name):
        try:
            with Cluster(name, f"{folder}/{name}-{next(names)}", **tasks) as cluster:
                got[name] = run(cluster.wait_ready())
                if cluster.died():
                    raise RuntimeError(cluster.died())
        except Exception as e:  # the main thread raises it
            wrong[name] = e

    def one(name):
        once(name)
        if name in wrong and name == "stock":  # stock's client sometimes hangs; Muster gets one attempt
            print(f"  once more: {str(wrong.pop(name)).splitlines()[0]}", flush=True)
            once(name)

    threads = [threading.Thread(target=one, args=(name,)) for name in ("stock", "muster")]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for name in ("stock", "muster"):
        if name in wrong:
            raise wrong[name]
    return got["stock"], got["muster"]


def checkpoint(path):
    import tensorflow.compat.v1 as tf
    latest = tf.train.latest_checkpoint(path)
    if not latest:
        raise Different(f"no checkpoint in {path}")
    reader = tf.train.load_checkpoint(latest)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def same_checkpoint(stock, ours):
    close({k: [str(v.dtype), v.tolist()] for k, v in stock.items()},
          {k: [str(v.dtype), v.tolist()] for k, v in ours.items()}, "checkpoint")


# Parts of messages that depend on the machine, the process or the time.
NOISE = [(r"^From /job:[^\n]*:\n", ""), (r"\n\t \[\[.*", ""), (r"\nAdditional GRPC.*", ""), (r"in binary running on.*", ""),
         (r"but available devices.*", ""), (r"Session [0-9a-f]{16} ", "Session H "), (r"\s+", " ")]


def core(text):
    several = re.search(r"={5,}\n[A-Z_]+: (.*?)\n={5,}", text, re.S)
    text = several.group(1) if several else text
    for pattern, to in NOISE:
        text = re.sub(pattern, to, text, flags=re.S)
    return text.strip()
