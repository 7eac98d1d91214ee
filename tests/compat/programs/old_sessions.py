# SPDX-License-Identifier: Apache-2.0
"""Sessions, hooks, savers and graphs as old scripts use them, each program of another kind."""
import os
import shutil
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.client import timeline

from common import CLUSTER, TARGET, answer_each, error_of, forget, plain

folder = tempfile.mkdtemp()
WORKER = "/job:worker/task:0"


def _setter():
    return tf.device(tf.train.replica_device_setter(worker_device=WORKER, cluster=tf.train.ClusterSpec(CLUSTER)))


def _line(rate=0.1):
    """A least-squares line; returns x, loss, train, variables."""
    x = tf.placeholder_with_default(np.linspace(-1, 1, 8).astype(np.float32), [None], "x")
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean((w * x + b - (3 * x - 1)) ** 2, name="loss")
    step = tf.train.get_or_create_global_step()
    return x, loss, tf.train.GradientDescentOptimizer(rate).minimize(loss, step), [w, b, step]


def critical_sections():
    """A CriticalSection serializes concurrent updates within a step."""
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer(), use_resource=True)
        section = tf.CriticalSection(shared_name="one")

        def turn():
            old = v.read_value()
            with tf.control_dependencies([old]):
                with tf.control_dependencies([v.assign(old + 1)]):
                    return tf.identity(old)
        results = [section.execute(turn) for _ in range(5)]
        other = section.execute(lambda: v.read_value() * 2, exclusive_resource_access=False)
        with tf.control_dependencies([*results, other]):
            end = tf.identity(v.read_value())
    with tf.Session(TARGET) as s:
        s.run(tf.global_variables_initializer())
        return [plain([sorted(s.run(results)), s.run(v)]) for _ in range(3)] + plain([s.run(end)])


def partial_steps():
    with tf.device(WORKER):
        a, b, c = (tf.placeholder(tf.float32, []) for _ in range(3))
        first = a + b
        second = first * c
    with tf.Session(TARGET) as s:
        out = []
        for k in range(3):
            h = s.partial_run_setup([first, second], [a, b, c])
            r = s.partial_run(h, first, {a: 1.0 + k, b: 2.0})
            out.append(plain([r, s.partial_run(h, second, {c: r * 2})]))
        return out


def callables():
    x, loss, train, (w, b, step) = _line()
    with tf.Session(TARGET) as s:
        s.run(tf.global_variables_initializer())
        f = s.make_callable([loss, train], [x], accept_options=True)
        g = s.make_callable({"w": w, "more": [b, step]})
        data = np.linspace(0, 1, 4).astype(np.float32)
        out = [plain(f(data)[0]) for _ in range(3)]
        meta = tf.RunMetadata()
        out.append(plain(f(data, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=meta)[0]))
        return out + [plain(g()), len(meta.step_stats.dev_stats) > 0]


def a_traced_step():
    """Devices, nodes, times and memory in the RunMetadata of a traced step, for a timeline and the profiler."""
    with _setter():
        x, loss, train, _ = _line()
    with tf.Session(TARGET) as s:
        s.run(tf.global_variables_initializer())
        meta = tf.RunMetadata()
        s.run(train, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True), run_metadata=meta)
        chart = timeline.Timeline(meta.step_stats).generate_chrome_trace_format(show_memory=True)
        nodes = {n.node_name for d in meta.step_stats.dev_stats for n in d.node_stats}
        devices = sorted(d.device.split("/device")[0] for d in meta.step_stats.dev_stats)
        used = tf.profiler.ProfileOptionBuilder(tf.profiler.ProfileOptionBuilder.time_and_memory()).with_empty_output().build()
        profile = tf.profiler.profile(s.graph, run_meta=meta, cmd="op", options=used)
        assert profile.total_exec_micros > 0 and profile.total_requested_bytes > 0, profile
        return sorted(set(devices)), "ApplyGradientDescent" in chart, sorted(n for n in nodes if n.endswith("/ApplyGradientDescent")), len(meta.partition_graphs) >= 2


