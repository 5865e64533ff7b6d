#!/usr/bin/env python3
"""The control channel of a switch whose reports are of the test's choice (switch/protocol/control.h).

    lying_switch.py REPORT

REPORT: deep, 300,000 brackets; or texts with control characters. Prints its address, answers until it
is ended.
"""
import json
import socket
import struct
import sys

HEADER = struct.Struct("<IBB2xII")
CHALLENGE, TEXT = 2, 12
REPORTS = {
    "deep": "[" * 300_000 + "]" * 300_000,
    "texts": json.dumps({"switch": {"address": "a\x1b[2Jb\u202e\r\n\x9bforged" + "x" * 10_000, "shards": 1},
                         "jobs": [{"job": 1, "tenant": "\x1b]0;title\x07"}]}),
}


def frame(kind, sequence, payload):
    return HEADER.pack(0x434D4C53, 5, kind, sequence, len(payload)) + payload + bytes(32)


def read(peer, size):
    data = b""
    while len(data) < size:
        part = peer.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def serve(peer, report):
    while True:
        _, _, kind, sequence, size = HEADER.unpack(read(peer, HEADER.size))
        read(peer, size + 32)
        answer = frame(CHALLENGE, sequence, bytes(17)) if kind == 1 else frame(TEXT, sequence, report)
        peer.sendall(answer)


listener = socket.create_server(("127.0.0.1", 0))
print("127.0.0.1:%d" % listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    try:
        serve(connection, REPORTS[sys.argv[1]].encode())
    except (EOFError, OSError):
        connection.close()
