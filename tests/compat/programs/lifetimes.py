# SPDX-License-Identifier: Apache-2.0
"""Lifetime of the state of each kind of op. Every kind below runs every script, in every variant.

A script is a list of steps; its first use opens a session.  A, B: two sessions with one graph at worker 0.
G: a session with another graph that has the same names.  W: a session with the first graph at worker 1.
  A+ changes every kind's state    A? reads it    A- closes the session    A* extends the graph and runs the new nodes
  A! resets the default container from A's server    A!c resets the variant's container, c
Only containers of closed sessions are reset: a stock server aborts when it deletes a kernel whose accumulator is gone.
"""
from tensorflow.python.ops import gen_data_flow_ops as flow, gen_dataset_ops as data, gen_io_ops as io, gen_lookup_ops as lookup
from tensorflow.python.ops import gen_resource_variable_ops as resource, gen_sparse_ops as sparse, gen_state_ops as state

import numpy as np

from common import CLUSTER, answer, plain, sys, tf, time

SCRIPTS = {
    "one session": "A+ A? A+ A?",
    "after close": "A+ A- B? B+ B?",
    "two at once": "A+ B? B+ A? B?",
    "the other closes": "A+ B+ A- B? B+ B?",
    "extended": "A+ A* A? A+ A?",
    "another graph": "A+ G? G+ A? A- G?",
    "another master": "A+ W? W+ A? A- W?",
    "reset": "A+ A- A! B? B+ B?",
    "reset of the container": "A+ A- A!c B? B+ B?",
}
VARIANTS = {
    "plain": {},
    "shared": {"shared": True},
    "container": {"container": True},
    "isolated": {"isolated": True},
    "isolated, shared": {"isolated": True, "shared": True},
    "isolated, container": {"isolated": True, "container": True},
}
ONE = tf.constant


def queue(make, *component):
    def build(name, shared):
        q = make(name, shared)
        return q.enqueue([*component, 1] if component else 1), q.size()
    return build


def old_queue(name, shared):
    q = flow.fifo_queue([tf.int32], [[]], 10, shared_name=shared, name=name)
    return flow.queue_enqueue(q, [1]), flow.queue_size(q)


def barrier(name, shared):
    b = flow.barrier([tf.float32], shared_name=shared, name=name)
    return flow.barrier_insert_many(b, ["key"], [1.0], 0), flow.barrier_ready_size(b)


def accumulator(name, shared):
    a = flow.resource_conditional_accumulator(tf.float32, [], shared_name=shared, name=name)
    return flow.resource_accumulator_apply_gradient(a, ONE(0, tf.int64), ONE(1.0)), flow.resource_accumulator_num_accumulated(a)


def old_accumulator(name, shared):
    a = flow.conditional_accumulator(tf.float32, [], shared_name=shared, name=name)
    return flow.accumulator_apply_gradient(a, ONE(0, tf.int64), ONE(1.0)), flow.accumulator_num_accumulated(a)


def sparse_accumulator(name, shared):
    a = flow.sparse_conditional_accumulator(tf.float32, [4], shared_name=shared, name=name)
    put = flow.sparse_accumulator_apply_gradient(a, ONE(0, tf.int64), ONE([1], tf.int64), ONE([1.0]), ONE([4], tf.int64), True)
    return put, flow.accumulator_num_accumulated(a)


def reader(name, shared):
    r = io.identity_reader_v2(shared_name=shared, name=name)
    q = tf.FIFOQueue(10, [tf.string], [[]], shared_name=name + "/work")
    with tf.control_dependencies([q.enqueue("x")]):
        return io.reader_read_v2(r, tf.identity(q.queue_ref)), io.reader_num_records_produced_v2(r)


def table(**more):
    def build(name, shared):
        t = lookup.hash_table_v2(tf.int64, tf.int64, shared_name=shared, name=name, **more)
        return lookup.initialize_table_v2(t, ONE([1], tf.int64), ONE([2], tf.int64)), lookup.lookup_table_size_v2(t)
    return build


