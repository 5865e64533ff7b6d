#!/usr/bin/env python3
"""ping.py ADDRESS: one echo request (RFC 792), as not every machine has ping. Exit status 1: no
answer in ten tries of half a second."""
import os
import socket
import struct
import sys


def checksum(words):
    total = sum(struct.unpack(f">{len(words) // 2}H", words))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


address, number = sys.argv[1], os.getpid() & 0xFFFF
with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as icmp:
    icmp.settimeout(0.5)
    for attempt in range(10):
        body = struct.pack(">HH", number, attempt) + bytes(range(56))
        request = struct.pack(">BBH", 8, 0, checksum(struct.pack(">HH", 8 << 8, 0) + body)) + body
        try:
            icmp.sendto(request, (address, 0))
            while True:
                packet, sender = icmp.recvfrom(2048)
                answer = packet[20:]
                if sender[0] == address and answer[0] == 0 and answer[4:8] == body[:4]:
                    if checksum(answer) != 0 or answer[8:] != body[4:]:
                        sys.exit(f"{address} answers with wrong bytes")
                    print(f"{address} answers to ping")
                    sys.exit(0)
        except OSError:
            continue
sys.exit(f"{address} does not answer to ping")
