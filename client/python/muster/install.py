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
    """A tf.contrib with the functions that TensorFlow 2 has in other modules."""
    framework = types.ModuleType("tensorflow.contrib.framework")
    for name in ("get_or_create_global_step", "get_global_step", "create_global_step", "assert_global_step"):
        setattr(framework, name, getattr(tf.train, name))
    layers = types.ModuleType("tensorflow.contrib.layers")
    layers.xavier_initializer = lambda uniform=True, seed=None, dtype=tf.float32: (
        tf.glorot_uniform_initializer if uniform else tf.glorot_normal_initializer)(seed=seed, dtype=dtype)
    contrib_module = types.ModuleType("tensorflow.contrib")
    contrib_module.framework, contrib_module.layers, contrib_module.__path__ = framework, layers, []
    for module in (contrib_module, framework, layers):
        sys.modules[module.__name__] = module
    return contrib_module


def pretend_tensorflow_1():
    """`import tensorflow` gives TensorFlow 1's names, with graphs and sessions instead of eager execution."""
    v2 = importlib.import_module("tensorflow")
    if v2.__version__.startswith("1."):
        return
    v1 = importlib.import_module("tensorflow.compat.v1")
    level = v1.logging.get_verbosity()
    v1.logging.set_verbosity(v1.logging.ERROR)  # suppress its deprecation warning
    v1.disable_v2_behavior()
    v1.logging.set_verbosity(level)

    class TensorFlow1(types.ModuleType):
        def __getattr__(self, name):
            try:
                return getattr(v1, name)
            except AttributeError:
                return getattr(v2, name)

        def __dir__(self):
            return dir(v1)

    module = TensorFlow1("tensorflow", v1.__doc__)
    for name in ("__path__", "__file__", "__spec__", "__version__"):
        setattr(module, name, getattr(v2, name))
    module.contrib = contrib(v1)
    sys.modules["tensorflow"] = module


def install(tf1=False):
    """Makes tf.train.Server and tf.distribute.Server start Muster's server."""
    replace_server()
    if tf1:
        pretend_tensorflow_1()