def graphs_that_travel():
    """export_meta_graph, import with a prefix, frozen variables, and import_graph_def with an input map."""
    where = folder + "/meta"
    x, loss, train, (w, b, step) = _line()
    tf.add_to_collection("things", loss)
    saver = tf.train.Saver()
    with tf.Session(TARGET) as s:
        s.run(tf.global_variables_initializer())
        for _ in range(3):
            s.run(train)
        saver.save(s, where, global_step=step)
        frozen = tf.graph_util.convert_variables_to_constants(s, tf.get_default_graph().as_graph_def(), ["loss"])
        out = [plain(s.run([loss, w]))]
    forget()
    with tf.Graph().as_default():
        again = tf.train.import_meta_graph(where + "-3.meta", clear_devices=True)
        with tf.Session(TARGET) as s:
            again.restore(s, tf.train.latest_checkpoint(folder, "checkpoint"))
            out.append(plain([s.run(tf.get_collection("things")[0]), s.run("w:0"), s.run("global_step:0")]))
            s.run(tf.get_collection("train_op")[0])
            out.append(plain(s.run("loss:0", {"x:0": [1.0, 2.0]})))
    with tf.Graph().as_default():
        y, = tf.import_graph_def(tf.graph_util.remove_training_nodes(frozen), {"x": tf.constant([0.5, 1.5])}, ["loss:0"], name="inner")
        with tf.Session(TARGET) as s:
            out.append(plain(s.run(y)))
    return out


def saved_models():
    """simple_save and a SavedModelBuilder with assets and a table; a session of the cluster loads them."""
    where = folder + "/model"
    words = folder + "/words.txt"
    with open(words, "w") as f:
        f.write("one\ntwo\nthree\n")
    x, loss, train, (w, b, step) = _line()
    asset = tf.constant(words)
    tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, asset)
    table = tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(asset, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), 1)
    asked = tf.placeholder(tf.string, [None], "asked")
    found = tf.identity(table.lookup(asked), "found")
    with tf.Session(TARGET) as s:
        s.run([tf.global_variables_initializer(), tf.tables_initializer()])
        s.run(train)
        builder = tf.saved_model.builder.SavedModelBuilder(where)
        signature = tf.saved_model.signature_def_utils.predict_signature_def({"asked": asked, "x": x}, {"found": found, "loss": loss})
        builder.add_meta_graph_and_variables(s, ["serve"], {"serving_default": signature}, assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS), main_op=tf.tables_initializer(), strip_default_attrs=True)
        builder.save()
        out = [plain(s.run([loss, w]))]
    forget()
    with tf.Graph().as_default(), tf.Session(TARGET) as s:
        meta = tf.saved_model.loader.load(s, ["serve"], where)
        names = meta.signature_def["serving_default"].outputs
        out.append(plain(s.run([names["found"].name, names["loss"].name], {"asked:0": ["two", "four"], "x:0": [1.0]})))
    return out


def savers():
    """Saves and restores V1 and V2 checkpoints: renamed variables, a subset, max_to_keep, checkpoint state files,
    changed shapes."""
    where = folder + "/saves"
    os.makedirs(where)
    out = []
    with _setter():
        w = tf.get_variable("w", [4, 2], initializer=tf.random_normal_initializer(seed=1), partitioner=tf.fixed_size_partitioner(2))
        v = tf.get_variable("v", [3], tf.float64, initializer=tf.ones_initializer())
        n = tf.get_variable("n", [], tf.int64, initializer=tf.constant_initializer(5))
        t = tf.get_variable("t", [2], tf.string, initializer=tf.constant_initializer(["a", "bc"]))
        saver, kept = tf.train.Saver(max_to_keep=2), tf.train.Saver({"other": v}, pad_step_number=True, save_relative_paths=True)
        old = tf.train.Saver({"v": v, "n": n}, write_version=tf.train.SaverDef.V1)
    with tf.Session(TARGET) as s:
        s.run(tf.global_variables_initializer())
        for k in range(4):
            s.run(n.assign_add(1))
            saver.save(s, where + "/a", k, latest_filename="a_latest", write_meta_graph=False)
        kept.save(s, where + "/k", 7, latest_filename="k_latest")
        out.append(error_of(lambda: old.save(s, where + "/old", 1, "old_latest")[-5:]))
        out += [sorted(f for f in os.listdir(where) if "data" in f), os.path.basename(tf.train.get_checkpoint_state(where, "k_latest").model_checkpoint_path)]
        s.run([n.assign(0), v.assign(v * 3)])
        saver.restore(s, tf.train.latest_checkpoint(where, "a_latest"))
        out.append(plain(s.run([n, v, t])))
        s.run(v.assign(v * 3))
        kept.restore(s, where + "/k-00000007")
        out.append(plain(s.run(v)))
        if out[0][0] == "no error":
            s.run([n.assign(0), v.assign(v * 3)])
            old.restore(s, where + "/old-1")
            out.append(plain(s.run([n, v])))
        for sharded in (False, True):  # a prefix that ends in a folder, as "model.weights/"
            inside = f"{where}/inside-{sharded}/"
            os.makedirs(inside)
            tf.train.Saver(sharded=sharded).save(s, inside)
            s.run([n.assign(0), v.assign(v * 3)])
            tf.train.Saver().restore(s, inside)
            out.append(plain(s.run([n, v])) + sorted(os.listdir(inside)))
    forget()
    with tf.Graph().as_default():
        other = tf.get_variable("scope/w", [4, 2], initializer=tf.zeros_initializer())
        tf.train.init_from_checkpoint(tf.train.latest_checkpoint(where, "a_latest"), {"w": other, "n": tf.get_variable("m", [], tf.int64)})
        with tf.Session(TARGET) as s:
            s.run(tf.global_variables_initializer())
            out.append(plain(s.run([other, "m:0"])))
            out.append(error_of(lambda: tf.train.Saver({"v": tf.get_variable("wrong", [4], tf.float64)}).restore(s, tf.train.latest_checkpoint(where, "a_latest")))[0])
    return out


