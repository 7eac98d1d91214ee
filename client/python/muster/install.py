# SPDX-License-Identifier: Apache-2.0
"""Replaces TensorFlow's server class, and adds TensorFlow 1's names to TensorFlow 2."""
import importlib
import sys
import types

from .server import Server

REPLACED = ("__init__", "__del__", "start", "join", "target", "server_def")


def replace_server():
    """Keeps TensorFlow's class and all its names, but replaces its methods by ours."""
    from tensorflow.python.training import server_lib
    for name in REPLACED:
        setattr(server_lib.Server, name, Server.__dict__[name])


def contrib(tf):
    """A tf.contrib with those functions that TensorFlow 2 has elsewhere."""
    framework = types.ModuleType("tensorflow.contrib.framework")
    for name in ("get_or_create_global_step", "get_global_step", "create_global_step", "assert_global_step"):
        setattr(framework, name, getattr(tf.train, name))
    layers = types.ModuleType("tensorflow.contrib.layers")
    layers.xavier_initializer = lambda uniform=True, seed=None, dtype=tf.float32: (
        tf.glorot_uniform_initializer if uniform else tf.glorot_normal_initializer)(seed=seed, dtype=dtype)
    whole = types.ModuleType("tensorflow.contrib")
    whole.framework, whole.layers, whole.__path__ = framework, layers, []
    for module in (whole, framework, layers):
        sys.modules[module.__name__] = module
    return whole


def pretend_tensorflow_1():
    """`import tensorflow` gives TensorFlow 1's names, with graphs and sessions instead of eager execution."""
    two = importlib.import_module("tensorflow")
    if two.__version__.startswith("1."):
        return
    one = importlib.import_module("tensorflow.compat.v1")
    level = one.logging.get_verbosity()
    one.logging.set_verbosity(one.logging.ERROR)  # suppress its deprecation warning
    one.disable_v2_behavior()
    one.logging.set_verbosity(level)

    class TensorFlow1(types.ModuleType):
        def __getattr__(self, name):
            try:
                return getattr(one, name)
            except AttributeError:
                return getattr(two, name)

        def __dir__(self):
            return dir(one)

    module = TensorFlow1("tensorflow", one.__doc__)
    for name in ("__path__", "__file__", "__spec__", "__version__"):
        setattr(module, name, getattr(two, name))
    module.contrib = contrib(one)
    sys.modules["tensorflow"] = module


def install(tf1=False):
    """Makes tf.train.Server and tf.distribute.Server start Muster's server."""
    replace_server()
    if tf1:
        pretend_tensorflow_1()
