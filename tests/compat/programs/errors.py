# SPDX-License-Identifier: Apache-2.0
"""Invalid input of every kind; compares the class and the text of the error that the client gets."""
import grpc
import numpy as np
from tensorflow.python.framework import errors

from common import TARGET, answer, field, tf

names = {code: name for name, code in vars(errors).items() if name.isupper() and isinstance(code, int)}
results = {}


def case(name, call):
    try:
        call()
        results[name] = ["OK", ""]
    except tf.errors.OpError as e:
        results[name] = [names.get(e.error_code, str(e.error_code)), e.message]
    except grpc.RpcError as e:
        results[name] = [e.code().name, e.details()]


def run(sess, fetch, feeds=()):
    """Session.run without the changes that Python makes to the error message."""
    sess._extend_graph()
    tensors, targets = ([], [fetch._c_op]) if isinstance(fetch, tf.Operation) else ([fetch._as_tf_output()], [])
    return sess._call_tf_sessionrun(None, {t._as_tf_output(): np.asarray(v, t.dtype.as_numpy_dtype) for t, v in feeds},
                                    tensors, targets, None)


x = tf.placeholder(tf.float32, name="x")
shaped = tf.placeholder(tf.float32, [2, 3], name="shaped")
product = tf.matmul(x, tf.constant([[1.0, 2.0]]), name="product")
total = tf.add(x, tf.placeholder(tf.float32, name="y"), name="total")
y = total.op.inputs[1]
with tf.device("/job:ps/task:0"):
    variable = tf.Variable(3.0, name="never_initialised")
    loose = tf.Variable(tf.zeros([2]), validate_shape=False, name="loose")
    assign = tf.assign(loose, tf.zeros([3]), validate_shape=True, name="bad_assign")
reshape = tf.reshape(x, [2, 3], name="bad_reshape")
with tf.Session(TARGET) as sess:
    sess.run(loose.initializer)
    case("unfed placeholder", lambda: run(sess, product))
    case("unfed placeholder with a shape", lambda: run(sess, tf.identity(shaped, name="of_shaped")))
    case("matmul shapes", lambda: run(sess, product, [(x, np.ones((3, 2)))]))
    case("matmul of a vector", lambda: run(sess, product, [(x, np.ones(3))]))
    case("add shapes", lambda: run(sess, total, [(x, np.ones(2)), (y, np.ones(3))]))
    case("reshape", lambda: run(sess, reshape, [(x, np.ones(5))]))
    case("uninitialised variable", lambda: run(sess, variable.value()))
    case("uninitialised variable read elsewhere", lambda: run(sess, tf.negative(variable, name="minus")))
    case("assign shapes", lambda: run(sess, assign.op))
    case("a session's handle", lambda: run(sess, tf.raw_ops.GetSessionHandleV2(value=1.0)))
    case("a session's tensor", lambda: run(sess, tf.raw_ops.GetSessionTensor(handle="h", dtype=tf.float32)))
    case("a Python function", lambda: run(sess, tf.py_func(lambda v: v + 1, [tf.constant([1.0])], tf.float32)))
    case("still works", lambda: run(sess, total, [(x, np.ones(3)), (y, np.ones(3))]))



def fifo(capacity=5, types=(tf.int32,), shapes=((),)):
    return lambda name: tf.FIFOQueue(capacity, types, shapes=shapes, shared_name=name)


def shuffled(least=1, seed=3):
    return lambda name: tf.RandomShuffleQueue(5, least, tf.int32, shapes=((),), seed=seed, shared_name=name)


def fed(op, dtype=tf.int32):
    """Applies the op to a placeholder, whose shape and value only the server knows."""
    p = tf.placeholder(dtype)
    return op(p), p


shared = {"capacity": (fifo(), fifo(6)), "types": (fifo(), fifo(types=(tf.float32,))),
          "number of types": (fifo(), fifo(types=(tf.int32, tf.int32), shapes=((), ()))), "shapes": (fifo(), fifo(shapes=((2,),))),
          "no shapes": (fifo(), fifo(shapes=None)), "kind": (fifo(), shuffled()), "least": (shuffled(), shuffled(2)),
          "seed": (shuffled(), shuffled(seed=4))}
