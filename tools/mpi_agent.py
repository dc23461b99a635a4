#!/usr/bin/env python3
"""Starts a command on a "host" that is a network namespace, as Open MPI's plm_rsh_agent.

    mpi_agent.py HOST COMMAND...

MPI_AGENT_HOSTS says which is which: "10.77.100.1=NAMESPACE,10.77.100.2=NAMESPACE". Each gets a name of
its own, so that Open MPI takes them for different machines.
"""

import os
import shlex
import sys


def host_name(address):
    return "host-" + address.replace(".", "-")


def in_a_host(namespace, address, command):
    """What runs a shell's command there, under that host's name."""
    return ["ip", "netns", "exec", namespace, "unshare", "--uts", "sh", "-c",
            f"hostname {shlex.quote(host_name(address))} && {command}"]


def main():
    hosts = dict(pair.split("=") for pair in os.environ["MPI_AGENT_HOSTS"].split(","))
    while sys.argv[1].startswith("-"):
        del sys.argv[1]
    address, command = sys.argv[1], " ".join(sys.argv[2:])
    os.execvp("ip", in_a_host(hosts[address], address, command))


if __name__ == "__main__":
    main()
