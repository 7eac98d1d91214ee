# SPDX-License-Identifier: Apache-2.0
"""Exits while a forked child lives on, as the children of a multiprocessing pool do when the program is killed."""
import os
import socket
import time

import muster

server = muster.Server({"local": ["localhost:0"]})
host, port = server.target.removeprefix("grpc://").rsplit(":", 1)
if os.fork():
    os._exit(0)
end = time.time() + 60
while time.time() < end:
    try:
        socket.create_connection((host, port)).close()
    except ConnectionRefusedError:
        print("the server has ended", flush=True)
        break
    time.sleep(0.05)
os._exit(0)
