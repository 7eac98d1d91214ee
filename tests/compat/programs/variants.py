# SPDX-License-Identifier: Apache-2.0
"""Tensor lists and other variants in loops, in branches and as constants."""
from common import TARGET, answer_each, forget, plain, tf

from tensorflow.core.framework import attr_value_pb2, tensor_pb2
from tensorflow.python.ops import list_ops


def _run(ops, feed=None):
    with tf.Session(TARGET) as sess:
        return plain(sess.run(ops, feed))


def list_zeros():
    l = list_ops.tensor_list_from_tensor(tf.constant([1.0, 2.0, 3.0]), element_shape=[])
    z = tf.zeros_like(l)
    return _run([list_ops.tensor_list_length(z), list_ops.tensor_list_stack(z, tf.float32, element_shape=[])])


def list_sum():
    a = list_ops.tensor_list_from_tensor(tf.constant([1.0, 2.0, 3.0]), element_shape=[])
    b = list_ops.tensor_list_from_tensor(tf.constant([10.0, 20.0, 30.0]), element_shape=[])
    return _run(list_ops.tensor_list_stack(tf.add_n([a, b]), tf.float32, element_shape=[]))


def list_in_a_loop():
    def body(i, l):
        return i + 1, list_ops.tensor_list_push_back(l, tf.cast(i, tf.float32))

    _, l = tf.while_loop(lambda i, l: i < 4, body, [0, list_ops.empty_tensor_list(element_shape=[], element_dtype=tf.float32)])
    return _run(list_ops.tensor_list_stack(l, tf.float32, element_shape=[]))


def lists_of_lists():
    a = list_ops.tensor_list_from_tensor(tf.constant([1.0, 2.0]), element_shape=[])
    out = list_ops.empty_tensor_list(element_shape=[], element_dtype=tf.variant)
    out = list_ops.tensor_list_push_back(out, a)
    out = list_ops.tensor_list_push_back(out, tf.zeros_like(a))
    s = list_ops.tensor_list_stack(out, tf.variant, element_shape=[])
    return _run([list_ops.tensor_list_length(out), list_ops.tensor_list_stack(s[1], tf.float32, element_shape=[]), tf.shape(s)])


def _variant_constant(proto):
    value, dtype = attr_value_pb2.AttrValue(tensor=proto), attr_value_pb2.AttrValue(type=proto.dtype)
    return tf.get_default_graph().create_op("Const", [], [tf.variant], attrs={"value": value, "dtype": dtype}).outputs[0]


def empty_variant_constant():
    proto = tensor_pb2.TensorProto(dtype=tf.variant.as_datatype_enum)
    proto.tensor_shape.dim.add(size=0)
    return _run(tf.shape(_variant_constant(proto)))


def variant_constant_of_a_number():
    proto = tensor_pb2.TensorProto(dtype=tf.variant.as_datatype_enum)
    proto.variant_val.add(type_name="int", metadata=(5).to_bytes(4, "little"))
    c = _variant_constant(proto)
    return _run([tf.shape(c), tf.shape(tf.identity(c)), tf.shape(tf.zeros_like(c)), tf.shape(tf.stack([c, tf.zeros_like(c)]))])


def list_with_elements_of_several_shapes():
    rows = list_ops.empty_tensor_list(element_shape=[None], element_dtype=tf.float32)
    for row in ([1.0], [2.0, 3.0], [4.0, 5.0]):
        rows = list_ops.tensor_list_push_back(rows, tf.constant(row))
    return _run([list_ops.tensor_list_gather(rows, [0], tf.float32), list_ops.tensor_list_gather(rows, [1, 2], tf.float32),
                 list_ops.tensor_list_concat(rows, tf.float32)])


def concat_of_a_list_with_unset_elements():
    unset = list_ops.tensor_list_reserve(element_shape=None, num_elements=3, element_dtype=tf.float32)
    one_set = list_ops.tensor_list_set_item(unset, 1, tf.constant([[2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]))
    given = tf.raw_ops.TensorListConcatV2(input_handle=one_set, element_shape=[-1, 2], leading_dims=tf.constant([2, 3, 4], tf.int64), element_dtype=tf.float32)
    return _run([list_ops.tensor_list_concat(one_set, tf.float32), list_ops.tensor_list_concat(unset, tf.float32, element_shape=(2, 3)), *given])


def variant_in_cond():
    a = list_ops.tensor_list_from_tensor(tf.constant([1.0, 2.0]), element_shape=[])
    p = tf.placeholder(tf.bool, [])
    c = tf.cond(p, lambda: a, lambda: list_ops.tensor_list_push_back(a, 5.0))
    return [_run(list_ops.tensor_list_stack(c, tf.float32, element_shape=[]), {p: v}) for v in (True, False)]


answer_each(after=forget)
