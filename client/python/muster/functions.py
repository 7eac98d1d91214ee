# SPDX-License-Identifier: Apache-2.0
"""Runs the Python functions of a graph (py_func, numpy_function, py_function, Dataset.from_generator) for the server.

TensorFlow keeps these functions in a registry of the process that defines them; a node of the graph has a function's
token.  muster-task is another process and sends the calls to this one.  Requests and replies are messages
AttrValue.ListValue, each after its length in eight bytes, little-endian, and followed by the contents of its tensors other
than strings; task/kernels/control/py_func.c describes them.
"""
import traceback

import numpy as np
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.python.framework import constant_op, dtypes, ops, tensor_util
from tensorflow.python.ops import script_ops

TRACEBACK_CHARACTERS = 800  # an error's text in muster-task has up to 1,023 bytes

# TensorFlow's codes for exceptions of Python functions.
CODES = (((ValueError, TypeError), 3), (MemoryError, 8), (StopIteration, 11), (NotImplementedError, 12))
UNKNOWN, INTERNAL = 2, 13
STRING = dtypes.string.as_datatype_enum

# The device argument of the registry, between token and arguments; TensorFlow 1.0 to 1.4 has no such argument.
DEVICE = [None] * (type(script_ops._py_funcs).__call__.__code__.co_argcount - 3)


def code_of(error):
    return next((code for classes, code in CODES if isinstance(error, classes)), UNKNOWN)


def text_of(error, calls):
    """The error with its traceback, without the outermost calls if the text is too long."""
    lines = traceback.format_exception(type(error), error, calls)
    while len(lines) > 2 and sum(map(len, lines)) > TRACEBACK_CHARACTERS:
        del lines[1]
    try:
        message = f": {error}\n" + "\n".join(lines) + "\n"
    except Exception:  # the class has a __str__ that fails
        message = "(unknown error message)\n"
    return type(error).__name__ + message


def error_reply(code, text):
    return AttrValue.ListValue(i=[code], s=[text.encode(errors="backslashreplace")]), []


def receive_bytes(connection, into):
    """Fills a contiguous array; raises EOFError when the server closes the connection."""
    view = memoryview(into).cast("B")
    while view:
        n = connection.recv_into(view)
        if not n:
            raise EOFError
        view = view[n:]


def receive_array(connection, tensor):
    if tensor.dtype == STRING:
        return tensor_util.MakeNdarray(tensor)
    shape = [dimension.size for dimension in tensor.tensor_shape.dim]
    array = np.empty(shape, dtypes.as_dtype(tensor.dtype).as_numpy_dtype)
    if array.size:
        receive_bytes(connection, array.reshape(-1).view(np.uint8))
    return array


def to_argument(array, dtype, is_eager):
    """An eager tensor; for NumPy functions an array, or the value of a scalar."""
    if not is_eager:
        return array if array.ndim else array[()]
    from tensorflow.python.eager import context  # since TensorFlow 1.5
    with context.eager_mode(), ops.device("/device:CPU:0"):
        return constant_op.constant(array, dtype=dtype)


def is_none(result):
    """True for None, which TensorFlow converts to an array for NumPy functions."""
    return result is None or isinstance(result, np.ndarray) and result.dtype == object and result.tolist() is None


def to_array(result):
    """Converts a result to an array.  The NumPy value of an eager scalar string is not an array."""
    array = np.asarray(result if isinstance(result, np.ndarray) else result.numpy())
    try:
        dtypes.as_dtype(array.dtype)
    except TypeError:
        raise TypeError(f"Unsupported numpy data type {array.dtype}") from None
    if array.dtype == object:
        for item in array.flat:
            if not isinstance(item, (bytes, str)):
                raise TypeError(f"Unsupported object type {type(item).__name__}")
    return np.ascontiguousarray(array).reshape(array.shape)


def add_tensor(reply, array):
    """Adds a tensor to the reply and returns its contents."""
    if array.dtype.kind in "OSU":
        reply.tensor.add().CopyFrom(tensor_util.make_tensor_proto(array))
        return b""
    tensor = reply.tensor.add(dtype=dtypes.as_dtype(array.dtype).as_datatype_enum)
    for size in array.shape:
        tensor.tensor_shape.dim.add(size=size)
    return memoryview(array.reshape(-1).view(np.uint8))


def call(token, arguments):
    """Calls the function; returns (reply, contents)."""
    try:
        results = script_ops._py_funcs(token, *DEVICE, arguments)
    except BaseException as error:  # also SystemExit, as in TensorFlow: it ends the step alone
        return error_reply(code_of(error), text_of(error, error.__traceback__.tb_next))
    if not isinstance(results, (list, tuple)):
        results = [] if is_none(results) else [results]
    reply = AttrValue.ListValue()
    try:
        return reply, [add_tensor(reply, to_array(result)) for result in results]
    except Exception as error:  # no tensor can hold the result
        return error_reply(INTERNAL, str(error))


def answer(connection):
    header = bytearray(8)
    receive_bytes(connection, header)
    message = bytearray(int.from_bytes(header, "little"))
    receive_bytes(connection, message)
    request = AttrValue.ListValue.FromString(bytes(message))
    arguments = [to_argument(receive_array(connection, tensor), tensor.dtype, request.b[0]) for tensor in request.tensor]
    reply, contents = call(request.s[0].decode(), arguments)
    message = reply.SerializeToString()
    connection.sendall(len(message).to_bytes(8, "little") + message)
    for content in contents:
        connection.sendall(content)


def serve(connection):
    """Answers one request after the other, until the server closes the connection."""
    try:
        while True:
            answer(connection)
    except (EOFError, OSError):  # the server has ended the connection or cancelled a call
        pass
