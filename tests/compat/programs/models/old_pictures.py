# SPDX-License-Identifier: Apache-2.0
"""Image models as they were written for TensorFlow 1, each of another kind, small. Each trains a few steps."""
import numpy as np
import tensorflow.compat.v1 as tf

from common import TARGET, answer_each, forget, plain
from layers import balanced, conv, dense, on_ps, some, start_all, steps, var


def _block(x, n, stride, seed, training):
    with tf.variable_scope(f"block{seed}"):
        old = x if stride == 1 and x.shape[-1] == n else tf.layers.conv2d(x, n, 1, stride, use_bias=False, kernel_initializer=tf.variance_scaling_initializer(seed=seed))
        h = tf.nn.relu(tf.layers.batch_normalization(x, training=training, momentum=0.9, fused=True))
        h = tf.layers.conv2d(tf.pad(h, [[0, 0], [1, 1], [1, 1], [0, 0]]), n, 3, stride, use_bias=False, kernel_initializer=tf.variance_scaling_initializer(seed=seed + 1))
        h = tf.nn.relu(tf.layers.batch_normalization(h, training=training, momentum=0.9, fused=False))
        return old + conv(h, n, 3, seed + 2, use_bias=False)


def a_residual_network():
    """Preactivation blocks, weight decay, learning rate warm-up, label smoothing, evaluation with batch norm's
    averages."""
    with balanced():
        step = tf.train.get_or_create_global_step()
        training = tf.placeholder(tf.bool, [])
        x, y = some([4, 9, 9, 3], 1), tf.one_hot([0, 2, 1, 2], 3)
        h = _block(_block(conv(x, 4, 3, 9), 6, 2, 10, training), 6, 1, 20, training)
        logits = dense(tf.reduce_mean(h, [1, 2]), 3, 30)
        loss = tf.losses.softmax_cross_entropy(y, logits, label_smoothing=0.1) + 1e-3 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "kernel" in v.name])
        rate = tf.cond(step < 2, lambda: 0.01 * tf.cast(step + 1, tf.float32), lambda: tf.train.cosine_decay_restarts(0.1, step - 2, 3))
        optimizer = tf.train.MomentumOptimizer(rate, 0.9)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = optimizer.minimize(loss, step)
        start = start_all()
        with tf.Session(TARGET) as s:
            s.run(start)
            out = []
            for _ in range(4):
                s.run(train, {training: True})
                out.append(plain(s.run([loss, rate, logits], {training: False})))
            return out


def an_inception_module():
    """Concatenated branches, channel dropout, an auxiliary head, moving averages and their names for a Saver."""
    with on_ps():
        x = some([3, 8, 8, 4], 1)
        pool = tf.nn.avg_pool(x, [1, 3, 3, 1], [1, 1, 1, 1], "SAME")
        h = tf.concat([conv(x, 2, 1, 1), conv(conv(x, 2, 1, 2), 3, [1, 3], 3), conv(conv(conv(x, 2, 1, 4), 2, [3, 1], 5), 2, 3, 6), conv(pool, 2, 1, 7)], 3)
        h = tf.nn.lrn(h, 2, 1.0, 1e-3, 0.75)
        h = tf.nn.dropout(h, 0.8, noise_shape=[3, 1, 1, 9], seed=4)
        side = tf.reduce_mean(dense(tf.layers.flatten(tf.layers.max_pooling2d(h, 4, 4)), 2, 8) ** 2)
        main = tf.reduce_mean((dense(tf.reduce_max(h, [1, 2]), 2, 9) - 1) ** 2)
        loss = main + 0.3 * side
        ema = tf.train.ExponentialMovingAverage(0.7, num_updates=tf.train.get_or_create_global_step())
        train = tf.train.RMSPropOptimizer(0.02, 0.9, 0.9, 1.0).minimize(loss, tf.train.get_global_step())
        with tf.control_dependencies([train]):
            train = ema.apply(tf.trainable_variables())
        names = sorted(ema.variables_to_restore())
        return steps([main, *[ema.average(v) for v in tf.trainable_variables()[:2]]], train=train) + names


