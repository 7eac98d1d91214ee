"""Connects to ports of tasks from outside their job, and prints the responses.

stranger.py WHO HOST:PORT...: one line each, "WHO HOST:PORT heard N bytes: why it ended".  WHO is `clear` (speaks HTTP/2
without TLS) or the folder of a client certificate for a TLS handshake, which does not verify the server.  N counts
application bytes; a TLS alert without TLS counts as 0 bytes and is named."""
import socket
import ssl
import sys

HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"


def knock(who, host, port):
    s = socket.create_connection((host, port), 10)
    s.settimeout(10)
    heard, why = b"", "it hung up"
    try:
        if who != "clear":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            context.set_alpn_protocols(["h2"])
            context.load_cert_chain(who + "/tls.crt", who + "/tls.key")
            s = context.wrap_socket(s)
        s.sendall(HELLO)
        while len(heard) < 1000:
            more = s.recv(1000)
            if not more:
                break
            heard += more
            if who != "clear":  # the first response shows that the connection is accepted
                why = "it answers"
                break
    except (OSError, ssl.SSLError) as e:
        why = str(e)
    if who == "clear" and len(heard) == 7 and heard[:2] == b"\x15\x03":
        heard, why = b"", "an alert of TLS"
    print("%s %s:%d heard %d bytes: %s" % (who, host, port, len(heard), why), flush=True)


for address in sys.argv[2:]:
    name, number = address.rsplit(":", 1)
    knock(sys.argv[1], name, int(number))
