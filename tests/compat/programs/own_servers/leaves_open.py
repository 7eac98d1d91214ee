# SPDX-License-Identifier: Apache-2.0
"""A trainer whose open session is an attribute of another module, as in Keras. Python frees it at the very end."""
import sys
import types

import tensorflow as tf

tf.disable_eager_execution()
server = tf.train.Server.create_local_server()
keeper = sys.modules["keeper"] = types.ModuleType("keeper")
keeper.session = tf.Session(server.target)
print(keeper.session.run(tf.constant(7)), flush=True)
