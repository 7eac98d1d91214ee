# SPDX-License-Identifier: Apache-2.0
"""Messages that only a caller without TensorFlow's client or master can send; each function builds one by hand."""
import struct

import grpc

from common import CLUSTER, TARGET, answer_each, plain, tf

WORKER = "/job:worker/replica:0/task:0/device:CPU:0"
ID = iter(range(7001, 8000))
channel = grpc.insecure_channel(TARGET[len("grpc://"):])


def _varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def _field(number, value):
    """Encodes one protobuf field: bytes, text or a number."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value & (1 << 64) - 1)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _fields(data):
    """Parses a message into (number, value) pairs."""
    at, out = 0, []

    def varint():
        nonlocal at
        n = shift = 0
        while True:
            n |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                return n

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(tag & 7) or varint()
            value, at = data[at:at + size], at + size
        out.append((tag >> 3, value))
    return out


def _call(method, *fields, service="WorkerService", timeout=100):
    return channel.unary_unary(f"/tensorflow.{service}/{method}")(b"".join(fields), timeout=timeout)


def _status_of(call):
    """Returns the status code of the call and the start of its message."""
    try:
        call()
        return ["OK", ""]
    except grpc.RpcError as e:
        return [e.code().name, e.details().split(". ")[0].split(": ")[0]]


def _code(call):
    return _status_of(call)[0]


def _graph(**nodes):
    """A GraphDef of constants, on the worker."""
    with tf.Graph().as_default() as graph, tf.device(WORKER):
        for name, value in nodes.items():
            tf.constant(value, name=name)
    return graph.as_graph_def().SerializeToString()


def _registered(session=b"", graph=None, called=0):
    reply = _call("RegisterGraph", _field(1, session), _field(2, graph or _graph(c=1.0)), _field(6, called))
    return dict(_fields(reply))[1]


def _incarnation():
    status = _call("GetStatus")
    device = dict(_fields(dict(_fields(status))[1]))
    return struct.unpack("<Q", device[6])[0]


def the_devices_of_a_worker():
    """Every attribute of each device; the incarnation is random, so only its length counts."""
    devices = [dict(_fields(v)) for n, v in _fields(_call("GetStatus")) if n == 1]
    return [[n, len(v) if n == 6 else plain(v)] for d in devices for n, v in sorted(d.items())]


def the_devices_of_a_cluster():
    reply = _fields(_call("ListDevices", service="MasterService"))
    return [sorted([n, plain(dict(_fields(v))[1]), dict(_fields(v))[4], sorted(dict(_fields(v)))] for n, v in reply)]


def logging():
    return [_status_of(lambda: _call("Logging", *f)) for f in ([], [_field(1, 1)], [_field(3, 7)], [_field(2, 1)])]


def tracing():
    return [_code(lambda: _call("Tracing", *f)) for f in ([], [_field(1, _field(1, 0))])]


def a_graph_run_twice_under_one_id():
    handle, one, other = _registered(), next(ID), next(ID)
    run = lambda step, request: _status_of(lambda: _call("RunGraph", _field(1, handle), _field(2, step), _field(11, request)))
    return [run(11, one), run(12, one), run(13, other), run(14, 0), run(15, 0)]


def a_tensor_received_twice_under_one_id():
    key = f"{WORKER};{_incarnation():016x};{WORKER};nobody_sends;0:0"
    again = next(ID)
    receive = lambda step, request: _status_of(
        lambda: _call("RecvTensor", _field(1, step), _field(2, key), _field(7, request), timeout=3))
    return [receive(21, again), receive(22, again), receive(23, next(ID))]


def a_step_run_twice_under_one_id():
    reply = _call("CreateSession", _field(1, _graph(c=1.0)), service="MasterService")
    handle, again = dict(_fields(reply))[1], next(ID)
    run = lambda request: _status_of(
        lambda: _call("RunStep", _field(1, handle), _field(3, "c:0"), _field(8, request), service="MasterService"))
    return [run(again), run(again), run(next(ID)), run(0), run(0)]


def a_tensor_of_a_task_that_restarted():
    key = f"{WORKER};{_incarnation() ^ 1:016x};{WORKER};nobody_sends;0:0"
    return _status_of(lambda: _call("RecvTensor", _field(1, 31), _field(2, key), _field(7, next(ID)), timeout=3))


def a_graph_that_is_not_there():
    return _status_of(lambda: _call("RunGraph", _field(1, "no such graph"), _field(2, 41), _field(11, next(ID))))


def a_session_that_is_not_there():
    return [_status_of(lambda: _call("DeleteWorkerSession", _field(1, "no such session"))),
            _code(lambda: _registered(b"no such session", called=1))]


def a_cluster_of_the_sessions_own():
    """ConfigProto.cluster_def: the servers' cluster, subsets of it, one without this task, and one without a target."""
    def cluster(**jobs):
        return b"".join(_field(1, _field(1, job) + b"".join(_field(2, _field(1, i) + _field(2, a)) for i, a in enumerate(l)))
                        for job, l in jobs.items())

    def created(definition, target):
        reply = _call("CreateSession", _field(1, _graph(c=1.0)), _field(2, _field(14, definition)), _field(3, target),
                      service="MasterService", timeout=200)
        handle = dict(_fields(reply))[1]
        devices = _fields(_call("ListDevices", _field(1, handle), service="MasterService"))
        run = _status_of(lambda: _call("RunStep", _field(1, handle), _field(3, "c:0"), service="MasterService"))
        _call("CloseSession", _field(1, handle), service="MasterService")
        return [sorted(plain(dict(_fields(v))[1]) for _, v in devices), run]

    def tried(target=TARGET, **jobs):
        try:
            return created(cluster(**jobs), target)
        except grpc.RpcError as e:
            return [e.code().name, e.details()[:60]]

    return [tried(**CLUSTER), tried(worker=CLUSTER["worker"]), tried(worker=CLUSTER["worker"][:1], ps=CLUSTER["ps"]),
            tried(ps=CLUSTER["ps"]), tried("", **CLUSTER)]


def an_unknown_method():
    return _code(lambda: _call("NoSuchMethod"))


answer_each()
