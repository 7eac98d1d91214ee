# SPDX-License-Identifier: Apache-2.0
"""RunMetadata.cost_graph of sessions that set GraphOptions.build_cost_model."""
import re

from common import TARGET, answer_each, np, tf


def _steps(every=1, after=0, steps=1, options=None):
    """Runs some steps, and returns the cost graph of each."""
    config = tf.ConfigProto()
    config.graph_options.build_cost_model = every
    config.graph_options.build_cost_model_after = after
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(tf.zeros([2, 3]), name="v")
        half = tf.negative(v, name="minus")
    x = tf.placeholder(tf.float32, [4, 2], name="x")
    product = tf.matmul(x, v, name="product")
    with tf.control_dependencies([product]):
        total = tf.reduce_sum(product, name="total")
    with tf.Session(TARGET, config=config) as sess:
        sess.run(v.initializer)
        out = []
        for _ in range(steps):
            metadata = tf.RunMetadata()
            sess.run([total, half], {x: np.ones((4, 2))}, options=options, run_metadata=metadata)
            out.append(metadata.cost_graph)
    return out


def _is_own(name):
    """False for nodes that a server adds, whose names differ between servers."""
    return not re.match(r"_|.*_S\d+$", name)


def the_nodes():
    """Each node of the program with its device, its outputs and its input nodes."""
    graph, = _steps()
    names, at, out = {}, None, {}
    for node in graph.node:  # node ids start at 0 in each task
        at = {} if node.name == "_SOURCE" else at
        at[node.id] = node.name
        names[node.name] = at
    for node in graph.node:
        if not _is_own(node.name):
            continue
        before = [names[node.name][i.preceding_node] for i in node.input_info]
        out[node.name] = [node.device, [b for b in before if _is_own(b)], len(before), node.is_final,
                          [[o.size, [d.size for d in o.shape.dim], o.shape.unknown_rank, o.dtype] for o in node.output_info]]
    return out


def the_first_and_the_last():
    graph, = _steps()
    return [[node.name, node.device, node.id] for node in graph.node if node.id < 2]


def the_costs():
    graph, = _steps()
    return min(node.compute_cost for node in graph.node) >= 0 and sum(node.compute_cost for node in graph.node) > 0


def steps_with_a_cost_graph():
    return [[bool(g.node) for g in _steps(every, after, 6)] for every, after in ((1, 0), (2, 0), (3, 0), (1, 3), (2, 3), (0, 0))]


def beside_a_trace():
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    return [bool(g.node) for g in _steps(options=options)]


answer_each()
