"""Shows Pullman at work: demo.py BUILD_DIRECTORY

Two processes exchange messages of every size from 1 B to 4 MiB, each byte verified; then a real file
is sent, and the SHA-256 of the copy compared. In two network namespaces where that is allowed.
"""

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import netns

PORT = 7100


def make_key(build, folder):
    """As a user does: nobody else can take part, or change what is sent."""
    key = pathlib.Path(folder) / "job.key"
    subprocess.run([build / "tools/pullman-key", key], check=True)
    os.environ["PULLMAN_KEY_FILE"] = str(key)
    print(f"\nBoth have a key that was made by 'pullman-key {key.name}': their packets are authenticated.")


def ping_pong(places, build):
    print("\nPing-pong, every byte of every message verified at both ends (half round trips):\n")
    perf = build / "bench/pullman-perf"
    server = places.start_server(0, perf, "--port", PORT, "--check")
    client = places.start(1, perf, "--port", PORT, "--check", "--size", "1..4M", "--duration", "0.4",
                          places.hosts[0])
    if client.wait(50) != 0 or server.wait(20) != 0:
        sys.exit(f"the ping-pong failed\n{netns.text_of(server)}")


def real_file():
    """The compiler proper: tens of megabytes, and on every machine that builds Pullman."""
    found = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True,
                           check=False).stdout.strip()
    return pathlib.Path(found if os.path.isfile(found) else sys.executable).resolve()


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def send_file(places, build, folder):
    source, copy = real_file(), pathlib.Path(folder) / "copy"
    program = build / "examples/send_file"
    environment = {**os.environ, **places.environment, "PULLMAN_PORT": str(PORT)}
    receiver = places.start_server(0, program, "receive", copy, env=environment)
    began = time.monotonic()
    sender = places.start(1, program, "send", source, f"{places.hosts[0]}:{PORT}",
                          stdout=subprocess.DEVNULL)
    if sender.wait(50) != 0 or receiver.wait(20) != 0:
        sys.exit(f"sending the file failed\n{netns.text_of(receiver)}")
    took = time.monotonic() - began

    size, sums = source.stat().st_size, (sha256(source), sha256(copy))
    print(f"\nA file, sent from one to the other:\n\n  {'file':<8} {source}")
    print(f"  {'size':<8} {size} bytes in {took:.2f} s, {size / took / 1e6:.0f} MB/s, hashing included")
    print(f"  {'sent':<8} SHA-256 {sums[0]}\n  {'arrived':<8} SHA-256 {sums[1]}")
    print(f"  {'verdict':<8} {'the same' if sums[0] == sums[1] else 'DIFFERENT'}\n")
    if sums[0] != sums[1]:
        sys.exit("the copy differs")


def main():
    netns.exit_on_signals()
    build = pathlib.Path(sys.argv[1]).resolve()
    why_not = netns.possible()
    if why_not:
        print(f"Two processes on the loopback (network namespaces: {why_not}).")
        places = netns.Loopback()
    else:
        print("Two processes in two network namespaces, joined by a virtual cable (veth, MTU 1500).")
        places = netns.Pair()
    sys.stdout.flush()
    with places, tempfile.TemporaryDirectory() as folder:
        make_key(build, folder)
        ping_pong(places, build)
        send_file(places, build, folder)
    print("Everything arrived.")


if __name__ == "__main__":
    main()
