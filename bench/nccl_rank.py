#!/usr/bin/env python3
"""One rank of an allreduce by NCCL itself, whose results are checked; no header, no PyTorch. Rank 0 prints
the mean and the best time of an operation as JSON.

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say who meets where. Where the CUDA runtime is not beside the
library, the loader must find it (LD_LIBRARY_PATH)."""
import argparse
import array
import ctypes
import glob
import json
import os
import socket
import time

FLOAT, SUM = 7, 0  # ncclFloat32, ncclSum: NCCL, src/nccl.h.in
NON_BLOCKING = 1  # cudaStreamNonBlocking
TO_DEVICE, FROM_DEVICE = 1, 2  # cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]  # NCCL_UNIQUE_ID_BYTES


def library(path, name):
    """The library that the path is, or has; else what the loader finds."""
    found = [path] if os.path.isfile(path) else sorted(glob.glob(os.path.join(path, name + ".so*")))
    return found[0] if found else None


def loaded(name):
    """The file of a library that is in this process already."""
    with open("/proc/self/maps") as maps:
        return next((line.split()[-1] for line in maps if name in line.split()[-1]), None)


def meet(rank, size, unique):
    """Rank 0's identifier at all ranks. The connections stay, for a barrier at the end."""
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if rank == 0:
        listener = socket.create_server(address)
        peers = [listener.accept()[0] for _ in range(size - 1)]
        for peer in peers:
            peer.sendall(bytes(unique))
        return peers
    for _ in range(200):
        try:
            peer = socket.create_connection(address, timeout=60)
            break
        except OSError:
            time.sleep(0.1)
    ctypes.memmove(ctypes.byref(unique), peer.recv(ctypes.sizeof(unique), socket.MSG_WAITALL), ctypes.sizeof(unique))
    return [peer]


class Rank:
    def __init__(self, options):
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        # Hosts of their own, so that they talk by the network and may share a GPU.
        os.environ["NCCL_HOSTID"] = f"{os.uname().nodename}-{self.rank}"
        self.nccl = ctypes.CDLL(library(options.nccl, "libnccl"))
        runtime = library(os.path.dirname(options.nccl) if os.path.isfile(options.nccl) else options.nccl, "libcudart")
        self.cuda = ctypes.CDLL(loaded("libcudart") or runtime or "libcudart.so")
        devices = ctypes.c_int()
        self.call(self.cuda, "cudaGetDeviceCount", ctypes.byref(devices))
        self.call(self.cuda, "cudaSetDevice", self.rank % max(devices.value, 1))
        unique = UniqueId()
        if self.rank == 0:
            self.call(self.nccl, "ncclGetUniqueId", ctypes.byref(unique))
        self.peers = meet(self.rank, self.size, unique)
        self.comm, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        self.call(self.cuda, "cudaStreamCreateWithFlags", ctypes.byref(self.stream), NON_BLOCKING)
        self.call(self.nccl, "ncclCommInitRank", ctypes.byref(self.comm), self.size, unique, self.rank)

    def call(self, where, name, *arguments):
        code = getattr(where, name)(*arguments)
        if code != 0:
            raise SystemExit(f"nccl_rank: {name} returned {code}; NCCL_DEBUG=INFO says more")

    def memory(self, size):
        pointer = ctypes.c_void_p()
        self.call(self.cuda, "cudaMalloc", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer

    def copy(self, to, source, size, kind):
        self.call(self.cuda, "cudaMemcpy", to, source, ctypes.c_size_t(size), kind)

    def all_reduce(self, source, target, count):
        self.call(self.nccl, "ncclAllReduce", source, target, ctypes.c_size_t(count), FLOAT, SUM, self.comm, self.stream)
        self.call(self.cuda, "cudaStreamSynchronize", self.stream)

    def run(self, size, operations, warm_up):
        count = size // 4
        # Small whole numbers: their sums are exact.
        pattern = array.array("f", [(self.rank + 1) * (i % 251) for i in range(1004)]) * (count // 1004 + 1)
        host = (ctypes.c_float * count).from_buffer(pattern)
        source, target = self.memory(size), self.memory(size)
        self.copy(source, ctypes.byref(host), size, TO_DEVICE)
        took = []
        for n in range(warm_up + operations):
            began = time.perf_counter()
            self.all_reduce(source, target, count)
            if n >= warm_up:
                took.append((time.perf_counter() - began) * 1e6)
        self.copy(ctypes.byref(host), target, size, FROM_DEVICE)
        factor = self.size * (self.size + 1) // 2
        want = array.array("f", [factor * (i % 251) for i in range(1004)]) * (count // 1004 + 1)
        wrong = 0 if pattern[:count] == want[:count] else sum(a != b for a, b in zip(pattern[:count], want))
        return {"size": size, "time_us": sum(took) / len(took), "best_us": min(took), "wrong": wrong}

    def close(self, wrong):
        """True: no rank has found anything wrong."""
        for peer in self.peers:
            peer.sendall(bytes([wrong > 0]))
        good = wrong == 0 and all(peer.recv(1) == b"\0" for peer in self.peers)
        self.call(self.nccl, "ncclCommDestroy", self.comm)
        return good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nccl", required=True, help="libnccl.so.2, or the directory that it is in")
    parser.add_argument("--size", type=int, default=16 << 20)
    parser.add_argument("-n", type=int, default=4)
    parser.add_argument("-w", type=int, default=4)
    parser.add_argument("--json")
    options = parser.parse_args()
    rank = Rank(options)
    result = rank.run(options.size, options.n, options.w)
    if not rank.close(result["wrong"]):
        raise SystemExit(f"nccl_rank: wrong results: {result['wrong']} at rank {rank.rank}")
    if options.json and rank.rank == 0:
        with open(options.json, "w") as file:
            json.dump(result, file)


if __name__ == "__main__":
    main()
