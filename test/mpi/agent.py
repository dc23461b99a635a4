"""Starts a command on a "host" that is a network namespace, as Open MPI's plm_rsh_agent.

    agent.py HOST COMMAND...

PULLMAN_TEST_HOSTS says which is which: "10.77.0.1=NAMESPACE,10.77.0.2=NAMESPACE". Each gets a name of its
own, so that Open MPI takes them for different machines.
"""

import os
import shlex
import sys


def main():
    hosts = dict(pair.split("=") for pair in os.environ["PULLMAN_TEST_HOSTS"].split(","))
    words = [word for word in sys.argv[1:] if not word.startswith("-")] if sys.argv[1].startswith("-") else sys.argv[1:]
    host, command = words[0], " ".join(words[1:])
    name = "host-" + host.replace(".", "-")
    os.execvp("ip", ["ip", "netns", "exec", hosts[host], "unshare", "--uts", "sh", "-c",
                     f"hostname {shlex.quote(name)} && {command}"])


if __name__ == "__main__":
    main()
