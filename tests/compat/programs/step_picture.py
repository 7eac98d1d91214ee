# SPDX-License-Identifier: Apache-2.0
"""Comparable parts of the RunMetadata of a traced step."""
import json
import re

from tensorflow.python.client import timeline


def picture(stats):
    """Returns the nodes that ran on each device, without times and without random edge numbers."""
    nodes = {}
    for device in stats.dev_stats:
        for n in device.node_stats:
            label = re.sub(r"_S\d+|edge_\d+_|\[[0-9.]+[GM]b/s\] |\[cpu [^]]*\] ", "", n.timeline_label)
            label = sorted(re.split(r"[(), ]+", label))  # stock exchanges the inputs of some ops
            assert n.all_start_micros > 1e15 and 0 <= n.op_end_rel_micros <= n.all_end_rel_micros < 1e7, n
            if n.node_name == "RecvTensor":  # stock records a RecvTensor when it has released the answer, which may be after the step
                assert re.match(r"\[[0-9.]+[KM]?B\] (\[[^]]*\] )?\S+ from /job:\S+ to /job:", n.timeline_label), n.timeline_label
                continue
            shapes = [[d.size for d in o.tensor_description.shape.dim] for o in n.output]
            if n.node_name != "_SOURCE":
                nodes.setdefault(device.device, []).append([n.node_name, label, shapes if "Const" not in label else []])
    chart = json.loads(timeline.Timeline(stats).generate_chrome_trace_format(show_memory=True))["traceEvents"]
    drawn = sorted(e["name"] for e in chart if e["ph"] == "X" and e["name"] not in ("NoOp", "RecvTensor"))
    return [{k: sorted(v) for k, v in nodes.items()}, drawn]