def style_by_gram_matrices():
    """A fixed network of constants. Adam optimizes the image, and each step clips it."""
    with on_ps():
        picture = tf.get_variable("picture", [1, 8, 8, 3], initializer=tf.random_uniform_initializer(seed=1))
        def features(x):
            for k in (2, 3):
                x = tf.nn.relu(tf.nn.conv2d(x, some([3, 3, x.shape[3], 4], k, -0.4, 0.4), [1, k - 1, k - 1, 1], "SAME"))
                yield x
        def gram(x):
            flat = tf.reshape(x, [-1, x.shape[3]])
            return tf.matmul(tf.transpose(flat), flat) / tf.cast(tf.size(flat), tf.float32)
        want = [gram(f) for f in features(some([1, 8, 8, 3], 7, 0, 1))]
        style = tf.add_n([tf.reduce_sum((gram(f) - w) ** 2) for f, w in zip(features(picture), want)])
        smooth = tf.reduce_sum(tf.image.total_variation(picture))
        loss = style + 1e-4 * smooth
        train = tf.train.AdamOptimizer(0.05, 0.9, 0.99, 1e-4).minimize(loss, var_list=[picture])
        with tf.control_dependencies([train]):
            train = picture.assign(tf.clip_by_value(picture, 0.0, 1.0))
        return steps([style, smooth], train=train)


def a_u_net():
    """Transposed and dilated convolutions, skip connections with crops, dice loss, and IoU as a metric."""
    with on_ps():
        x = some([2, 12, 12, 2], 1)
        mask = tf.cast(some([2, 12, 12, 1], 2) > 0.2, tf.float32)
        a = conv(x, 3, 3, 1, tf.nn.relu)
        b = conv(tf.layers.max_pooling2d(a, 2, 2), 4, 3, 2, tf.nn.relu, dilation_rate=2)
        up = tf.layers.conv2d_transpose(b, 3, 2, 2, kernel_initializer=tf.glorot_uniform_initializer(3))
        near = tf.image.resize_nearest_neighbor(b, [12, 12])
        h = tf.concat([up, tf.image.resize_image_with_crop_or_pad(a, 12, 12), near, tf.image.resize_bilinear(b, [12, 12], align_corners=True)], 3)
        logits = conv(h, 1, 1, 4)
        p = tf.sigmoid(logits)
        dice = 1 - (2 * tf.reduce_sum(p * mask) + 1) / (tf.reduce_sum(p) + tf.reduce_sum(mask) + 1)
        loss = dice + tf.reduce_mean(tf.nn.weighted_cross_entropy_with_logits(mask, logits, 2.0))
        iou, update = tf.metrics.mean_iou(tf.cast(mask, tf.int32), tf.cast(logits > 0, tf.int32), 2)
        train = tf.train.AdamOptimizer(0.02).minimize(loss)
        return steps([loss, dice], train=[train, update], n=3)


def a_spatial_transformer():
    """A sampling grid that a network transforms; gathers the four neighbours of each point by index."""
    with on_ps():
        x = some([2, 7, 7, 2], 1)
        theta = tf.reshape(tf.layers.dense(tf.layers.flatten(x), 6, kernel_initializer=tf.random_normal_initializer(stddev=0.05, seed=1), bias_initializer=tf.constant_initializer([1, 0, 0, 0, 1, 0])), [2, 2, 3])
        gx, gy = tf.meshgrid(tf.linspace(-0.93, 0.95, 5), tf.linspace(-0.93, 0.95, 5))  # between the pixels
        grid = tf.stack([tf.reshape(gx, [-1]), tf.reshape(gy, [-1]), tf.ones([25])])
        at = (tf.matmul(theta, tf.tile(grid[None], [2, 1, 1])) + 1) * 3
        px, py = at[:, 0], at[:, 1]
        x0, y0 = tf.floor(px), tf.floor(py)
        def look(ix, iy):
            ix, iy = (tf.clip_by_value(tf.cast(i, tf.int32), 0, 6) for i in (ix, iy))
            b = tf.tile(tf.range(2)[:, None], [1, 25])
            return tf.gather_nd(x, tf.stack([b, iy, ix], 2))
        out = sum(tf.expand_dims((1 - tf.abs(px - ix)) * (1 - tf.abs(py - iy)), 2) * look(ix, iy) for ix in (x0, x0 + 1) for iy in (y0, y0 + 1))
        loss = tf.reduce_mean((out - 0.5) ** 2)
        # at 0.1, each step multiplies rounding errors by ten
        return steps([loss, theta], train=tf.train.GradientDescentOptimizer(0.01).minimize(loss), n=3)


