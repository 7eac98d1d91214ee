# SPDX-License-Identifier: Apache-2.0
"""The interface of tf.train.Server for a muster-task process.

One deliberate difference: the constructor starts the server even with start=False, because its port, and thus the
target, is known only then.  (TensorFlow's constructor binds the port, too.)
"""
import atexit
import gc
import os
import signal
import sys
import threading
import weakref

from .cluster import describe
from .process import Process, StartError

running = weakref.WeakSet()


def close_sessions(targets):
    """Closes sessions that the program left open, as Keras does in a global.  Otherwise they would be closed after the
    server has ended, and wait forever."""
    try:
        from tensorflow.python.client.session import BaseSession
    except ImportError:
        return
    for session in [o for o in gc.get_objects() if issubclass(type(o), BaseSession)]:
        if getattr(session, "_target", None) in targets:
            try:
                session.close()
            except Exception:  # a partly constructed session or a failed step; the program is ending
                pass


@atexit.register
def stop_all():
    if "tensorflow" in sys.modules and running:
        close_sessions({process.target.encode() for process in running if process.child.poll() is None})
    for process in list(running):
        process.stop()


def bypass_proxy(target):
    """Excludes the local server from a proxy in the environment."""
    host = target.split("//")[-1].rpartition(":")[0]
    excluded = os.environ.get("no_grpc_proxy", os.environ.get("no_proxy", ""))
    if host not in excluded.split(","):
        os.environ["no_grpc_proxy"] = ",".join(filter(None, [excluded, host]))


def to_tensorflow_error(error):
    """Converts the error to the exception of TensorFlow's server, if TensorFlow is loaded."""
    if "tensorflow" not in sys.modules:
        return error
    from tensorflow.python.framework import errors_impl as errors
    if error.bad_arguments:
        return errors.InvalidArgumentError(None, None, str(error))
    return errors.UnknownError(None, None, f"Could not start the server: {error}")


class Server:
    def __init__(self, server_or_cluster_def, job_name=None, task_index=None, protocol=None, config=None, start=True):
        self._cluster, self._job, self._index = describe(server_or_cluster_def, job_name, task_index)
        self._config = getattr(server_or_cluster_def, "default_session_config", None)
        if config is not None:
            merged = type(config)()
            if self._config is not None:
                merged.CopyFrom(self._config)
            merged.MergeFrom(config)
            self._config = merged
        settings = self._config.SerializeToString() if self._config is not None else b""
        try:
            self._process = Process(self._cluster, self._job, self._index, settings)
        except StartError as error:
            raise to_tensorflow_error(error) from None
        running.add(self._process)
        bypass_proxy(self._process.target)

    def __del__(self):
        pass  # as in TensorFlow, the server runs until the program ends: trainers keep only the target

    def start(self):
        """Does nothing; see the head of this file."""

    def join(self):
        """Ends the program when the server has ended: after SIGTERM, or `finish` at its HTTP port.

        It does not return, as in TensorFlow.  In many trainers the worker's code follows, and a ps must not run it.  While
        the main thread waits, SIGTERM drains the server instead of killing this program.
        """
        process = self._process
        handles_sigterm = threading.current_thread() is threading.main_thread() and \
            signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        if handles_sigterm:
            signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        try:
            status = process.wait()
        finally:
            if handles_sigterm:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if status:
            raise RuntimeError(f"the server of {self._job}/{self._index} ended with exit status {status}: {process.last_line}")
        raise SystemExit(0)

    @property
    def target(self):
        return self._process.target

    @property
    def server_def(self):
        from tensorflow.core.protobuf import tensorflow_server_pb2 as messages
        server_def = messages.ServerDef(job_name=self._job, task_index=self._index, protocol="grpc")
        for name, tasks in self._cluster.items():
            job = server_def.cluster.job.add(name=name)
            for index, address in tasks.items():
                job.tasks[index] = address
        if self._config is not None:
            server_def.default_session_config.CopyFrom(self._config)
        return server_def

    @staticmethod
    def create_local_server(config=None, start=True):
        """A cluster of one task, on a free port of this machine."""
        return Server({"local": ["localhost:0"]}, config=config, start=start)
