# SPDX-License-Identifier: Apache-2.0
"""A ps in the style of old trainers: the code after join() is for workers. The server ends while join() waits."""
import threading

import muster

server = muster.Server({"ps": ["localhost:0"]}, "ps", 0)
threading.Timer(0.3, server._process.terminate).start()
print("joins", flush=True)
server.join()
print("goes on as a worker")
