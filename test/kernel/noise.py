"""Throws random datagrams at a host's UDP ports: noise.py HOST SECONDS PORT...

Half are pure noise; half begin as a Pullman packet does, with their true length, so that they get
further before they are refused.
"""

import random
import socket
import sys
import time


def packet(dice):
    length = dice.choice((0, 1, 7, 31, 32, 33, 64, 200, 1000, 1472))
    body = bytearray(dice.randbytes(length))
    if length >= 32 and dice.random() < 0.5:  # docs/wire.md 2.1
        body[0] = 0x10 | dice.randrange(6)  # version and type
        body[1] = dice.choice((0, 1))  # flags
        body[2:4] = length.to_bytes(2, "big")
        body[4:8] = dice.randrange(4).to_bytes(4, "big")  # connection index
        body[26:28] = bytes(2)
    return bytes(body)


def main():
    host, seconds, ports = sys.argv[1], float(sys.argv[2]), [int(port) for port in sys.argv[3:]]
    dice = random.Random(1)
    end = time.monotonic() + seconds
    sent = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as noise:
        while time.monotonic() < end:
            for port in ports:
                try:
                    noise.sendto(packet(dice), (host, port))
                    sent += 1
                except OSError:
                    pass  # the port is closed by now
    print(sent)


main()