def pretrained_models_of_the_v1_format():
    """Restores V1 checkpoints as slim published them, in one file or several and without an index: a subset, renamed
    variables, other partitions."""
    one, several = folder + "/vgg_16.ckpt", folder + "/sharded.ckpt"
    with tf.Graph().as_default(), tf.Session() as here:
        values = {"conv/weights": np.random.RandomState(1).normal(size=(40, 30)).astype(np.float32), "global_step": np.int64(7), "words": np.array([b"a", b"", b"bcd"], object),
                  "half": np.arange(6).astype(np.float16), "flags": np.array([True, False]), "pair": np.array([1 + 2j], np.complex64), "tiny": np.arange(-3, 3).astype(np.int8)}
        for name, value in values.items():
            tf.Variable(value, name=name)
        tf.get_variable("table", [5, 3], initializer=tf.random_normal_initializer(seed=1), partitioner=tf.fixed_size_partitioner(2))
        here.run(tf.global_variables_initializer())
        for path, sharded in ((one, False), (several, True)):
            tf.train.Saver(write_version=tf.train.SaverDef.V1, sharded=sharded).save(here, path, write_meta_graph=False, write_state=False)
    out = []
    for path in (one, several + "-?????-of-00001"):
        for parts in (1, 3):
            with tf.Graph().as_default():
                with _setter():
                    w = tf.get_variable("mine", [40, 30])
                    table = tf.get_variable("table", [5, 3], partitioner=tf.fixed_size_partitioner(parts))
                    others = [tf.Variable(tf.zeros_like(tf.constant(v)) if v.dtype != object else tf.constant([""] * 3), name=k) for k, v in values.items() if "/" not in k]
                with tf.Session(TARGET) as s:
                    tf.train.Saver({"conv/weights": w, "table": table, **{v.op.name: v for v in others}}).restore(s, path)
                    out.append(plain(s.run([w, tf.convert_to_tensor(table)])) + [str(plain(x)) for x in s.run(others)])
            forget()
    with tf.Session(TARGET) as s:
        load = tf.raw_ops
        for op in (load.Restore(file_pattern=one, tensor_name="tiny", dt=tf.int8), load.RestoreSlice(file_pattern=one, tensor_name="conv/weights", shape_and_slice="40 30 3,2:0,4", dt=tf.float32),
                   load.Restore(file_pattern=one, tensor_name="missing", dt=tf.int8), load.Restore(file_pattern=one, tensor_name="tiny", dt=tf.int32), load.Restore(file_pattern=folder + "/none", tensor_name="tiny", dt=tf.int8)):
            got = error_of(lambda: s.run(op))
            out.append(got if got[0] == "no error" else got[0])
    return out


