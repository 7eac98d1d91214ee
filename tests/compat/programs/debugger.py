# SPDX-License-Identifier: Apache-2.0
"""Tensor dumps that TensorFlow's debugger (tfdbg) gets from steps with watched tensors."""
import functools
import os
import re
import socket
import tempfile
import time

from common import TARGET, error_of, np, plain, tf
from common import answer_each
from tensorflow.core.util import event_pb2
from tensorflow.python.debug.lib import debug_data, debug_utils, grpc_debug_server

IDENTITY, FILES = ["DebugIdentity"], ["file://@"]
# TensorFlow ignores a watch of "*" unless the step has another watch.
ALL = (("*", -1, IDENTITY, FILES), ("none", 0, IDENTITY, FILES))


def _content(tensor):
    try:
        return plain(np.array(tf.make_ndarray(tensor)))
    except KeyError:  # a resource, for which NumPy has no type
        return tf.as_dtype(tensor.dtype).name


def _dump(root, path):
    """Returns the contents of a dump and its path, without the parts that differ from run to run."""
    with open(path, "rb") as file:
        event = event_pb2.Event.FromString(file.read())
    name = re.sub(r"_S\d+", "_S", re.sub(r"_\d{16}$", "", os.path.relpath(path, root)))
    kind = event.WhichOneof("what")
    if kind == "log_message":
        return [name, event.log_message.message]
    if kind == "graph_def":
        return [re.sub(r"hash\d+", "hash", name)]
    value = event.summary.value[0]
    metadata = value.metadata.plugin_data
    return [name, re.sub(r"_S\d+", "_S", value.tag + " " + value.node_name), metadata.plugin_name, metadata.content.decode(),
            str(_content(value.tensor)), os.path.basename(path).endswith(f"_{event.wall_time:.0f}")]


def _dumps(root):
    return sorted(_dump(root, os.path.join(at, name)) for at, _, names in os.walk(root) for name in names)


def _config():
    """Disables the graph passes that change the names and the number of nodes."""
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return config


def _watched(fetch, feed, *watches, before=(), steps=1):
    """Runs a step and returns its results and its dumps. A watch has a node, a slot, debug ops, URLs (@ stands for
    the folder) and whether it tolerates errors."""
    with tempfile.TemporaryDirectory() as root, tf.Session(TARGET, config=_config()) as sess:
        options = tf.RunOptions()
        options.debug_options.global_step = 7
        for node, slot, ops, urls, *tolerant in watches:
            options.debug_options.debug_tensor_watch_opts.add(
                node_name=node, output_slot=slot, debug_ops=ops, debug_urls=[u.replace("@", root) for u in urls],
                tolerate_debug_op_creation_failures=bool(tolerant))
        for op in before:
            sess.run(op)
        answer = [error_of(lambda: sess.run(fetch, feed, options=options)) for _ in range(steps)]
        return [[str(a).rsplit("\\n", 1)[-1] for a in answer], _dumps(root)]


def _small():
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", [2], initializer=tf.ones_initializer(), use_resource=False)
    x = tf.placeholder(tf.float32, [2], name="x")
    return v, x, tf.add(v, x, name="y")


def _of_y(*watches, steps=1):
    v, x, y = _small()
    return _watched(y, {x: [1, 2]}, *watches, before=[v.initializer], steps=steps)


def one_tensor():
    return _of_y(("y", 0, IDENTITY, FILES), steps=2)


def all_tensors():
    return _of_y(*ALL)


def several_watches():
    return _of_y(("*", -1, IDENTITY, FILES), ("y", 0, ["DebugNanCount"], FILES))


def two_folders():
    return _of_y(("y", 0, IDENTITY, ["file://@/a", "file://@/b"]))


def watches_of_missing_tensors():
    out = []
    for watch in (("nothing", 0, IDENTITY, FILES), ("y", 3, IDENTITY, FILES), ("y", 0, [], FILES), ("y", 0, IDENTITY, [])):
        with tf.Graph().as_default():
            out.append(_of_y(watch))
    return out


