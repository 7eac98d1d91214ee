# SPDX-License-Identifier: Apache-2.0
"""Sends graphs that no client library builds, and compares the answers of CreateSession, ExtendSession and RunStep.

A graph is a dictionary of nodes: name: (op, inputs, attributes).  "c" is a constant of every graph.
"""
import grpc
import sys

from common import TARGET, answer, field, tf

CALLS = grpc.insecure_channel(TARGET[len("grpc://"):])
FLOAT, INT, STRING, INT64, RESOURCE = tf.float32, tf.int32, tf.string, tf.int64, tf.resource
SUM = {"T": FLOAT, "Tidx": INT, "keep_dims": False}
ADD = {"T": FLOAT}
QUEUE = {"component_types": [FLOAT], "shapes": [], "capacity": 3, "container": "", "shared_name": ""}


def shape(*dims):
    out = tf.AttrValue()
    out.shape.SetInParent()
    for d in dims:
        out.shape.dim.add().size = d
    return out


def function(name):
    out = tf.AttrValue()
    out.func.name = name
    return out


def placeholder(name):
    return tf.AttrValue(placeholder=name)


GRAPHS = {
    # attributes
    "unknown attribute": {"n": ("Add", ["c", "c"], {"T": FLOAT, "colour": 3})},
    "unknown attribute with an underscore": {"n": ("Add", ["c", "c"], {"T": FLOAT, "_colour": 3})},
    "attribute of another op": {"n": ("Identity", ["c"], {"T": FLOAT, "transpose_a": True})},
    "missing attribute": {"n": ("Add", ["c", "c"], {})},
    "missing attribute that has a default": {"n": ("Sum", ["c", "i"], {"T": FLOAT})},
    "missing value of a constant": {"n": ("Const", [], {"dtype": FLOAT})},
    "missing type of a constant": {"n": ("Const", [], {"value": 1.0})},
    "two missing attributes": {"n": ("Const", [], {})},
    "int for a type": {"n": ("Add", ["c", "c"], {"T": 1})},
    "string for a type": {"n": ("Add", ["c", "c"], {"T": "float"})},
    "int for a bool": {"n": ("Sum", ["c", "i"], {**SUM, "keep_dims": 1})},
    "bool for an int": {"n": ("FIFOQueueV2", [], {**QUEUE, "capacity": True})},
    "float for an int": {"n": ("FIFOQueueV2", [], {**QUEUE, "capacity": 1.5})},
    "int for a string": {"n": ("FIFOQueueV2", [], {**QUEUE, "shared_name": 1})},
    "type for a list of types": {"n": ("FIFOQueueV2", [], {**QUEUE, "component_types": FLOAT})},
    "list of ints for a list of types": {"n": ("FIFOQueueV2", [], {**QUEUE, "component_types": [1]})},
    "int for a float": {"n": ("LeakyRelu", ["c"], {"T": FLOAT, "alpha": 1})},
    "string for a shape": {"n": ("Placeholder", [], {"dtype": FLOAT, "shape": "[]"})},
    "float for a tensor": {"n": ("Const", [], {"dtype": FLOAT, "value": tf.AttrValue(f=1.0)})},
    "string for a function": {"n": ("PartitionedCall", ["c"], {"Tin": [FLOAT], "Tout": [FLOAT], "f": "f"})},
    "function that is not there": {"n": ("PartitionedCall", ["c"], {"Tin": [FLOAT], "Tout": [FLOAT], "f": function("no")})},
    "attribute without a value": {"n": ("Add", ["c", "c"], {"T": tf.AttrValue()})},
    "placeholder for a type": {"n": ("Add", ["c", "c"], {"T": placeholder("T")})},
    "type that is not allowed": {"n": ("Sum", ["s", "i"], {**SUM, "T": STRING})},
    "index type that is not allowed": {"n": ("Sum", ["c", "c"], {**SUM, "Tidx": FLOAT})},
    "string that is not allowed": {"n": ("Conv2D", ["c", "c"], {"T": FLOAT, "strides": [1, 1, 1, 1], "padding": "MAYBE"})},
    "number below its minimum": {"n": ("Pack", [], {"T": FLOAT, "N": 0, "axis": 0})},
    "negative number": {"n": ("AddN", [], {"T": FLOAT, "N": -1})},
    "list below its minimum": {"n": ("QueueDequeueV2", ["q"], {"component_types": [], "timeout_ms": -1})},
    "type that is none": {"n": ("Add", ["c", "c"], {"T": tf.AttrValue(type=99)})},
    "type zero": {"n": ("Identity", ["c"], {"T": tf.AttrValue(type=0)})},
    "reference as a type": {"n": ("Identity", ["c"], {"T": tf.AttrValue(type=101)})},
    "constant of another type": {"n": ("Const", [], {"dtype": INT, "value": 1.0})},
    "constant with a negative size": {"n": ("Const", [], {"dtype": FLOAT, "value": tf.AttrValue(
        tensor=tf.make_tensor_proto(1.0).__class__.FromString(b"\x08\x01\x12\x0d\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))})},
    # inputs
    "too few inputs": {"n": ("Add", ["c"], ADD)},
    "too many inputs": {"n": ("Add", ["c", "c", "c"], ADD)},
    "no inputs": {"n": ("Add", [], ADD)},
    "input of an op without": {"n": ("Const", ["c"], {"dtype": FLOAT, "value": 1.0})},
    "fewer inputs than N": {"n": ("AddN", ["c"], {"T": FLOAT, "N": 2})},
    "more inputs than N": {"n": ("AddN", ["c", "c"], {"T": FLOAT, "N": 1})},
    "fewer inputs than types": {"n": ("IdentityN", ["c"], {"T": [FLOAT, FLOAT]})},
    "input of another type": {"n": ("Add", ["c", "i"], ADD)},
    "first input of another type": {"n": ("Add", ["i", "c"], ADD)},
    "input of a fixed type": {"n": ("Fill", ["c", "c"], {"T": FLOAT, "index_type": INT})},
    "value for a reference": {"n": ("Assign", ["c", "c"], {"T": FLOAT})},
    "value for a resource": {"n": ("ReadVariableOp", ["c"], {"dtype": FLOAT})},
    "resource for a reference": {"n": ("QueueSize", ["q"], {})},
    "reference for a value": {"n": ("Identity", ["v"], {"T": FLOAT})},
    "output that is not there": {"n": ("Identity", ["c:1"], {"T": FLOAT})},
    "output far beyond": {"n": ("Identity", ["c:9999999"], {"T": FLOAT})},
    "output of a node without": {"n": ("Identity", ["x"], {"T": FLOAT})},
    "node that is not there": {"n": ("Identity", ["nobody"], {"T": FLOAT})},
    "control input that is not there": {"n": ("NoOp", ["^nobody"], {})},
    "input after a control input": {"n": ("Identity", ["^x", "c"], {"T": FLOAT})},
    "only a control input": {"n": ("Identity", ["^c"], {"T": FLOAT})},
    "empty input": {"n": ("Identity", [""], {"T": FLOAT})},
    "input that is no name": {"n": ("Identity", ["c:x"], {"T": FLOAT})},
    "negative output": {"n": ("Identity", ["c:-1"], {"T": FLOAT})},
    "the node itself": {"n": ("Identity", ["n"], {"T": FLOAT})},
    "circle": {"n": ("Identity", ["m"], {"T": FLOAT}), "m": ("Identity", ["n"], {"T": FLOAT})},
    "control circle": {"n": ("NoOp", ["^m"], {}), "m": ("NoOp", ["^n"], {})},
    # nodes
    "empty name": {"": ("NoOp", [], {})},
    "bad name": {"a b": ("NoOp", [], {})},
    "name with an underscore": {"_n": ("NoOp", [], {})},
    "name with a hat": {"^n": ("NoOp", [], {})},
    "no op": {"n": ("", [], {})},
    "op that is none": {"n": ("NoSuchOp", ["c"], {"T": FLOAT})},
    "op of the runtime": {"n": ("_Recv", [], {"tensor_type": FLOAT, "tensor_name": "t", "send_device": "/job:worker/replica:0/task:0/device:CPU:0",
                                             "recv_device": "/job:worker/replica:0/task:0/device:CPU:0", "send_device_incarnation": 1})},
    "function's argument": {"n": ("_Arg", [], {"T": FLOAT, "index": 0})},
    # shapes
    "shapes that do not match": {"n": ("MatMul", ["m", "m"], {"T": FLOAT}), "m": ("Const", [], {"dtype": FLOAT, "value": [[1.0, 2.0]]})},
    "scalar for a matrix": {"n": ("MatMul", ["c", "c"], {"T": FLOAT})},
    "sizes that do not match": {"n": ("Add", ["a", "b"], ADD), "a": ("Const", [], {"dtype": FLOAT, "value": [1.0, 2.0]}),
                                "b": ("Const", [], {"dtype": FLOAT, "value": [1.0, 2.0, 3.0]})},
    "axis out of range": {"n": ("Sum", ["c", "k"], SUM), "k": ("Const", [], {"dtype": INT, "value": 5})},
    # devices
    "device that is no name": {"n": ("NoOp", [], {}, "nonsense")},
    "device that is not there": {"n": ("NoOp", [], {}, "/job:nobody/task:0")},
    "partner that is not there": {"n": ("NoOp", [], {"_class": ["loc:@nobody"]})},
    "partners apart": {"n": ("Identity", ["c"], {"T": FLOAT, "_class": ["loc:@o"]}, "/job:ps/task:0"),
                       "o": ("Identity", ["c"], {"T": FLOAT}, "/job:worker/task:1")},
    "variable of no type": {"n": ("VariableV2", [], {"shape": shape(2), "container": "", "shared_name": ""})},
    "handle that asks for another type": {"n": ("ReadVariableOp", ["h"], {"dtype": INT}),
                                          "h": ("VarHandleOp", [], {"dtype": FLOAT, "shape": shape(), "container": "", "shared_name": "h"})},
}
COMMON = {
    "c": ("Const", [], {"dtype": FLOAT, "value": 1.0}),
    "i": ("Const", [], {"dtype": INT, "value": 0}),
    "s": ("Const", [], {"dtype": STRING, "value": "s"}),
    "q": ("FIFOQueueV2", [], QUEUE),
    "v": ("VariableV2", [], {"dtype": FLOAT, "shape": shape(), "container": "", "shared_name": ""}),
    "x": ("NoOp", [], {}),
}


def attribute(value, name):
    if isinstance(value, tf.AttrValue):
        return value
    if isinstance(value, tf.DType):
        return tf.AttrValue(type=value.as_datatype_enum)
    if name == "value":
        return tf.AttrValue(tensor=tf.make_tensor_proto(value))
    if isinstance(value, list):
        out = tf.AttrValue()
        out.list.SetInParent()
        for v in value:
            one = attribute(v, "")
            kind = one.WhichOneof("value")
            getattr(out.list, kind).append(getattr(one, kind))
        return out
    kind = {bool: "b", int: "i", float: "f", str: "s"}[type(value)]
    return tf.AttrValue(**{kind: value.encode() if kind == "s" else value})


def graph_def(nodes):
    out = tf.GraphDef()
    out.versions.producer = 1645
    for name, (op, inputs, attributes, *device) in nodes.items():
        node = out.node.add(name=name, op=op, input=inputs, device=device[0] if device else "")
        for key, value in attributes.items():
            node.attr[key].CopyFrom(attribute(value, key))
    return out.SerializeToString()


def call(method, request):
    return CALLS.unary_unary("/tensorflow.MasterService/" + method)(request, timeout=30)


def said(run):
    try:
        return run()
    except grpc.RpcError as e:
        return [e.code().name, e.details()]


def create(nodes):
    reply = call("CreateSession", field(1, graph_def(nodes)))
    return reply[2:2 + reply[1]]


def created_and_run(nodes, target):
    """Creates a session with the nodes, and runs a step that needs the broken node."""
    handle = create(nodes)
    try:
        call("RunStep", field(1, handle) + field(4, target.encode()))
        return ["OK", ""]
    except grpc.RpcError as e:
        return ["step: " + e.code().name, e.details()]
    finally:
        call("CloseSession", field(1, handle))


def extended(nodes):
    handle = create(COMMON)
    try:
        call("ExtendSession", field(1, handle) + field(2, graph_def(nodes)) + b"\x18\x00")
        return ["OK", ""]
    finally:
        call("CloseSession", field(1, handle))


def beside(nodes):
    """Creates a session with the nodes, and runs a step that does not need the broken node."""
    handle = create({**COMMON, **nodes})
    try:
        call("RunStep", field(1, handle) + field(3, b"c:0"))
        return ["OK", ""]
    except grpc.RpcError as e:
        return ["step: " + e.code().name, e.details()]
    finally:
        call("CloseSession", field(1, handle))


results = {}
for name, nodes in GRAPHS.items():
    if name in sys.argv[1:]:  # stock aborts
        continue
    target = next(iter(nodes))
    results[name] = said(lambda: created_and_run({**COMMON, **nodes}, target))
    results[name + ", added"] = said(lambda: extended(nodes))
    results[name + ", not needed"] = said(lambda: beside(nodes))
answer(results)