def old_table(name, shared):
    t = lookup.hash_table(tf.int64, tf.int64, shared_name=shared, name=name)
    return lookup.initialize_table(t, ONE([1], tf.int64), ONE([2], tf.int64)), lookup.lookup_table_size(t)


def mutable_table(**more):
    def build(name, shared):
        t = lookup.mutable_hash_table_v2(tf.int64, tf.int64, shared_name=shared, name=name, **more)
        return lookup.lookup_table_insert_v2(t, ONE([1], tf.int64), ONE([2], tf.int64)), lookup.lookup_table_size_v2(t)
    return build


def table_of_two_functions(name, shared):
    build = mutable_table(use_node_name_sharing=True)

    @tf.function
    def change():
        with tf.control_dependencies([build(name, shared)[0]]):
            return tf.constant(0)
    return change(), tf.function(lambda: build(name, shared)[1])()


def dense_table(name, shared):
    t = lookup.mutable_dense_hash_table_v2(ONE(-1, tf.int64), ONE(-2, tf.int64), tf.int64, shared_name=shared, name=name)
    return lookup.lookup_table_insert_v2(t, ONE([1], tf.int64), ONE([2], tf.int64)), lookup.lookup_table_size_v2(t)


def iterator(make):
    def build(name, shared):
        it = make(container="", shared_name=shared, output_types=[tf.int64], output_shapes=[[]], name=name)
        return data.make_iterator(tf.data.Dataset.range(9)._variant_tensor, it), data.iterator_get_next(it, [tf.int64], [[]])
    return build


def one_shot(name, _):
    with tf.name_scope(name):
        it = tf.data.make_one_shot_iterator(tf.data.Dataset.range(99))
    following = it.get_next()
    return following, following


def stage(name, shared):
    put = flow.stage([ONE(1)], shared_name=shared or name + "/area")
    return put, flow.stage_size([tf.int32], shared_name=shared or name + "/area")


def sparse_map(name, shared):
    number = sparse.add_sparse_to_tensors_map(ONE([[0]], tf.int64), ONE([1.0]), ONE([2], tf.int64), shared_name=shared, name=name)
    return number, number


def variable(name, shared):
    v = state.variable_v2([], tf.int32, shared_name=shared, name=name)
    return state.assign(v, 7), v


def old_variable(name, shared):
    v = state.variable([], tf.int32, shared_name=shared, name=name)
    return state.assign(v, 7), v


def resource_variable(name, shared):
    v = resource.var_handle_op(tf.int32, [], shared_name=shared or name, name=name)
    return resource.assign_variable_op(v, 7), resource.read_variable_op(v, tf.int32)


def random(name, shared):
    drawn = tf.random.uniform([], 0, 1 << 30, tf.int32, seed=3, name=name)
    return drawn, drawn


def stack(name, shared):
    s = flow.stack_v2(ONE(4), tf.float32, stack_name=shared, name=name)
    return flow.stack_push_v2(s, 1.0), flow.stack_pop_v2(s, tf.float32)


def in_function(name, shared):
    @tf.function
    def count():
        q = flow.fifo_queue_v2([tf.int32], [[]], 99, shared_name=shared, name="queue")
        with tf.control_dependencies([flow.queue_enqueue_v2(q, [1])]):
            return flow.queue_size_v2(q)
    with tf.name_scope(name):
        counted = count()
    return counted, counted


