#!/usr/bin/env python3
"""A hostile neighbour of a switch, until it is ended.

    hostile.py SWITCH PORT VICTIM SEED

From a raw socket: nothing, random bytes, headers of SAP/2 (switch/protocol/sap.h) that are right where
they can be guessed, with lengths that are not; from its own address and, forged, from VICTIM's.
"""
import itertools
import random
import socket
import struct
import sys
import time

HEADER = struct.Struct("!BBBBHBBIHHIIbbBBI")


def sap(chance):
    lanes = chance.choice((0, 1, 8, 64, 2048, 2049, 65535))
    header = HEADER.pack(
        0xA2, chance.randint(0, 9), chance.choice((0, 1, 0x10, 0x30, 0xF0)), chance.choice((0, 1, 2, 255)),
        chance.randint(0, 5), chance.randrange(256), chance.choice((0, 1, 2, 31, 255)), chance.getrandbits(32),
        chance.choice((0, 1, 15, 16, 65535)), lanes, chance.choice((0, 1, 2, 100, 2**31, 2**32 - 1)),
        chance.getrandbits(32), chance.randint(-128, 127), chance.randint(-128, 127),
        chance.randrange(256), chance.choice((0, 0, 1)), chance.getrandbits(32))
    return header + chance.randbytes(4 * chance.choice((lanes if lanes <= 2048 else 0, 0, 1, 8)))


def datagram(source, port, target, target_port, payload):
    udp = struct.pack("!HHHH", port, target_port, 8 + len(payload), 0)  # 0: no checksum, RFC 768
    total = 20 + len(udp) + len(payload)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, total, 0, 0, 64, 17, 0,
                     socket.inet_aton(source), socket.inet_aton(target))
    return ip + udp + payload


def main():
    switch, first_port, victim = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    chance = random.Random(int(sys.argv[4]))
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.connect((switch, first_port))
    address = own.getsockname()[0]
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    for count in itertools.count():
        if count == 100:
            print("ready", flush=True)
        payload = sap(chance) if chance.random() < 0.8 else chance.randbytes(chance.choice((0, 1, 31, 32, 4000)))
        source = chance.choice((address, victim))
        port = chance.randrange(32768, 61000)
        raw.sendto(datagram(source, port, switch, first_port, payload), (switch, 0))
        time.sleep(0.0003)


if __name__ == "__main__":
    main()
