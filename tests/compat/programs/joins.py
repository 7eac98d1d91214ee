# SPDX-License-Identifier: Apache-2.0
"""A ps as old trainers have it: what stands behind join() is the worker's part.  Its server ends a moment later."""
import threading

import muster

server = muster.Server({"ps": ["localhost:0"]}, "ps", 0)
threading.Timer(0.3, server._process.terminate).start()
print("joins", flush=True)
server.join()
print("goes on as a worker")
