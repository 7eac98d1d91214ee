# SPDX-License-Identifier: Apache-2.0
"""Runs trainers written for tf.train.Server on Muster's task server.

    python -m muster trainer.py --job_name=worker …     run an unmodified trainer
    muster.install()                                    the same, from a program
    muster.Server(cluster, "worker", 0)                 one server, with or without TensorFlow
"""
from .server import Server, StartError
from .install import install

__all__ = ["Server", "StartError", "install"]
