# SPDX-License-Identifier: Apache-2.0
"""Programs with the ops that TensorFlow 1 loads from libraries of tf.contrib."""
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.contrib import factorization, image, input_pipeline, layers as contrib_layers, resampler, rnn, seq2seq, text
from tensorflow.contrib.factorization.python.ops import gen_factorization_ops
from tensorflow.contrib.framework import zero_initializer
from tensorflow.contrib.image.ops import gen_image_ops
from tensorflow.contrib.image.python.ops import distort_image_ops
from tensorflow.contrib.layers.python.ops.sparse_feature_cross_op import sparse_feature_cross
from tensorflow.contrib.libsvm.ops import gen_libsvm_ops
from tensorflow.python.ops import gen_math_ops

from common import TARGET, answer_each, error_of, forget, plain
from layers import on_ps, some, start_all, steps, var


def _words(*rows):
    at = [[i, k] for i, row in enumerate(rows) for k in range(len(row))]
    return tf.SparseTensor(at, tf.constant([w for row in rows for w in row]), [len(rows), max(map(len, rows))])


def crossed_columns_of_a_wide_and_deep_model():
    tf.set_random_seed(3)
    with on_ps():
        features = {"city": _words(["rome"], ["oslo", "paris"], ["rome"], ["lima"]), "language": _words(["it"], ["no"], ["it"], ["es", "qu"]),
                    "age": tf.constant([[21.0], [35], [60], [44]])}
        city, language = (contrib_layers.sparse_column_with_hash_bucket(name, 20) for name in ("city", "language"))
        age = contrib_layers.bucketized_column(contrib_layers.real_valued_column("age"), [30.0, 50])
        cross = contrib_layers.crossed_column([city, language], 50)
        keyed = contrib_layers.crossed_column([city, age], 70, hash_key=contrib_layers.SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY)
        wide = contrib_layers.weighted_sum_from_feature_columns(features, [city, cross, keyed, contrib_layers.crossed_column([cross, age], 90)], 1)[0]
        deep = tf.layers.dense(contrib_layers.input_from_feature_columns(features, [contrib_layers.embedding_column(cross, 4)]), 1)
        scattered = contrib_layers.input_from_feature_columns({"city": features["city"]}, [contrib_layers.scattered_embedding_column("city", 16, 4, hash_key=0xDECAFCAFFE)])
        loss = tf.losses.sigmoid_cross_entropy([[1], [0], [1], [0]], wide + deep)
        return steps([loss, wide, scattered], train=tf.train.FtrlOptimizer(0.1).minimize(loss))


def crosses_of_strings_and_numbers():
    with on_ps():
        city, number = _words(["rome"], ["oslo", "paris"], []), _words([3], [1, 7], [9])
        number = tf.SparseTensor(number.indices, tf.cast(number.values, tf.int64), number.dense_shape)
        dense = tf.constant([["x", "y"], ["z", "u"], ["v", "w"]])
        return steps([sparse_feature_cross([city, number]), sparse_feature_cross([number, dense, city]),
                      *(sparse_feature_cross(columns, hashed_output=True, num_buckets=buckets, hash_key=key)
                        for columns in ([city], [number, city], [number, dense, number]) for buckets in (0, 1000) for key in (None, 5))], 1)


def beam_search_with_attention():
    words, width, beams = 9, 6, 3
    with on_ps():
        table, memory = var("words", [words, 5], 1), some([2, 4, width], 2)
        with tf.variable_scope("decoder", initializer=tf.glorot_uniform_initializer(3)):
            attention = seq2seq.BahdanauAttention(width, seq2seq.tile_batch(memory, beams), seq2seq.tile_batch(tf.constant([4, 2]), beams))
            cell = seq2seq.AttentionWrapper(rnn.GRUCell(width), attention)
            decoder = seq2seq.BeamSearchDecoder(cell, table, tf.fill([2], 1), 2, cell.zero_state(2 * beams, tf.float32), beams,
                                                tf.layers.Dense(words), length_penalty_weight=0.5)
            out, last, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=7)
        return steps([out.predicted_ids, last.log_probs, lengths], 1)