def listeners_and_final_steps():
    """A CheckpointSaverListener, a custom hook that stops training, and the readiness checks of a Scaffold."""
    where = folder + "/listened"
    said = []

    class Listener(tf.train.CheckpointSaverListener):
        def begin(self):
            said.append("begin")

        def before_save(self, session, step):
            said.append(f"before {step}")

        def after_save(self, session, step):
            said.append(f"after {step}")
            return step >= 6

        def end(self, session, step):
            said.append(f"end {step}")
    with _setter():
        x, loss, train, (w, b, step) = _line()
        unready = tf.report_uninitialized_variables()
        ready = tf.train.Scaffold(init_fn=lambda scaffold, s: said.append("init"), local_init_op=tf.group(tf.local_variables_initializer(), tf.tables_initializer()),
                                  ready_for_local_init_op=unready, saver=tf.train.Saver(max_to_keep=1))
    hooks = [tf.train.CheckpointSaverHook(where, save_steps=2, listeners=[Listener()], scaffold=ready), tf.train.StopAtStepHook(num_steps=50), tf.train.FeedFnHook(lambda: {x: [0.5, 1.0]})]
    with tf.train.MonitoredTrainingSession(TARGET, True, None, ready, hooks, save_summaries_steps=None, log_step_count_steps=None) as s:
        out = [plain(s.run_step_fn(lambda step_context: step_context.session.run(loss, {x: [1.0]})))]
        while not s.should_stop():
            s.run(train)
    return out, said


def a_loss_that_is_no_number():
    x, loss, train, (w, b, step) = _line(1e30)
    checked = tf.add_check_numerics_ops()  # must precede the Saver of a session, whose Restore it would run
    out = []
    for fail in (True, False):
        try:
            with tf.train.MonitoredTrainingSession(TARGET, hooks=[tf.train.NanTensorHook(loss, fail_on_nan_loss=fail), tf.train.StopAtStepHook(20)], log_step_count_steps=None) as s:
                k = 0
                while not s.should_stop():
                    k += 1
                    s.run(train)
            out.append(["stopped", k])
        except tf.train.NanLossDuringTrainingError as e:
            out.append([str(e)[:20], k])
        forget()
    with tf.Session(TARGET) as s:
        s.run(tf.global_variables_initializer())
        s.run(train)
        out.append([error_of(lambda: [s.run([train, checked]) for _ in range(5)])[0]])
    return out


def a_writer_of_summaries():
    """Summaries of scalars, images, audio, histograms and tensors, with RunMetadata; reads the event file back."""
    where = folder + "/seen"
    tf.summary.scalar("s", tf.constant(1.5))
    tf.summary.audio("sound", tf.constant(np.sin(np.arange(400).reshape(2, 200) / 9.0).astype(np.float32)), 8000, 2)
    tf.summary.image("i", tf.constant(np.arange(48).reshape(1, 4, 4, 3).astype(np.uint8)))
    tf.summary.histogram("h", tf.constant([1.0, 2, 2, 5]))
    tf.summary.tensor_summary("t", tf.constant([[1, 2]]), summary_description="d", display_name="n")
    merged = tf.summary.merge_all()
    writer = tf.summary.FileWriter(where, tf.get_default_graph())
    with tf.Session(TARGET) as s:
        meta = tf.RunMetadata()
        writer.add_summary(s.run(merged, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=meta), 3)
        writer.add_run_metadata(meta, "step3")
        writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 1)
    writer.close()
    out = []
    for e in tf.train.summary_iterator(where + "/" + os.listdir(where)[0]):
        out.append(e.WhichOneof("what"))
        for v in e.summary.value:
            out.append([v.tag, v.WhichOneof("value"), v.audio.length_frames, len(v.audio.encoded_audio_string), v.audio.content_type, sum(v.audio.encoded_audio_string), sum(v.tensor.tensor_content)])
    return out


