# SPDX-License-Identifier: Apache-2.0
"""Trainers written for tf.train.Server, on Muster's task server.

    python -m muster trainer.py --job_name=worker …     runs an unmodified trainer
    muster.install()                                    the same, from within a program
    muster.Server(cluster, "worker", 0)                 one server, with or without TensorFlow at hand
"""
from .server import Server, StartError
from .install import install

__all__ = ["Server", "StartError", "install"]