def boxes_found():
    """As in YOLO and Faster R-CNN: anchors, overlaps, offsets, non-maximum suppression per class, pooled regions."""
    with on_ps():
        x = some([1, 4, 4, 3], 1)
        out = tf.reshape(conv(x, 2 * 7, 3, 1), [16 * 2, 7])
        gx, gy = tf.meshgrid(tf.range(4), tf.range(4))
        cell = tf.reshape(tf.tile(tf.reshape(tf.to_float(tf.stack([gx, gy], 2)), [16, 1, 2]), [1, 2, 1]), [32, 2])
        centre = (tf.sigmoid(out[:, :2]) + cell) / 4
        size = tf.exp(tf.clip_by_value(out[:, 2:4], -2, 2)) * tf.tile(tf.constant([[0.2, 0.3], [0.4, 0.25]]), [16, 1])
        boxes = tf.concat([centre - size / 2, centre + size / 2], 1)
        scores = tf.sigmoid(out[:, 4:])
        kept = []
        for c in range(3):
            i = tf.image.non_max_suppression(boxes, scores[:, c], 4, 0.4, 0.5)
            kept.append(tf.gather(boxes, i))
        many = tf.image.combined_non_max_suppression(boxes[None, :, None], scores[None], 3, 6, 0.4, 0.5)
        regions = tf.image.crop_and_resize(x, boxes[:5], tf.zeros([5], tf.int32), [3, 3])
        truth = tf.constant([[0.1, 0.1, 0.4, 0.5], [0.5, 0.6, 0.9, 0.8]])
        lo, hi = tf.maximum(boxes[:, None, :2], truth[None, :, :2]), tf.minimum(boxes[:, None, 2:], truth[None, :, 2:])
        inside = tf.reduce_prod(tf.maximum(hi - lo, 0), 2)
        area = lambda b: tf.reduce_prod(b[:, 2:] - b[:, :2], 1)
        iou = inside / (area(boxes)[:, None] + area(truth)[None] - inside)
        best = tf.reduce_max(iou, 1)
        match = tf.gather(truth, tf.argmax(iou, 1))
        picked = tf.boolean_mask(boxes - match, best > 0.1)
        loss = tf.losses.huber_loss(tf.zeros_like(picked), picked) + tf.reduce_mean(tf.square(scores)) + 0.1 * tf.reduce_mean(regions) + tf.reduce_mean(tf.reduce_max(regions, [1, 2]))
        return steps([loss, best, *kept, *many], train=tf.train.MomentumOptimizer(0.5, 0.9).minimize(loss))


def capsules():
    """Routing by agreement in a loop, einsum, squashing, the margin loss, and a masked reconstruction."""
    with on_ps():
        x = some([2, 6, 4], 1)
        w = var("w", [6, 3, 5, 4], 2)
        u = tf.einsum("bik,ijok->bijo", x, w)
        stopped = tf.stop_gradient(u)
        squash = lambda s: s * tf.norm(s, axis=-1, keepdims=True) / (1 + tf.reduce_sum(s ** 2, -1, keepdims=True))
        def turn(k, b):
            v = squash(tf.reduce_sum(tf.nn.softmax(b, 2)[..., None] * stopped, 1, keepdims=True))
            return k + 1, b + tf.reduce_sum(stopped * v, -1)
        _, b = tf.while_loop(lambda k, b: k < 2, turn, [0, tf.zeros([2, 6, 3])])
        v = squash(tf.reduce_sum(tf.nn.softmax(b, 2)[..., None] * u, 1))
        long_ = tf.sqrt(tf.reduce_sum(v ** 2, -1) + 1e-9)
        t = tf.one_hot([0, 2], 3)
        margin = tf.reduce_sum(t * tf.maximum(0.0, 0.9 - long_) ** 2 + 0.5 * (1 - t) * tf.maximum(0.0, long_ - 0.1) ** 2)
        rebuilt = dense(tf.reshape(v * t[..., None], [2, 15]), 24, 3, tf.sigmoid)
        loss = margin + 0.05 * tf.losses.mean_squared_error(tf.reshape(x, [2, 24]), rebuilt)
        return steps([loss, long_, b], train=tf.train.AdamOptimizer(0.01).minimize(loss))


