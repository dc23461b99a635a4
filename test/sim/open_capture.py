#!/usr/bin/env python3
"""Opens the datagrams that pullman-sim --pcapng wrote, as docs/wire.md says: another implementation of its section 12.

    open_capture.py FILE KEY...

The keys are those that --keys printed. Every datagram has to open. Says how many did, and what HELLO told of each end.
"""

import hashlib
import hmac
import struct
import subprocess
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

CONTROL, HELLO, WELCOME, BULK, CHECK = 2, 3, 4, 5, 6
AUTHENTICATED, ENCRYPTED = 0x40, 0x80
PHASE_BITS = 22


def extract(key):
    return hmac.new(b"pullman 1", key, hashlib.sha256).digest()


def expand(secret, info):
    """The first 32 bytes, which are one hash."""
    return hmac.new(secret, info + b"\x01", hashlib.sha256).digest()


SEALED = {}  # what was sealed with each key and nonce: one packet, though it may come twice


def open_packet(key, control, number, packet, tag):
    """The packet with its body in clear, or None (12.2, 12.4)."""
    nonce = struct.pack(">IQ", control, number)
    clear = len(packet) if packet[1] & AUTHENTICATED else 28 if packet[0] & 15 == BULK else 32
    try:
        opened = packet[:clear] + AESGCM(key).decrypt(nonce, packet[clear:] + tag, packet[:clear])
    except InvalidTag:
        return None
    if SEALED.setdefault((key, nonce), packet) != packet:
        sys.exit(f"two packets were sealed with one key and one nonce, {nonce.hex()}")
    return opened


def nearest(low, expected):
    """The 64-bit number with these low 32 bits that is nearest to the one expected (2.5)."""
    return expected + (low - expected + 2**31) % 2**32 - 2**31


class Capture:
    def __init__(self, keys):
        self.secrets = [extract(key) for key in keys]
        self.ends = {}  # by the connection id that packets to it carry: who told it, and the 24 bytes of 12.3
        self.expected = {}  # the next number of each series

    def open(self, host, datagram):
        packet, tag = datagram[:-16], datagram[-16:]
        if packet[0] & 15 in (HELLO, WELCOME, CHECK):
            return self.open_initial(host, packet, tag)
        number = struct.unpack(">I", packet[12:16])[0]
        rail, control = packet[1] >> 2 & 7, packet[0] & 15 == CONTROL
        _, to = self.ends[packet[4:12]]
        # The sender may have other connections to the same peer.
        for told_by, end in self.ends.values():
            if told_by != host:
                continue
            series = (end, to, rail, control)
            first = struct.unpack(">Q", end[16:])[0]
            before = first if control else 0  # control packets are counted from 0
            whole = nearest(number, self.expected.get(series, first - before))
            info = (b"pullman 1 packet" + bytes([packet[1] & 0xC0]) + end + to + bytes([rail])
                    + struct.pack(">Q", before + whole >> PHASE_BITS))
            for secret in self.secrets:
                if opened := open_packet(expand(secret, info), control, before + whole, packet, tag):
                    self.expected[series] = whole + 1
                    return opened
        return None

    def open_initial(self, host, packet, tag):
        packet, salt, count = packet[:-24], packet[-24:-8], struct.unpack(">Q", packet[-8:])[0]
        info = b"pullman 1 hello " + bytes([packet[1] & 0xC0]) + salt
        tried = (open_packet(expand(secret, info), 0, count, packet, tag) for secret in self.secrets)
        opened = next(filter(None, tried), None)
        if opened and packet[0] & 15 != CHECK:
            end = opened[36:60]  # epoch, connection id, first packet number (5.1)
            self.ends[end[8:16]] = host, end
        return opened


def datagrams_of(path):
    """The host and the bytes of each datagram of a file."""
    done = subprocess.run(["tshark", "-r", path, "-T", "fields", "-e", "frame.interface_name", "-e", "udp.payload", "-e",
                           "data.data"], capture_output=True, text=True, timeout=120, check=True)
    for line in done.stdout.splitlines():
        name, payload, data = line.split("\t")
        yield name.split()[1].split(".")[0], bytes.fromhex(payload or data)


def main(path, keys):
    capture = Capture([bytes.fromhex(key) for key in keys])
    opened = failed = 0
    for host, datagram in datagrams_of(path):
        packet = capture.open(host, datagram)
        good = packet is not None and len(packet) == struct.unpack(">H", packet[2:4])[0]
        opened, failed = opened + good, failed + (not good)
    for host, end in capture.ends.values():
        print(f"host {host}: epoch {end[:8].hex()}, connection {end[8:16].hex()}, first number {end[16:].hex()}")
    print(f"{opened} packets opened, {failed} not")
    return 0 if opened and not failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