KINDS = {
    "FIFOQueueV2": queue(lambda name, shared: tf.FIFOQueue(10, [tf.int32], [[]], shared_name=shared, name=name)),
    "PaddingFIFOQueueV2": queue(lambda name, shared: tf.PaddingFIFOQueue(10, [tf.int32], [[]], shared_name=shared, name=name)),
    "RandomShuffleQueueV2": queue(lambda name, shared: tf.RandomShuffleQueue(10, 0, [tf.int32], [[]], shared_name=shared, name=name)),
    "PriorityQueueV2": queue(lambda name, shared: tf.PriorityQueue(10, [tf.int32], [[]], shared_name=shared, name=name), np.int64(1)),
    "FIFOQueue": old_queue,
    "Barrier": barrier,
    "ResourceConditionalAccumulator": accumulator,
    "ConditionalAccumulator": old_accumulator,
    "SparseConditionalAccumulator": sparse_accumulator,
    "IdentityReaderV2": reader,
    "HashTableV2": table(),
    "HashTableV2, sharing by node name": table(use_node_name_sharing=True),
    "HashTable": old_table,
    "MutableHashTableV2": mutable_table(),
    "MutableHashTableV2, sharing by node name": mutable_table(use_node_name_sharing=True),
    "MutableHashTableV2, sharing by node name between functions": table_of_two_functions,
    "MutableDenseHashTableV2": dense_table,
    "IteratorV2": iterator(data.iterator_v2),
    "Iterator": iterator(data.iterator),
    "OneShotIterator": one_shot,
    "Stage": stage,
    "AddSparseToTensorsMap": sparse_map,
    "VariableV2": variable,
    "Variable": old_variable,
    "VarHandleOp": resource_variable,
    "RandomUniformInt": random,
    "StackV2": stack,
    "FIFOQueueV2 in a function": in_function,
}


def build(scope, shared=False, container=False, isolated=False):
    """Builds a graph with one op of each kind, and returns (change, read) of each. Scopes do not share state."""
    graph = tf.Graph()
    with graph.as_default(), tf.device("/job:ps/task:0"), graph.container(scope + ".c" if container else ""):
        return graph, {k: KINDS[k](f"{scope}_k{i}", f"{scope}.k{i}" if shared else "") for i, k in enumerate(KINDS)}


def attempt(run):
    try:
        value = plain(run())
        return value if value is None or isinstance(value, (int, float)) else value[0]
    except tf.errors.OpError as e:
        print(type(e).__name__, e.message.splitlines()[-1], file=sys.stderr)
        return type(e).__name__


def play(script, scope, **variant):
    """Runs the script, and returns the results of its reads by kind."""
    out = {k: [] for k in KINDS}
    graph, ops = build(scope, **variant)
    graphs = {"G": build(scope, **variant)}
    config = tf.ConfigProto(isolate_session_state=variant.get("isolated", False))
    options = tf.RunOptions(timeout_in_ms=20000)
    sessions = {}
    for who, verb in ((step[0], step[1:]) for step in script.split()):
        target = "grpc://" + CLUSTER["worker"][who == "W"]
        g, mine = graphs.get(who, (graph, ops))
        if verb[0] == "!":
            tf.Session.reset(target, [scope + ".c"] if verb == "!c" else None)
            continue
        if who not in sessions:
            sessions[who] = tf.Session(target, g, config)
        session = sessions[who]
        if verb == "-":
            session.close()
            time.sleep(0.3)  # stock deletes a session's kernels a moment later, and aborts if a reset precedes the deletion
        elif verb == "*":
            with g.as_default():
                session.run(ONE(1) + 1)
        else:
            for k, (change, read) in mine.items():
                got = attempt(lambda: session.run(read if verb == "?" else change, options=options))
                if verb == "?":
                    out[k].append(got)
                elif isinstance(got, str):
                    out[k].append("put: " + got)
    for session in sessions.values():
        attempt(session.close)
    return out


results = {}
for variant, options in VARIANTS.items():
    for name, script in SCRIPTS.items():
        if {variant, name}.isdisjoint(sys.argv[1:]) and sys.argv[1:]:
            continue
        scope = f"s{len(results)}"
        for kind, got in play(script, scope, **options).items():
            results[f"{kind}: {variant}: {name}"] = got
answer(results)