def wrong_watches():
    out = []
    for node, slot, op in (("y", -1, "DebugIdentity"), ("*", 0, "DebugIdentity"), ("y", 0, "NoSuch"), ("y", 0, "DebugNumericSummary(nope=1)"),
                           ("y", 0, "DebugNumericSummary(lower_bound=zz)"), ("y", 0, "DebugNumericSummary(lower_bound)"),
                           ("y", 0, "DebugNumericSummary(lower_bound=1"), ("y", 0, "DebugNumericSummary(lower_bound=1;lower_bound=2)")):
        with tf.Graph().as_default():
            out.append(_of_y((node, slot, [op], FILES))[0])
    return out


def numbers_of_each_type():
    """DebugNanCount and DebugNumericSummary for each type that has a kernel."""
    x = tf.placeholder(tf.float32, [4], name="x")
    kinds = (tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.bool)
    fetch = [tf.identity(tf.cast(x, t), name=t.name) for t in kinds] + [tf.complex(x, x, name="complex"), tf.as_string(x, name="string")]
    ops = ["DebugNanCount", "DebugNumericSummary"]
    return _watched([f.op for f in fetch], {x: [0, 1, 5, 2]},
                    *((f.op.name, 0, ops, FILES, True) for f in fetch))


def summaries():
    """Infinities, bounds, an empty tensor, and healthy tensors that mute_if_healthy does not publish."""
    out = []
    for op in ("", "(lower_bound=-2.5;upper_bound=4)", "(mute_if_healthy=true)"):
        for feed in ([1, np.nan, np.inf, -np.inf, 0, -3, 5, np.nan], [1, 2], []):
            with tf.Graph().as_default():
                x = tf.placeholder(tf.float32, [None], name="x")
                out.append(_watched(tf.negative(x, name="y"), {x: feed}, ("y", 0, ["DebugNanCount", "DebugNumericSummary" + op], FILES)))
    return out


def a_variable_before_its_update():
    v, _, _ = _small()
    return _watched(v.assign_add([1, 1], name="up"), None, ("v", 0, IDENTITY, FILES), ("up", 0, IDENTITY, FILES), before=[v.initializer], steps=2)


def a_variable_before_its_initialiser():
    v, _, _ = _small()
    return _watched(v.initializer, None, ("v", 0, ["DebugNumericSummary"], FILES))


def loops_and_branches():
    v, x, y = _small()
    branch = tf.cond(y[0] > 1, lambda: y + 1, lambda: y - 1)
    loop = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    return _watched([branch, loop], {x: [1, 2]}, *ALL, before=[v.initializer])


def the_dump_folder():
    """Reads the dumps with TensorFlow's reader, which checks that no tensor is earlier than its inputs."""
    v, x, y = _small()
    total = tf.reduce_sum(tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + y), [0, y])[1], name="total")
    with tempfile.TemporaryDirectory() as root, tf.Session(TARGET, config=_config()) as sess:
        options, metadata = tf.RunOptions(output_partition_graphs=True), tf.RunMetadata()
        debug_utils.watch_graph(options, sess.graph, debug_urls="file://" + root)
        sess.run(v.initializer)
        sess.run(total, {x: [1, 2]}, options=options, run_metadata=metadata)
        dump = debug_data.DebugDumpDir(root, partition_graphs=metadata.partition_graphs)
        dump.set_python_graph(sess.graph)
        return [sorted(dump.devices()), plain(dump.get_tensors("total", 0, "DebugIdentity")), plain(dump.get_tensors("y", 0, "DebugIdentity")),
                dump.node_op_type("y"), sorted(dump.node_recipients("y")), dump.core_metadata._asdict()]