pairs = tf.FIFOQueue(9, [tf.int32, tf.int32], shapes=[[], [2]])
four = tf.constant([[1, 2], [3, 4]])
texts = {
    "gather_nd": (*fed(lambda p: tf.gather_nd(four, p)), [[0, 1], [1, 2]]),
    "scatter_nd": (*fed(lambda p: tf.scatter_nd(p, [1, 2], [6])), [[5], [6]]),
    "reverse": (*fed(lambda p: tf.reverse(four, p)), [-3]),
    "partition": (*fed(lambda p: tf.dynamic_partition(four, p, 2)[0]), [[0, 1], [2, 0]]),
    "unravel_index": (*fed(lambda p: tf.unravel_index([3], p)), [2, -3]),
    "concat_offset": (*fed(lambda p: tf.raw_ops.ConcatOffset(concat_dim=1, shape=[[2, 3, 5], p])[1]), [2, 7, 10]),
    "matrix_diag": (*fed(tf.linalg.diag_part), 3),
    "enqueue_many": (*fed(lambda p: pairs.enqueue_many([[1, 2], p])), [[1, 2, 3], [4, 5, 6]]),
    "sparse product": (*fed(lambda p: tf.sparse.sparse_dense_matmul(tf.SparseTensor(p, [1], [2, 2]), four), tf.int64), [[0, 2]]),
    "as_string": (*fed(lambda p: tf.as_string(p, precision=2)), [1]),
}
with tf.Session(TARGET) as sess:
    for name, (first, second) in shared.items():
        run(sess, first(name).queue_ref.op)
        case(f"queue of another {name}", lambda: run(sess, second(name).queue_ref.op))
    for name, (op, p, value) in texts.items():
        case(name, lambda: run(sess, op, [(p, value)]))

raw = tf.raw_ops
missing = lambda: raw.VarHandleOp(dtype=tf.float32, shape=[2], shared_name="missing")
missing_ops = {
    "read": lambda: raw.ReadVariableOp(resource=missing(), dtype=tf.float32),
    "addition": lambda: raw.AssignAddVariableOp(resource=missing(), value=[1.0, 2.0]),
    "gather": lambda: raw.ResourceGather(resource=missing(), indices=[0], dtype=tf.float32),
    "scatter": lambda: raw.ResourceScatterAdd(resource=missing(), indices=[0], updates=[1.0]),
    "shape": lambda: raw.VariableShape(input=missing()),
}
table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b", "a"], [1, 2, 3]), -1)
size = table.size()
lines = tf.data.make_initializable_iterator(tf.data.TextLineDataset(["/nonexistent/lines"]))
line = lines.get_next()
with tf.Session(TARGET) as sess:
    there = raw.VarHandleOp(dtype=tf.float32, shape=[], shared_name="there")
    run(sess, raw.AssignVariableOp(resource=there, value=1.0))  # creates the container
    for name, op in missing_ops.items():
        case("missing variable: " + name, lambda: run(sess, op()))
    update = raw.ResourceApplyGradientDescent(var=missing(), alpha=0.1, delta=[1.0, 2.0])
    case("missing variable: optimizer", lambda: run(sess, update))
    case("checkpoint below a missing folder", lambda: run(sess, raw.SaveV2(
        prefix="/nonexistent/folder/model", tensor_names=["t"], shape_and_slices=[""], tensors=[1.0])))
    case("table with two values of a key", lambda: run(sess, table.initializer))
    results["entries of that table"] = ["OK", str(sess.run(size))]
    run(sess, lines.initializer)
    for i in range(3):
        case(f"missing file, time {i}", lambda: run(sess, line))
    scatter = lambda rows, indices, n: raw.TensorListLength(input_handle=raw.TensorListScatterV2(
        tensor=tf.zeros([rows]), indices=indices, element_shape=tf.constant([], tf.int32), num_elements=n))
    case("list scatter beyond its size", lambda: run(sess, scatter(2, [3, 0], 2)))
    case("list scatter of too many rows", lambda: run(sess, scatter(2, [0], 2)))
    case("list scatter that sets the size", lambda: run(sess, scatter(2, [3, 0], -1)))
    for value in (np.nan, np.inf):
        case(f"histogram of {value}", lambda: run(sess, raw.HistogramSummary(tag="tag", values=[value])))

