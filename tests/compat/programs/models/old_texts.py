# SPDX-License-Identifier: Apache-2.0
"""Programs on text and ragged tensors, and a few with rare layers; each trains or is evaluated as a whole."""
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import inplace_ops

from common import TARGET, answer_each, error_of, forget, plain

LINES = ["the cat sat", "a dog", "", "dogs and cats and mice", "na\u00efve caf\u00e9 \u20ac5", "\u65e5\u672c\u8a9e \u306e \u30c6\u30ad\u30b9\u30c8", "sat sat sat", "\U0001f600 !"]
LABELS = [1, 0, 0, 1, 0, 1, 1, 0]
PS = "/job:ps/task:0"


def _variable(name, *shape):
    start = np.random.RandomState(len(name)).uniform(-0.5, 0.5, shape).astype(np.float32)
    with tf.device(PS):
        return tf.get_variable(name, initializer=start)


def _train(loss, steps=5, more=(), rate=0.5):
    train = tf.train.GradientDescentOptimizer(rate).minimize(loss)
    with tf.Session(TARGET) as s:
        s.run([tf.global_variables_initializer(), tf.tables_initializer()])
        out = [plain(s.run([loss, train])[0]) for _ in range(steps)]
        out += [plain(s.run(list(more)))] if more else []
    forget()
    return out


def _answer(fetches):
    with tf.Session(TARGET) as s:
        s.run([tf.global_variables_initializer(), tf.tables_initializer()])
        out = [plain(x.tolist() if hasattr(x, "tolist") else x) for x in s.run(fetches)]
    forget()
    return out


def _logistic(logits):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.constant(LABELS, tf.float32), logits=tf.squeeze(logits, 1)))


def bag_of_words():
    """Hashes ragged words, embeds them, and averages them by row."""
    words = tf.strings.split(LINES, result_type="RaggedTensor")
    ids = tf.ragged.map_flat_values(tf.strings.to_hash_bucket_fast, words, 50)
    vectors = tf.ragged.map_flat_values(lambda i: tf.nn.embedding_lookup(_variable("table", 50, 4), i), ids)
    sums = tf.reduce_sum(vectors, axis=1)
    lengths = tf.maximum(1.0, tf.cast(words.row_lengths(), tf.float32))
    return _train(_logistic(tf.matmul(sums / lengths[:, None], _variable("weights", 4, 1))))


def padded_words_in_a_recurrent_net():
    words = tf.strings.split(LINES, result_type="RaggedTensor")
    padded = words.to_tensor(default_value="<pad>", shape=[None, 4])
    ids = tf.strings.to_hash_bucket_fast(padded, 30)
    x = tf.nn.embedding_lookup(_variable("table", 30, 5), ids)
    w, u = _variable("w_in", 5, 3), _variable("w_hidden", 3, 3)
    h = tf.zeros([len(LINES), 3])
    for i in range(4):
        h = tf.tanh(tf.matmul(x[:, i], w) + tf.matmul(h, u))
    return _train(_logistic(tf.matmul(h, _variable("weights", 3, 1))), more=[padded])


def ngrams_of_characters():
    """Splits texts of several scripts into characters; uses their n-grams as features."""
    characters = tf.strings.unicode_split(LINES, "UTF-8")
    grams = tf.strings.ngrams(characters, [2, 3], separator="", pad_values=("<", ">"), padding_width=1)
    ids = tf.ragged.map_flat_values(tf.strings.to_hash_bucket_fast, grams, 40)
    w = tf.nn.embedding_lookup(_variable("table", 40, 1), ids.flat_values)
    scores = tf.math.unsorted_segment_sum(w, ids.value_rowids(), len(LINES))
    return _train(_logistic(scores), more=[grams.flat_values, grams.row_splits])


def characters_with_offsets():
    points, starts = tf.strings.unicode_decode_with_offsets(LINES, "UTF-8")
    wide = tf.strings.unicode_transcode(LINES, "UTF-8", "UTF-16-BE")
    back = tf.strings.unicode_decode(wide, "UTF-16-BE")
    return _answer([points.flat_values, points.row_splits, starts.flat_values, points.to_tensor(-1), back.to_tensor(), tf.strings.unicode_encode(back, "UTF-8"),
                    tf.strings.unicode_decode(["a\x01b"], "UTF-8", replace_control_characters=True).to_tensor()])