def trees_of_beams():
    ids = tf.constant([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]]])
    parents = tf.constant([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]]])
    with on_ps():
        found = [seq2seq.gather_tree(ids, parents, [n], end) for n in (3, 2, 0, 5) for end in (10, 6)]
        wrong = [seq2seq.gather_tree(ids, parents + by, [3], 10) for by in (2, -2)]
        with tf.Session(TARGET) as s:
            return plain(s.run(found)), [error_of(lambda: s.run(w)) for w in wrong]


def a_spatial_transformer():
    with on_ps():
        pictures, warp = var("pictures", [2, 5, 6, 3], 1), tf.get_variable("warp", [2, 4, 2], initializer=tf.random_uniform_initializer(-1.5, 6.5, 3))
        edges = tf.constant([[[0, 0], [5, 4], [-1, 0], [-0.5, -0.5], [5.5, 1], [6, 1], [np.nan, 1], [1e9, -1e9]]] * 2, tf.float32)
        seen = resampler.resampler(pictures, warp)
        loss = tf.reduce_sum(seen ** 2)
        double = resampler.resampler(tf.cast(pictures, tf.float64), tf.cast(edges, tf.float64))
        return steps([loss, seen, resampler.resampler(pictures, edges), double], train=tf.train.GradientDescentOptimizer(0.1).minimize(loss))


def distorted_pictures():
    with on_ps():
        x, by = some([2, 5, 6, 3], 1, 0, 1), tf.constant([[1, 0.2, 0.5, -0.1, 0.9, 1, 0.01, 0.002]])
        areas = tf.constant(np.random.RandomState(1).randint(0, 3, [2, 6, 7]))
        letters = tf.constant([["a", "a", ""], ["b", "a", "b"], ["b", "b", "b"]])
        return steps([[gen_image_ops.image_projective_transform(x, by, way) for way in ("NEAREST", "BILINEAR")], image.rotate(x, 0.4, "BILINEAR"),
                      distort_image_ops.adjust_hsv_in_yiq(x, 0.3, 1.2, 0.8), distort_image_ops.adjust_hsv_in_yiq(tf.cast(x * 255, tf.uint8), -0.3, 0.7, 1.3),
                      image.connected_components(areas), image.connected_components(letters),
                      image.connected_components(tf.cast(areas, tf.float32)), image.connected_components(areas > 1)], 1)


def matches_of_rows_and_columns():
    """also rows and columns at equal distances"""
    distances = [np.random.RandomState(k).randint(0, 4, [4, 5]).astype(np.float32) for k in range(8)]
    with on_ps():
        found = [image.bipartite_match(d, n, top_k) for d in distances for n in (4.0, 2.0, -1.0) for top_k in (-1, 2)]
        wrong = image.bipartite_match(distances[0], 5.0)
        with tf.Session(TARGET) as s:
            return plain(s.run(found)), error_of(lambda: s.run(wrong))


def weighted_alternating_least_squares():
    """Both halves of an iteration, weights by entry, and a projection."""
    at = [(i, k) for i in range(5) for k in range(4) if (i + k) % 3]
    with on_ps():
        ratings = tf.SparseTensor(at, tf.constant([float(i * k + 1) for i, k in at]), [5, 4])
        model = factorization.WALSModel(5, 4, 2, regularization=0.01, unobserved_weight=0.2, row_weights=[0.5, 1, 2, 1, 0.3], col_weights=[1, 0.2, 0.4, 2],
                                        row_init=lambda: some([5, 2], 1), col_init=lambda: some([4, 2], 2))
        rows, columns = model.update_row_factors(sp_input=ratings), model.update_col_factors(sp_input=tf.sparse_transpose(ratings), transpose_input=True)
        projected = model.project_row_factors(tf.SparseTensor([[0, 1], [0, 3]], [2.0, 6], [1, 4]), projection_weights=[0.2])
        start = start_all()
        with tf.Session(TARGET) as s:
            s.run(start)
            for op in (model.initialize_op, model.worker_init, model.row_update_prep_gramian_op, model.initialize_row_update_op, rows[1],
                       model.col_update_prep_gramian_op, model.initialize_col_update_op, columns[1], model.row_update_prep_gramian_op):
                s.run(op)
            return plain(s.run([model.row_factors, model.col_factors, projected, rows[2:], columns[2:]]))


