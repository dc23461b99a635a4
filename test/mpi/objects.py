"""Python's objects and buffers between ranks, with mpi4py; what is received is known, and its digest is said."""

import array
import hashlib
import sys

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
RIGHT, LEFT = (RANK + 1) % RANKS, (RANK - 1) % RANKS
SEEN = hashlib.sha256()


def expect(got, wanted):
    if got != wanted:
        print(f"rank {RANK}: {got!r:.200} instead of {wanted!r:.200}", file=sys.stderr, flush=True)
        WORLD.Abort(1)
    SEEN.update(repr(got).encode())


def thing(of, turn):
    return {"from": of, "turn": turn, "text": "pullman" * (turn * turn), "numbers": [of / 3, turn, None, (of, turn)]}


def objects_in_a_ring():
    for turn in range(60):
        expect(WORLD.sendrecv(thing(RANK, turn), dest=RIGHT, sendtag=turn, source=LEFT, recvtag=turn), thing(LEFT, turn))


def objects_that_are_not_waited_for():
    sent = [WORLD.isend(thing(RANK, turn), RIGHT, tag=turn) for turn in range(20)]
    came = [WORLD.irecv(1 << 20, LEFT, tag=turn) for turn in reversed(range(20))]
    for turn, request in zip(reversed(range(20)), came):
        expect(request.wait(), thing(LEFT, turn))
    MPI.Request.waitall(sent)


def collectives_of_objects():
    expect(WORLD.bcast(thing(0, 9) if RANK == 0 else None), thing(0, 9))
    expect(WORLD.allgather(thing(RANK, 3)), [thing(of, 3) for of in range(RANKS)])
    expect(WORLD.alltoall([(RANK, to) for to in range(RANKS)]), [(of, RANK) for of in range(RANKS)])
    expect(WORLD.scatter([[to] * 1000 for to in range(RANKS)] if RANK == 0 else None), [RANK] * 1000)
    gathered = WORLD.gather(RANK ** 3, root=RANKS - 1)
    expect(gathered, [of ** 3 for of in range(RANKS)] if RANK == RANKS - 1 else None)
    expect(WORLD.allreduce([RANK], op=MPI.SUM), list(range(RANKS)))


def buffers():
    for count in (1, 1000, 300000):
        out, came = array.array("d", [RANK + i / 7 for i in range(count)]), array.array("d", bytes(8 * count))
        WORLD.Sendrecv([out, MPI.DOUBLE], RIGHT, 1, [came, MPI.DOUBLE], LEFT, 1)
        expect(came, array.array("d", [LEFT + i / 7 for i in range(count)]))
        WORLD.Allreduce([out, MPI.DOUBLE], [came, MPI.DOUBLE], op=MPI.MAX)
        expect(came, array.array("d", [RANKS - 1 + i / 7 for i in range(count)]))


def pi_by_strips():
    strips = 200000
    mine = sum(4 / (1 + ((i + 0.5) / strips) ** 2) for i in range(RANK, strips, RANKS)) / strips
    pi = WORLD.allreduce(mine)
    expect(abs(pi - 3.141592653589793) < 1e-9, True)


def main():
    objects_in_a_ring()
    objects_that_are_not_waited_for()
    collectives_of_objects()
    buffers()
    pi_by_strips()
    digests = WORLD.gather(SEEN.hexdigest()[:8])
    if RANK == 0:
        print(f"mpi4py: right on {RANKS} ranks, digest {'-'.join(digests)}")


main()