def malformed_texts():
    """Decodes malformed UTF-8: the error is reported, or the bytes are replaced or ignored."""
    broken = [b"caf\xe9", b"\xe2\x82", b"fine"]
    out = []
    for errors in ("replace", "ignore"):
        out.append(_answer([tf.strings.unicode_decode(broken, "UTF-8", errors=errors).to_tensor()]))
    strict = tf.strings.unicode_decode(broken, "UTF-8", errors="strict").flat_values
    with tf.Session(TARGET) as s:
        name, words = error_of(lambda: s.run(strict))
    forget()
    return out + [name, "Invalid formatting on input string" in words]


def ragged_rows():
    """Gathers, concatenates, slices, compares and reduces ragged tensors through TensorFlow's Python API."""
    r = tf.ragged.constant([[3, 1, 2], [], [5], [7, 8, 9, 6]])
    picked = tf.gather(r, [3, 0, 0])
    deep = tf.ragged.constant([[[1, 2], [3]], [], [[4, 5, 6]]])
    joined = tf.concat([r, r * 10], axis=1)
    ranges = tf.ragged.range([0, 5, 2], [3, 5, 9], 2)
    return _answer([picked.to_tensor(), picked.row_splits, tf.gather(deep, [2, 0]).to_tensor(-1), joined.to_tensor(), tf.reduce_max(r + 1, axis=1), tf.reduce_sum(r, axis=0),
                    ranges.to_tensor(-1), ranges.row_lengths(), r[:, :2].to_tensor(), r[1:, -1:].to_tensor(), deep.to_sparse().indices, tf.cast(r > 2, tf.int32).to_tensor(),
                    tf.RaggedTensor.from_value_rowids([1, 2, 3], [0, 2, 2], nrows=4).to_tensor(9), tf.RaggedTensor.from_tensor([[1, 0, 2], [0, 0, 0]], padding=0).row_splits])


def words_joined_by_sentence():
    words = tf.constant("once upon a time there was one".split())
    return _answer([tf.strings.unsorted_segment_join(words, [1, 1, 0, 0, 2, 2, 2], 4, separator=" ")])


def dilated_pictures():
    """Trains a layer of grey dilation and one of erosion."""
    pictures = tf.constant(np.random.RandomState(3).uniform(size=(8, 6, 6, 2)).astype(np.float32))
    wide = tf.nn.dilation2d(pictures, _variable("wide", 3, 3, 2), strides=[1, 1, 1, 1], padding="SAME", rates=[1, 1, 1, 1])
    thin = tf.nn.erosion2d(wide, _variable("thin", 2, 2, 2), strides=[1, 2, 2, 1], rates=[1, 1, 1, 1], padding="VALID")
    flat = tf.reshape(thin, [8, -1])
    return _train(_logistic(tf.matmul(flat, _variable("weights", 18, 1))), rate=0.1)


def products_of_mostly_zeros():
    """tf.matmul with a_is_sparse and b_is_sparse, and its gradients."""
    x = np.random.RandomState(5).uniform(size=(8, 20)).astype(np.float32)
    x[x < 0.7] = 0
    hidden = tf.nn.relu(tf.matmul(tf.constant(x), _variable("first", 20, 6), a_is_sparse=True))
    return _train(_logistic(tf.matmul(hidden, _variable("second", 1, 6), transpose_b=True, a_is_sparse=True, b_is_sparse=True)))


def decoder_rows_updated_in_place():
    """Updates rows of a loop variable in place (alias_inplace_update, alias_inplace_add)."""
    def body(i, kept):
        return i + 1, inplace_ops.alias_inplace_update(kept, i, tf.reduce_sum(kept, 0) + tf.cast(i, tf.float32) + 1)
    kept = tf.while_loop(lambda i, kept: i < 4, body, [0, tf.zeros([5, 2])])[1]
    return _answer([inplace_ops.alias_inplace_add(kept, [1, 1], [[1.0, 2.0], [10.0, 20.0]]), tf.timestamp() > 1.6e9])


if __name__ == "__main__":
    answer_each(forget)
