"""Free ports for new servers."""
import os
import socket

# Below the kernel's ephemeral ports, since a connection could take a free port of those before the server starts, and
# above the ports that `muster run` and the tests draw.
FIRST, COUNT = 30000, 2768
_drawn = os.getpid()  # so that concurrent runs start at different ports


def free_ports(n):
    """Returns n free ports that this process has not returned before."""
    global _drawn
    ports = []
    for _ in range(COUNT):
        port = FIRST + _drawn % COUNT
        _drawn += 1
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == n:
            return ports
    raise RuntimeError(f"fewer than {n} of the ports from {FIRST} to {FIRST + COUNT - 1} are free")