def single_elements_of_products():
    a, b, mask = some([3, 2], 1), some([2, 4], 2), tf.constant([[0, 0], [2, 3], [1, 1], [2, 3]], tf.int64)
    with on_ps():
        turned = [gen_factorization_ops.masked_matmul(tf.transpose(a) if i else a, tf.transpose(b) if k else b, mask, i, k) for i in (False, True) for k in (False, True)]
        wrong = gen_factorization_ops.masked_matmul(a, a, mask, False, False)
        with tf.Session(TARGET) as s:
            return plain(s.run(turned)), error_of(lambda: s.run(wrong))


def comparisons_packed_into_bits():
    x, wide = np.arange(-24, 24).reshape(2, 3, 8), 2 ** 62
    with on_ps():
        found = [gen_math_ops.compare_and_bitpack(tf.constant(x.astype(t)), tf.constant(3, t))
                 for t in (np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64)]
        found += [gen_math_ops.compare_and_bitpack(x % 3 > 1, True), gen_math_ops.compare_and_bitpack(np.zeros([0, 16]), 0.0),
                  gen_math_ops.compare_and_bitpack([wide + i % 2 for i in range(8)], np.int64(wide)),
                  gen_math_ops.compare_and_bitpack([np.nan, np.inf, -np.inf] * 8, 0.0)]
        row = tf.placeholder(tf.float32)
        wrong = gen_math_ops.compare_and_bitpack(row, 0.0)
        with tf.Session(TARGET) as s:
            return plain(s.run(found)), [error_of(lambda: s.run(wrong, {row: by})) for by in (1, np.zeros([2, 9]))]


def files_obtained_in_turn():
    with on_ps():
        files = tf.placeholder(tf.string, [None])
        next_file = input_pipeline.obtain_next(files, tf.get_variable("at", [], tf.int64, tf.constant_initializer(-1), use_resource=False))
        with tf.Session(TARGET) as s:
            error = error_of(lambda: s.run(next_file, {files: ["a"]}))
            s.run(tf.global_variables_initializer())
            return error, [plain(s.run(next_file, {files: names.split()})) for names in ("a b c", "a b c", "a b c", "a b c", "a b", "a", "a b c")]


def variables_that_begin_with_zeros():
    with on_ps():
        with tf.Session(TARGET) as s:
            out = []
            for by_handle in (False, True):
                v = tf.get_variable(f"v{by_handle}", [2, 3], use_resource=by_handle)
                zero = tf.group(zero_initializer(v))
                s.run(zero)
                out += [plain(s.run(v)), error_of(lambda: s.run(zero))]
            return out


def skip_grams_of_a_corpus():
    """The random sequence of each seed continues from step to step."""
    words, numbers = tf.constant("the quick brown fox jumps over the lazy dog".split()), tf.range(19)
    with on_ps():
        found = [text.skip_gram_sample(words, 1, 3, seed=5), text.skip_gram_sample(numbers, 0, 4, start=3, limit=11, emit_self_as_target=True, seed=6),
                 text.skip_gram_sample(numbers, 2, 2, limit=30), text.skip_gram_sample(numbers, 1, 1, start=25)]
        wrong = [text.skip_gram_sample(numbers, *window) for window in ((3, 1), (-1, 2))]
        with tf.Session(TARGET) as s:
            return [plain(s.run(found)) for _ in range(3)], [error_of(lambda: s.run(w)) for w in wrong]


def lines_of_libsvm():
    lines = tf.constant([["1 1:3.5 2:0.5", "  3 4:0.25\t7:1e3 "], ["-2", "0 2:-1 2:3"]])
    with on_ps():
        right = [gen_libsvm_ops.decode_libsvm(lines, num_features=6), gen_libsvm_ops.decode_libsvm(["1.5 1:2"], 6, tf.int64, tf.float32)]
        wrong = [gen_libsvm_ops.decode_libsvm([line], num_features=6)
                 for line in ("", "x 1:2", "1.5 1:2", "1 1", "1 1:x", "1 a:2", "1 -1:2", "1 1:2:3", "1 1: 2")]
        with tf.Session(TARGET) as s:
            return plain(s.run(right)), [error_of(lambda: s.run(w)) for w in wrong]


answer_each(forget)
