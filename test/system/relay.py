#!/usr/bin/env python3
"""A link that delays and reorders: forwards Ethernet frames between two interfaces.

    relay.py A B --seed N --delay-us MIN MAX [--flip P]    until it is ended
    relay.py --plain DEVICE                                no offloads there, so that frames are whole

UDP frames wait for a random time each, so they overtake each other; with --flip, that share of them
leaves with one bit of its payload changed and a right checksum, as by a fault behind the wire's own
check. All other frames pass at once. Needs a network namespace of its own (AF_PACKET).
"""
import argparse
import fcntl
import heapq
import random
import select
import socket
import struct
import sys
import time

OUTGOING = 4  # linux/if_packet.h: a frame that we sent ourselves
ETHERNET, UDP_HEADER, SAP_HEADER = 14, 8, 32


def no_offloads(device):
    """Checksums are made before the frame leaves, and frames are cut (linux/ethtool.h)."""
    rx_checksums, tx_checksums, segments = 0x15, 0x17, (0x1F, 0x24, 0x2C)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        import array

        for command in (tx_checksums, rx_checksums, *segments):
            value = array.array("B", struct.pack("II", command, 0))
            request = struct.pack("16sP", device.encode(), value.buffer_info()[0])
            try:
                fcntl.ioctl(control, 0x8946, request)  # SIOCETHTOOL
            except OSError as error:
                if command == tx_checksums:
                    sys.exit(f"relay: {device}: {error}")


def is_udp(frame):
    return len(frame) > ETHERNET + 20 and frame[12:14] == b"\x08\x00" and frame[ETHERNET + 9] == 17


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def flipped(frame, chance):
    """One bit of the UDP payload changed, behind the header of SAP/2, and the checksum right."""
    ip = ETHERNET
    udp = ip + 4 * (frame[ip] & 15)
    first = udp + UDP_HEADER + SAP_HEADER
    if len(frame) <= first:
        return frame
    out = bytearray(frame)
    out[chance.randrange(first, len(out))] ^= 1 << chance.randrange(8)
    out[udp + 6 : udp + 8] = b"\0\0"
    length = struct.unpack_from("!H", out, udp + 4)[0]
    pseudo = bytes(out[ip + 12 : ip + 20]) + struct.pack("!BBH", 0, 17, length)
    struct.pack_into("!H", out, udp + 6, checksum(pseudo + bytes(out[udp : udp + length])) or 0xFFFF)
    return bytes(out)


def relay(options):
    chance = random.Random(options.seed)
    ends = []
    for device in (options.a, options.b):
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL
        end.bind((device, 0))
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        ends.append(end)
    shortest, longest = (us / 1e6 for us in options.delay_us)
    waiting, order = [], 0
    print("relay: ready", flush=True)
    while True:
        pause = max(0, waiting[0][0] - time.monotonic()) if waiting else 1
        for end in select.select(ends, [], [], pause)[0]:
            frame, source = end.recvfrom(65536)
            if source[2] == OUTGOING:
                continue
            due = 0.0
            if is_udp(frame):
                due = time.monotonic() + chance.uniform(shortest, longest)
                if chance.random() < options.flip:
                    frame = flipped(frame, chance)
            order += 1
            heapq.heappush(waiting, (due, order, ends[1 - ends.index(end)], frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, end, frame = heapq.heappop(waiting)
            try:
                end.send(frame)
            except BlockingIOError:
                pass  # lost, as on a full link


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("a", nargs="?")
    parser.add_argument("b", nargs="?")
    parser.add_argument("--plain", metavar="DEVICE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--delay-us", type=float, nargs=2, default=(0, 2000), metavar=("MIN", "MAX"))
    parser.add_argument("--flip", type=float, default=0.0, metavar="P")
    options = parser.parse_args()
    if options.plain:
        no_offloads(options.plain)
    elif options.a and options.b:
        relay(options)
    else:
        parser.error("two interfaces, or --plain")


if __name__ == "__main__":
    main()
