"""What a container makes of a host, for programs started in a place: IPC and /dev/shm of their own, and a filter of
system calls. As a program: installs the filter and becomes the command that is given.

    container.py COMMAND...
"""

import ctypes
import os
import struct
import subprocess
import sys

PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
# struct seccomp_data begins with the number of the call. LOAD_WORD, JUMP_IF_EQUAL and RETURN are BPF's (linux/filter.h).
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL_WITH_EPERM = 0x7FFF0000, 0x00050000 | 1
PROCESS_VM_READV = {"x86_64": 310, "aarch64": 270}


def forbid_reading_of_other_processes():
    number = PROCESS_VM_READV[os.uname().machine]
    steps = [(LOAD_WORD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, number), (RETURN, 0, 0, FAIL_WITH_EPERM), (RETURN, 0, 0, ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) != 0:
        sys.exit(f"cannot forbid a system call: {os.strerror(ctypes.get_errno())}")


class Container:
    """While it lasts, what is started in the place is started in it."""

    def __init__(self, place):
        self.place = place

    def __enter__(self):
        make = "mount -t tmpfs -o size=1m none /dev/shm && echo made && exec sleep infinity"
        self.holder = subprocess.Popen(["unshare", "-m", "-i", "sh", "-c", make], stdout=subprocess.PIPE)
        if self.holder.stdout.readline() != b"made\n":
            raise OSError("no container can be made here: it takes root")
        enter = ["nsenter", "-t", str(self.holder.pid), "-m", "-i", sys.executable, __file__]
        self.plain = self.place.command
        self.place.command = lambda side, *command: [*enter, *self.plain(side, *command)]
        return self

    def __exit__(self, *_):
        self.place.command = self.plain
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()


if __name__ == "__main__":
    forbid_reading_of_other_processes()
    os.execvp(sys.argv[1], sys.argv[1:])
