"""The collectives that are tried, with what must come out. Values are small whole numbers, so that
every type holds every result exactly and results are compared for equality."""
import torch
import torch.distributed as dist

SIZES = (1, 3, 17, 1023, 4097, 65537, 1048577)  # elements: odd, around and beyond one stripe
GUARD = 64  # elements before and behind each result that nobody may touch
GUARD_VALUE = 99

TYPES = {"float32": torch.float32, "float64": torch.float64, "float16": torch.float16,
         "bfloat16": torch.bfloat16, "int32": torch.int32, "int64": torch.int64,
         "int8": torch.int8, "uint8": torch.uint8}


class Wrong(Exception):
    """A result that differs from what must come out."""


class World:
    def __init__(self, rank, size, device, backend):
        self.rank, self.size, self.device, self.backend = rank, size, device, backend

    def values(self, rank, count, dtype, salt=0):
        """What `rank` contributes: 1 and 2 only, so that a product stays small."""
        index = torch.arange(count, dtype=torch.int64)
        return ((index * 7 + rank * 3 + salt + index // 5) % 2 + 1).to(dtype).to(self.device)

    def guarded(self, count, dtype):
        """A whole buffer, and the part of it that a collective may write."""
        whole = torch.full((count + 2 * GUARD,), GUARD_VALUE, dtype=dtype, device=self.device)
        return whole, whole[GUARD:GUARD + count]

    def check(self, whole, want, what):
        count = want.numel()
        got = whole[GUARD:GUARD + count]
        if not torch.equal(got, want):
            bad = (got != want).nonzero().flatten()
            at = int(bad[0])
            raise Wrong("%s: %d of %d elements wrong, first [%d] = %s, not %s" %
                        (what, bad.numel(), count, at, got[at].item(), want[at].item()))
        if not bool((whole[:GUARD] == GUARD_VALUE).all() and
                    (whole[GUARD + count:] == GUARD_VALUE).all()):
            raise Wrong("%s: wrote outside the result" % what)


REDUCTIONS = {
    "sum": ("SUM", lambda parts: sum(parts[1:], parts[0])),
    "prod": ("PRODUCT", lambda parts: parts[0] * parts[1]),
    "min": ("MIN", lambda parts: torch.minimum(parts[0], parts[1])),
    "max": ("MAX", lambda parts: torch.maximum(parts[0], parts[1])),
}


def all_reduce(reduction):
    name, combine = REDUCTIONS[reduction]

    def run(world, count, dtype):
        whole, mine = world.guarded(count, dtype)
        mine.copy_(world.values(world.rank, count, dtype))
        dist.all_reduce(mine, op=getattr(dist.ReduceOp, name))
        parts = [world.values(rank, count, dtype) for rank in range(world.size)]
        world.check(whole, combine(parts), "n=%d" % count)
    return run


def reduce(world, count, dtype):
    for root in range(world.size):
        whole, mine = world.guarded(count, dtype)
        mine.copy_(world.values(world.rank, count, dtype, root))
        dist.reduce(mine, dst=root)
        if world.rank == root:
            parts = [world.values(rank, count, dtype, root) for rank in range(world.size)]
            world.check(whole, sum(parts[1:], parts[0]), "n=%d root=%d" % (count, root))


def broadcast(world, count, dtype):
    for root in range(world.size):
        whole, mine = world.guarded(count, dtype)
        mine.copy_(world.values(world.rank, count, dtype, root))
        dist.broadcast(mine, src=root)
        world.check(whole, world.values(root, count, dtype, root), "n=%d root=%d" % (count, root))


def all_gather(world, count, dtype):
    whole, out = world.guarded(count * world.size, dtype)
    mine = world.values(world.rank, count, dtype)
    if world.backend == "nccl":
        dist.all_gather_into_tensor(out, mine)
    else:
        dist.all_gather(list(out.chunk(world.size)), mine)
    want = torch.cat([world.values(rank, count, dtype) for rank in range(world.size)])
    world.check(whole, want, "n=%d" % count)


def reduce_scatter(world, count, dtype):
    whole, out = world.guarded(count, dtype)
    dist.reduce_scatter_tensor(out, world.values(world.rank, count * world.size, dtype))
    parts = [world.values(rank, count * world.size, dtype) for rank in range(world.size)]
    want = sum(parts[1:], parts[0])[world.rank * count:(world.rank + 1) * count]
    world.check(whole, want, "n=%d" % count)


def all_to_all(world, count, dtype):
    whole, out = world.guarded(count * world.size, dtype)
    dist.all_to_all_single(out, world.values(world.rank, count * world.size, dtype))
    part = slice(world.rank * count, (world.rank + 1) * count)
    want = torch.cat([world.values(rank, count * world.size, dtype)[part]
                      for rank in range(world.size)])
    world.check(whole, want, "n=%d" % count)


def send_recv(world, count, dtype):
    """Both directions, one after the other: in each only one rank sends."""
    for sender in range(2):
        if world.rank == sender:
            dist.send(world.values(sender, count, dtype, 1), dst=1 - sender)
        else:
            whole, out = world.guarded(count, dtype)
            dist.recv(out, src=sender)
            world.check(whole, world.values(sender, count, dtype, 1), "n=%d" % count)


def exchange(world, count, dtype):
    """Both directions at once, in one group."""
    peer = 1 - world.rank
    whole, out = world.guarded(count, dtype)
    mine = world.values(world.rank, count, dtype, 2)
    requests = dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, peer),
                                       dist.P2POp(dist.irecv, out, peer)])
    for request in requests:
        request.wait()
    world.check(whole, world.values(peer, count, dtype, 2), "n=%d" % count)


# name -> (function, types; None: all)
CASES = {
    "all_reduce sum": (all_reduce("sum"), None),
    "all_reduce prod": (all_reduce("prod"), ("float32", "float16", "int32", "uint8")),
    "all_reduce min": (all_reduce("min"), ("float32", "bfloat16", "int64", "int8")),
    "all_reduce max": (all_reduce("max"), ("float64", "float16", "int32", "uint8")),
    "reduce": (reduce, ("float32", "bfloat16", "int32")),
    "broadcast": (broadcast, None),
    "all_gather": (all_gather, None),
    "reduce_scatter": (reduce_scatter, None),
    "all_to_all": (all_to_all, ("float32", "float16", "int64", "uint8")),
    "send_recv": (send_recv, ("float32", "bfloat16", "int8")),
    "exchange": (exchange, ("float32", "float64", "uint8")),
}

# gloo serves only to try these tests without a GPU.
NOT_IN_GLOO = {"reduce_scatter"}
NOT_IN_GLOO_TYPES = {"bfloat16"}


def chosen(backend):
    """(name of the test, function, dtype; None: this backend cannot do it)."""
    for name, (function, types) in CASES.items():
        for type_name in types or TYPES:
            lacks = backend == "gloo" and (name in NOT_IN_GLOO or type_name in NOT_IN_GLOO_TYPES)
            yield "%s %s" % (name, type_name), function, None if lacks else TYPES[type_name]