def variables_of_every_kind():
    """Variables that change shape, counters, slice and scatter updates, local variables, dependent initializers."""
    with _setter():
        a = tf.Variable(tf.ones([2]), name="a", validate_shape=False)
        b = tf.Variable(a.initialized_value() * 2, name="b", validate_shape=False)
        grow = tf.assign(a, tf.concat([a, [5.0]], 0), validate_shape=False)
        c = tf.Variable(0, name="c")
        until = c.count_up_to(3)
        m = tf.Variable(tf.zeros([3, 4]), name="m")
        part = m[1, 1:3].assign([7.0, 8.0])
        local = tf.Variable(3.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
        r = tf.get_variable("r", initializer=tf.range(6.0), use_resource=True)
        sparse = [r.scatter_add(tf.IndexedSlices(tf.constant([1.0, 2]), tf.constant([1, 1]))), r[2:4].assign([0.0, 9.0])]
        scatter = [tf.scatter_nd_update(m, [[0, 0], [2, 3]], [1.0, 2.0]), tf.scatter_mul(m, [1], [[2.0] * 4]), tf.scatter_max(m, [0], [[0.5] * 4])]
        swap = tf.tuple([tf.identity(a), tf.identity(c)])
        has = [tf.is_variable_initialized(a), tf.report_uninitialized_variables(tf.global_variables())]
    with tf.Session(TARGET) as s:
        out = [plain(s.run(has))]
        s.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        out += [plain(s.run(has)), plain(s.run(grow)), plain(s.run([a, b, local, tf.shape(a)]))]
        out.append([error_of(lambda: s.run(until)) for _ in range(4)])
        s.run(part)
        for op in sparse + scatter:
            s.run(op)
        c.load(11, s)
        return out + plain(s.run([m, r, c, *swap]))


def several_graphs_and_sessions():
    """Threads that share a session, a session that is extended many times, and an InteractiveSession."""
    import threading
    out = []
    with tf.Graph().as_default() as g:
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        up = v.assign_add(1.0, use_locking=True)
        with tf.Session(TARGET) as s:
            s.run(v.initializer)
            threads = [threading.Thread(target=lambda: [s.run(up) for _ in range(25)]) for _ in range(4)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            out.append(plain(s.run(v)))
            for k in range(20):
                out.append(plain(s.run(v * k)))
            g.finalize()
    s = tf.InteractiveSession(TARGET, graph=g)
    out.append(plain(v.eval()))
    s.close()
    return out


def printed_and_grouped():
    """Print, print_v2, tuple, group, identity_n, no_op, control dependencies, cond with enqueues, switch_case."""
    x = tf.placeholder(tf.float32, [None])
    y = tf.Print(x, [tf.shape(x), x], "x: ", first_n=2, summarize=3)
    with tf.control_dependencies([tf.print("seen", x, {"k": y}, summarize=2), tf.no_op()]):
        z = tf.identity(y)
    n = tf.tuple([z, z * 2], control_inputs=[tf.group(y, z)])
    q = tf.FIFOQueue(5, [tf.float32])
    pushed = tf.cond(tf.reduce_sum(x) > 2, lambda: tf.group(q.enqueue([x[0]]), q.enqueue([x[1]])), lambda: tf.no_op())
    s1 = tf.switch_case(tf.cast(x[0], tf.int32), [lambda: z, lambda: -z], default=lambda: z * 0)
    with tf.Session(TARGET) as s:
        out = []
        for data in ([0.0, 1], [1.0, 2], [5.0, 6]):
            s.run(pushed, {x: data})
            out.append(plain(s.run([n, q.size(), s1], {x: data})))
        return out


def summaries_written_by_the_task():
    """The server writes the events of TensorFlow 2's tf.summary and of the older summary ops."""
    summary = tf.compat.v2.summary
    where = folder + "/their"
    writer = summary.create_file_writer(where, flush_millis=100)
    step = tf.get_variable("s", [], tf.int64, initializer=tf.zeros_initializer(), use_resource=True)
    with writer.as_default():
        ops = [summary.scalar("a", tf.constant(2.5), step=step), summary.histogram("h", tf.constant([1.0, 2.0, 4.0]), step=step), summary.text("words", "seen", step=step),
               tf.raw_ops.WriteScalarSummary(writer=writer._resource, step=step, tag="old", value=tf.constant(3, tf.int32)), tf.raw_ops.WriteHistogramSummary(writer=writer._resource, step=step, tag="oldh", values=tf.constant([1.0, 5.0]))]
    with tf.Session(TARGET) as s:
        s.run([step.initializer, writer.init()])
        for _ in range(3):
            s.run(ops)
            s.run(step.assign_add(1))
        s.run(writer.flush())
        s.run(writer.close())
        late = error_of(lambda: s.run(ops[0]))[0]
    return late, sorted([e.step, v.tag, v.simple_value, v.histo.sum, v.metadata.plugin_data.plugin_name, plain(tf.make_ndarray(v.tensor)) if v.HasField("tensor") else 0] for f in os.listdir(where) for e in tf.train.summary_iterator(where + "/" + f) for v in e.summary.value)


def wrong_runs():
    """Common errors: missing feeds, uninitialized variables, invalid shapes and indices, missing files, closed
    queues."""
    v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
    x = tf.placeholder(tf.float32, [None, 2], "x")
    never = tf.placeholder(tf.int32, [], "never")
    unset = tf.get_variable("unset", [2], use_resource=True)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), 0)
    padded = tf.PaddingFIFOQueue(3, [tf.int32], [[None]], shared_name="padded")
    cases = {"not fed": lambda s: s.run(x + 1), "not set": lambda s: s.run(v + 1), "resource not set": lambda s: s.run(unset + 1), "table": lambda s: s.run(table.lookup(tf.constant(["a"]))),
             "shapes": lambda s: s.run(tf.matmul(x, x), {x: [[1, 2], [3, 4], [5, 6]]}), "gather": lambda s: s.run(tf.gather([1, 2, 3], never), {never: 7}),
             "assert": lambda s: s.run(tf.Assert(never > 3, [never, "is too small", tf.constant([1.5, 2])]), {never: 1}), "equal": lambda s: s.run(tf.assert_equal(never, 4, message="not four"), {never: 1}),
             "nan": lambda s: s.run(tf.check_numerics(tf.log(tf.to_float(never)), "a log"), {never: -1}), "reshape": lambda s: s.run(tf.reshape(tf.range(6), [never, 4]), {never: 2}),
             "number": lambda s: s.run(tf.string_to_number(tf.as_string(tf.constant("x1")))), "divide": lambda s: s.run(tf.constant(4) // never, {never: 0}),
             "label": lambda s: s.run(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[never], logits=[[0.1, 0.2]]), {never: 5}), "concat": lambda s: s.run(tf.concat([x, tf.ones([never, 3])], 1), {x: [[1, 2]], never: 2}),
             "file": lambda s: s.run(tf.read_file("/no/such/file")), "restore": lambda s: tf.train.Saver({"nothing": v}).restore(s, folder + "/nothing"),
             "slice": lambda s: s.run(tf.slice(tf.range(5), [never], [4]), {never: 3}), "squeeze": lambda s: s.run(tf.squeeze(tf.fill([never, 2], 1), 0), {never: 3}), "decode": lambda s: s.run(tf.decode_csv("1,2,3", [[0], [0]])),
             "name": lambda s: s.run("nothing:0"), "inverse": lambda s: s.run(tf.matrix_inverse(tf.zeros([2, 2]) + tf.to_float(never)), {never: 0}), "pad": lambda s: s.run(tf.pad(tf.range(3), [[never, 0]]), {never: -1}),
             "conv": lambda s: s.run(tf.nn.conv2d(tf.reshape(x, [1, 1, 1, -1]), tf.ones([1, 1, 3, 1]), [1] * 4, "SAME"), {x: [[1, 2]]}), "loop": lambda s: s.run(tf.while_loop(lambda i: i < 3, lambda i: i + 1 // never, [never]), {never: 0}),
             "update": lambda s: s.run(tf.scatter_update(v, [never], [1.0]), {never: 9}), "one of": lambda s: s.run(tf.stack([tf.range(never), tf.range(2)]), {never: 3}),
             "key": lambda s: (s.run(v.initializer), tf.train.Saver([v]).save(s, folder + "/some"), s.run(tf.raw_ops.RestoreV2(prefix=folder + "/some", tensor_names=["nothing"], shape_and_slices=[""], dtypes=[tf.float32]))),
             "closed": lambda s: (s.run(padded.close()), s.run(padded.enqueue([[1]]))), "closed, one": lambda s: s.run(padded.dequeue()), "closed, many": lambda s: s.run(padded.dequeue_many(2)), "closed, up to": lambda s: s.run(padded.dequeue_up_to(2))}
    out = {}
    with tf.Session(TARGET) as s:
        for name, run in cases.items():
            try:
                got = error_of(lambda: run(s))
            except (ValueError, KeyError, TypeError) as e:  # the client raises it
                got = [type(e).__name__, ""]
            out[name] = [got[0], _words(str(got[1]))]
    return out


def _words(text):
    """Returns the first line of the error that is not a heading, without the parts that depend on the process or
    machine."""
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith(("Graph execution error", "Detected at", "File ", "Node:", "From /job", "[[", "(0)", "(1)", "Original stack", "2 root", "0 success", "0 deriv")):
            return line.split("binary running on")[0].split("; expected one of")[0].split("; known devices")[0].split(" but available devices")[0].split("defined at")[0][:120]
    return text[:60]


if __name__ == "__main__":
    answer_each(forget)
    shutil.rmtree(folder, ignore_errors=True)