for device in ("/job:ps/task:7", "/job:nobody/task:0", "/device:GPU:0"):
    with tf.Graph().as_default() as graph, tf.device(device):
        c = tf.constant(1.0, name="c")
        with tf.Session(TARGET, graph=graph) as sess:
            case("no device " + device, lambda: run(sess, c))


# Requests that TensorFlow's Python API rejects before it sends them.
channel = grpc.insecure_channel(TARGET[len("grpc://"):])
call = lambda method, request: channel.unary_unary("/tensorflow.MasterService/" + method)(request, timeout=200)
create = lambda graph_def: call("CreateSession", field(1, graph_def.SerializeToString()))
with tf.Graph().as_default() as graph:
    tf.constant(1.0, name="c")
good = graph.as_graph_def()
reply = create(good)
handle = reply[2:2 + reply[1]]
step = lambda *fields: call("RunStep", field(1, handle) + b"".join(fields))
case("fetch of a node that is not there", lambda: step(field(3, b"nope:0")))
case("fetch of an output that is not there", lambda: step(field(3, b"c:3")))
case("target that is not there", lambda: step(field(4, b"nope")))
case("session that is not there", lambda: call("RunStep", field(1, b"0123456789abcdef") + field(3, b"c:0")))
case("partial run that was not set up", lambda: step(field(3, b"c:0"), field(6, b"no")))
case("extend with a wrong version",
     lambda: call("ExtendSession", field(1, handle) + field(2, good.SerializeToString()) + b"\x18\x09"))
case("extend with a known node", lambda: call("ExtendSession", field(1, handle) + field(2, good.SerializeToString())))


def library(*functions, gradient=None):
    """Returns a GraphDef with only these functions of x; each is a pair (name, op)."""
    out = tf.GraphDef()
    out.versions.CopyFrom(good.versions)
    for name, op in functions:
        f = out.library.function.add()
        f.signature.name = name
        f.signature.input_arg.add(name="x", type=tf.float32.as_datatype_enum)
        f.signature.output_arg.add(name="y", type=tf.float32.as_datatype_enum)
        f.node_def.add(name="n", op=op, input=["x"]).attr["T"].type = tf.float32.as_datatype_enum
        f.ret["y"] = "n:y:0"
    if gradient:
        out.library.gradient.add(function_name="f", gradient_func=gradient)
    return out


def extended(graph_def):
    reply = create(library(("f", "Neg"), gradient="f"))
    call("ExtendSession", field(1, reply[2:2 + reply[1]]) + field(2, graph_def.SerializeToString()) + b"\x18\x00")


case("a function twice", lambda: create(library(("f", "Neg"), ("f", "Neg"))))
case("two functions of one name", lambda: create(library(("f", "Neg"), ("f", "Abs"))))
case("a function that has the name of an op", lambda: create(library(("Neg", "Neg"))))
case("extend with a known function", lambda: extended(library(("f", "Neg"), gradient="f")))
case("extend with another function of a known name", lambda: extended(library(("f", "Abs"))))
case("extend with another gradient of a function", lambda: extended(library(("g", "Abs"), gradient="g")))


def broken(change, run=False):
    """Creates a session with a broken graph, and optionally runs its node, because a server may check a node only
    when a step needs it."""
    graph_def = tf.GraphDef()
    graph_def.CopyFrom(good)
    change(graph_def.node[0])

    def go():
        reply = create(graph_def)
        if run:
            call("RunStep", field(1, reply[2:2 + reply[1]]) + field(3, graph_def.node[0].name.encode() + b":0"))

    return go


def add_input(node):
    node.op, node.name = "Identity", "i"
    node.input.append("missing")
    del node.attr["value"]
    node.attr["T"].type = tf.float32.as_datatype_enum
    del node.attr["dtype"]


case("unknown op", broken(lambda n: setattr(n, "op", "NoSuchOp"), run=True))
case("missing input", broken(add_input))
case("bytes that are no message", lambda: call("CreateSession", b"\x0a\xff\xff\xff\xff"))
case("close", lambda: call("CloseSession", field(1, handle)))
case("run after close", lambda: step(field(3, b"c:0")))
answer(results)