def quantised_training():
    """Fake quantisation with learnt ranges, as contrib.quantize rewrites graphs; depthwise separable convolutions."""
    with on_ps():
        x = some([2, 6, 6, 3], 1)
        low, high = tf.get_variable("low", [], initializer=tf.constant_initializer(-0.9)), tf.get_variable("high", [], initializer=tf.constant_initializer(0.8))
        q = tf.quantization.fake_quant_with_min_max_vars(x, low, high)
        k = var("k", [3, 3, 3, 2], 2)
        k = tf.quantization.fake_quant_with_min_max_vars_per_channel(k, tf.reduce_min(k, [0, 1, 2]), tf.reduce_max(k, [0, 1, 2]), narrow_range=True)
        h = tf.nn.relu6(tf.nn.depthwise_conv2d(q, k, [1, 2, 2, 1], "SAME"))
        h = tf.layers.separable_conv2d(h, 4, 3, padding="same", depthwise_initializer=tf.glorot_uniform_initializer(1), pointwise_initializer=tf.glorot_uniform_initializer(2))
        h = tf.quantization.fake_quant_with_min_max_args(h, -2, 2, 4)
        h = tf.quantization.quantize_and_dequantize(h, -1.0, 1.0, range_given=True)
        loss = tf.reduce_mean((tf.reduce_mean(h, [1, 2]) - 0.5) ** 2)
        return steps([loss, q, low, high], train=tf.train.GradientDescentOptimizer(0.5).minimize(loss))


def pixels_and_waves():
    """PixelCNN and WaveNet: masked convolutions, gated causal 1-D convolutions, and mu-law sound."""
    with on_ps():
        mask = np.ones([3, 3, 2, 4], np.float32)
        mask[1, 2:], mask[2:] = 0, 0
        x = some([2, 6, 6, 2], 1)
        h = tf.nn.conv2d(x, var("k", [3, 3, 2, 4], 2) * mask, [1] * 4, "SAME")
        sound = some([2, 20], 3)
        mu = 15.0
        coded = tf.to_int32((tf.sign(sound) * tf.log1p(mu * tf.abs(sound)) / np.log1p(mu) + 1) / 2 * mu + 0.5)
        w = tf.one_hot(coded, 16)
        for k, rate in enumerate((1, 2, 4)):
            late = tf.pad(w, [[0, 0], [rate, 0], [0, 0]])
            gate = [tf.layers.conv1d(late, 6, 2, dilation_rate=rate, activation=f, kernel_initializer=tf.glorot_uniform_initializer(10 * k + i)) for i, f in enumerate((tf.tanh, tf.sigmoid))]
            w = tf.concat([w[:, :, :10], gate[0] * gate[1]], 2)
        logits = tf.layers.conv1d(w, 16, 1, kernel_initializer=tf.glorot_uniform_initializer(9))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=coded[:, 1:], logits=logits[:, :-1])) + tf.reduce_mean(tf.nn.moments(h, [0])[1])
        return steps([loss, coded], train=tf.train.AdamOptimizer(0.01).minimize(loss))


def normalisations():
    """Layer, group, instance, weight and spectral normalisation; each step assigns the vector of the power
    iteration."""
    with on_ps():
        x = some([3, 4, 4, 6], 1)
        def stats(y, axes):
            m, v = tf.nn.moments(y, axes, keep_dims=True)
            return tf.nn.batch_normalization(y, m, v, None, None, 1e-5)
        group = tf.reshape(stats(tf.reshape(x, [3, 4, 4, 2, 3]), [1, 2, 4]), [3, 4, 4, 6])
        instance = stats(x, [1, 2])
        v, g = var("v", [6, 5], 1), tf.get_variable("gain", [5], initializer=tf.ones_initializer())
        weight = tf.tensordot(group, g * tf.nn.l2_normalize(v, 0), 1)
        w = var("w", [5, 3], 2)
        u = tf.get_variable("u", [1, 3], initializer=tf.truncated_normal_initializer(seed=3), trainable=False)
        left = tf.nn.l2_normalize(tf.matmul(u, w, transpose_b=True))
        right = tf.nn.l2_normalize(tf.matmul(left, w))
        sigma = tf.matmul(tf.matmul(tf.stop_gradient(left), w), tf.stop_gradient(right), transpose_b=True)[0, 0]
        with tf.control_dependencies([sigma]):
            keep = u.assign(right)
        loss = tf.reduce_mean(tf.tensordot(weight, w / sigma, 1) ** 2) + tf.reduce_mean(instance ** 3)
        renorm = tf.layers.batch_normalization(x, training=True, renorm=True, momentum=0.5)
        loss += tf.reduce_mean(tf.nn.crelu(renorm)) + tf.reduce_mean(tf.nn.selu(renorm))
        train = tf.train.MomentumOptimizer(0.1, 0.5).minimize(loss)
        return steps([loss, sigma], train=[train, keep, tf.get_collection(tf.GraphKeys.UPDATE_OPS)])


if __name__ == "__main__":
    answer_each(forget)