# ---- grpc:// URLs -----------------------------------------------------------------------------------
class _Stream(grpc_debug_server.EventListenerBaseStreamHandler):
    """Records the events of a stream."""

    def __init__(self, streams):
        super().__init__()
        self.events = []
        streams.append(self.events)

    def on_core_metadata_event(self, event):
        self.events.append(["names", event.log_message.message])

    def on_graph_def(self, graph_def, device_name, wall_time):
        debug_nodes = sorted(n.name for n in graph_def.node if n.name.startswith("__dbg_"))
        self.events.append(["graph", device_name.decode(), debug_nodes])

    def on_value_event(self, event):
        value = event.summary.value[0]
        content = np.array(tf.make_ndarray(value.tensor))
        shown = plain(content) if content.size < 10 and content.dtype != object else [list(content.shape), sum(len(x) for x in content.flat)
                                                                                     if content.dtype == object else float(content.sum())]
        metadata = value.metadata.plugin_data
        self.events.append(["value", value.tag, value.node_name, metadata.plugin_name, metadata.content.decode(), shown])


def _until_quiet(streams):
    """Waits until no event arrives. Tasks other than the master may still send after the step has ended."""
    before = None
    while before != (before := [len(s) for s in streams]):
        time.sleep(0.5)


def _streamed(fetch, feed, *watches, before=(), changes=((),), path=""):
    """Runs a step for each entry of `changes`, and returns the answers and the streams that a debug server gets. An
    entry lists requests that are made to the debug server before the step."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    streams, answers = [], []
    server = grpc_debug_server.EventListenerBaseServicer(port, functools.partial(_Stream, streams))
    server.run_server(blocking=False)
    with tf.Session(TARGET, config=_config()) as sess:
        options = tf.RunOptions()
        for node, slot, ops in watches:
            options.debug_options.debug_tensor_watch_opts.add(node_name=node, output_slot=slot, debug_ops=ops,
                                                              debug_urls=[f"grpc://127.0.0.1:{port}{path}"])
        for op in before:
            sess.run(op)
        for requests in changes:
            for request, *watch in requests:
                getattr(server, request)(*watch)
            answers.append(error_of(lambda: sess.run(fetch, feed, options=options)))
            _until_quiet(streams)
    server.stop_server(grace=0).wait()
    # The order of tensors in a stream depends on the threads.
    ordered = [[e for e in s if e[0] != "value"] + sorted((e for e in s if e[0] == "value"), key=str) for s in streams]
    return [str(answers)[:1000].replace(str(port), "PORT"), sorted(ordered, key=str)]


def _streamed_small(*watches, **more):
    v, x, y = _small()
    return _streamed(y, {x: [1, 2]}, *watches, before=[v.initializer], **more)


def streams_of_two_steps():
    return _streamed_small(("v", 0, IDENTITY), ("y", 0, ["DebugIdentity", "DebugNanCount"]), changes=((), ()))


def a_stream_with_a_path():
    return _streamed_small(("y", 0, IDENTITY), path="/a/b")


def large_values_in_streams():
    big = tf.tile(tf.constant([1., 2., 3.]), [1000000], name="big")
    text = tf.fill([3], tf.constant("q" * 3000000), name="text")
    empty = tf.zeros([0, 4], name="empty")
    return _streamed([tf.reduce_sum(big), tf.size(text), tf.size(empty)], None, *((n, 0, IDENTITY) for n in ("big", "text", "empty")))


def a_string_that_no_event_can_hold():
    text = tf.fill([1], tf.constant("q" * 5000000), name="text")
    return _streamed(tf.size(text), None, ("text", 0, IDENTITY))[0]


def gated_ops():
    """The debug server enables and disables gated debug ops. A breakpoint continues when the server replies."""
    key = ("y", 0, "DebugIdentity")
    return _streamed_small(("y", 0, ["DebugIdentity(gated_grpc=True)"]), ("v", 0, ["DebugNanCount(gated_grpc=True)"]),
                           changes=((), [("request_watch", *key)], (), [("request_unwatch", *key)], ()))


def urls_of_other_kinds():
    out = []
    for url in ("", "/tmp", "http://x/y", "grpc:/x"):
        with tf.Graph().as_default():
            try:
                text = str(_of_y(("y", 0, IDENTITY, [url])))
            except ValueError as e:  # TensorFlow's client treats the name of the debug node in the message as a tensor
                text = str(e.__context__)
            out.append(re.findall("Invalid debug target URL: .*", text))
    return out


answer_each()
