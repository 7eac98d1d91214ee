# SPDX-License-Identifier: Apache-2.0
"""A trainer that leaves its session open in another module's name, as Keras does: it is freed at the very end."""
import sys
import types

import tensorflow as tf

tf.disable_eager_execution()
server = tf.train.Server.create_local_server()
keeper = sys.modules["keeper"] = types.ModuleType("keeper")
keeper.session = tf.Session(server.target)
print(keeper.session.run(tf.constant(7)), flush=True)
