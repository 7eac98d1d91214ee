# SPDX-License-Identifier: Apache-2.0
"""Loads the libraries of TensorFlow 1.15's tf.contrib that contain the ops of lib/ops/ops_contrib.def."""
import tensorflow as tf
from tensorflow.contrib import factorization, image, input_pipeline, layers, libsvm, resampler, seq2seq, text
from tensorflow.contrib.framework.python.ops import variables
from tensorflow.contrib.image.python.ops import distort_image_ops

assert all([factorization, image, input_pipeline, layers, libsvm, resampler, seq2seq, text, distort_image_ops])
with tf.Graph().as_default():
    variables.zero_initializer(tf.get_variable("v", [1]))  # the first call loads the library
