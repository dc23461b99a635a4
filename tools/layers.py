"""The layer rule: a folder includes only folders below it.

    layers.py               checks the tree; says file:line of every violation
    layers.py --self-test   plants violations in a tree of its own and sees whether they are found
"""

import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Bottom to top. Folders of one line do not include each other. A folder within one that is named
# here, too, is a layer of its own; others belong to the folder they are in.
LAYERS = [
    ["base"],
    ["crypto", "shm"],
    ["wire"],
    ["telemetry"],
    ["nic"],
    ["channel"],
    ["reliability", "message"],
    ["message/match"],
    ["message/tx", "message/rx"],
    ["message/rma"],
    ["failover"],
    ["engine/local"],
    ["engine/peer"],
    ["engine/nics", "engine/security"],
    ["engine/send"],
    ["engine/session"],
    ["engine/rails"],
    ["engine/frames"],
    ["engine/handshake"],
    ["engine", "launch"],
    ["relay"],
    ["context"],
    ["world"],
    ["ofi"],
]
RANK = {folder: rank for rank, folders in enumerate(LAYERS) for folder in folders}

# Folders that do not know each other, with all that is in them.
STRANGERS = [["nic/udp", "nic/tcp", "nic/fabric", "nic/relay"], ["reliability", "message"], ["message/tx", "message/match"]]

# The public headers every layer speaks in, and those that only the top may see.
VOCABULARY = {
    "status.h", "types.h", "request.h", "multi_request.h", "multi_receive.h", "config.h", "stats.h", "rails.h", "operations.h"}
SEES_ALL_PUBLIC = {"context", "world", "ofi"}

# Programs that are users: public headers only.
USERS = ["examples", "bench/perf", "test/kernel"]

# Headers of the system that belong to some layers.
SYSTEM = {"rdma/": {"nic", "ofi"}, "sys/socket.h": {"telemetry", "nic", "launch", "ofi"}, "hwloc": {"nic"},
          "openssl/": {"base", "crypto"}, "intel-ipsec-mb.h": {"crypto"}, "pmix": {"launch"}}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, found.group(1) == "<", found.group(2)


def sources(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in (".h", ".cc")) if folder.is_dir() else []


def folder_of(parts):
    """Of a path from lib/ down: its layer, or the folder that should be one."""
    two = "/".join(parts[:2])
    return two if two in RANK else parts[0]


def are_strangers(path, name):
    def within(folders, of):
        return next((f for f in folders if of.startswith(f + "/")), None)

    for folders in STRANGERS:
        mine, its = within(folders, path.as_posix()), within(folders, name)
        if mine and its and mine != its:
            return True
    return False


def wrong_in_library(path, layer, system, name):
    """Why a file of a layer may not include this, or an empty string."""
    if system:
        for prefix, layers in SYSTEM.items():
            if name.startswith(prefix) and layer not in layers:
                return f"<{name}> belongs to {', '.join(sorted(layers))}"
        return ""
    if ".." in name:
        return "includes are written from lib/ or include/ down"
    first = folder_of(pathlib.PurePath(name).parts)
    if first == "pullman":
        rest = name.partition("/")[2]
        if rest in VOCABULARY or layer in SEES_ALL_PUBLIC:
            return ""
        return f"{name} is not for {layer}: only {', '.join(sorted(VOCABULARY))} are for all"
    if first not in RANK:
        return f"{first} is no layer (see tools/layers.py)"
    if first == layer or RANK[first] < RANK[layer]:
        return f"{name} is a neighbour's" if are_strangers(path, name) else ""
    return f"{layer} is not above {first}"


def wrong_in_user(path, system, name):
    if system or name.startswith("pullman/") or (path.parent / name).exists():
        return ""
    return "users of the library include public headers only"


def violations(root):
    found = []

    def look(path, judge):
        for number, system, name in includes(path):
            why = judge(system, name)
            if why:
                found.append(f"{path.relative_to(root)}:{number}: {name}: {why}")

    for path in sources(root / "lib"):
        inside = path.relative_to(root / "lib")
        layer = folder_of(inside.parts)
        if layer not in RANK:
            found.append(f"{path.relative_to(root)}:1: {layer} is no layer (see tools/layers.py)")
            continue
        look(path, lambda system, name: wrong_in_library(inside, layer, system, name))
    users = [path for folder in USERS for path in sources(root / folder)]
    for path in users + sources(root / "include"):
        look(path, lambda system, name: wrong_in_user(path, system, name))
    return found


PLANTED = {
    "lib/wire/a.h": '#include "engine/engine.h"',
    "lib/message/b.cc": '#include "base/time.h"\n#include "reliability/link.h"',
    "lib/reliability/c.cc": '#include "message/rx/inbox.h"',
    "lib/message/tx/n.cc": '#include "message/rx/inbox.h"',
    "lib/message/tx/o.cc": '#include "message/match/matcher.h"',
    "lib/message/tx/p.cc": '#include "reliability/link.h"',
    "lib/message/rx/q.h": '#include "message/rma/one_sided.h"',
    "lib/channel/d.h": '#include "pullman/context.h"',
    "lib/engine/e.cc": "#include <rdma/fabric.h>",
    "lib/nowhere/f.cc": "",
    "lib/nic/g.cc": '#include "../wire/a.h"',
    "lib/nic/udp/j.cc": '#include "nic/tcp/socket.h"',
    "lib/engine/k.h": '#include "pullman/context.h"',
    "lib/engine/session/l.cc": '#include "engine/rails/rail_manager.h"',
    "lib/engine/peer/m.cc": '#include "engine/engine.h"',
    "examples/h.cc": '#include "wire/a.h"',
    "include/pullman/i.h": '#include "base/time.h"',
}
HARMLESS = {
    "lib/base/time.h": "#include <chrono>",
    "lib/message/good.cc": '#include "message/own.h"\n#include "wire/a.h"\n#include "pullman/types.h"',
    "lib/message/rx/good.cc": '#include "message/match/matcher.h"\n#include "message/allowance.h"',
    "lib/message/rma/good.cc": '#include "message/tx/outbox.h"\n#include "message/rx/remote.h"',
    "lib/engine/good.cc": '#include "message/own.h"\n#include "engine/rails/rail_manager.h"',
    "lib/engine/rails/good.cc": '#include "engine/session/path_check.h"',
    "lib/nic/udp/good.cc": '#include "nic/udp/socket.h"\n#include "nic/port.h"',
    "lib/nic/good.cc": "#include <rdma/fabric.h>",
    "examples/good.cc": '#include "pullman/pullman.h"',
}


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**PLANTED, **HARMLESS}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = {line.split(":")[0] for line in violations(root)}
    missed, invented = set(PLANTED) - found, found - set(PLANTED)
    for name in sorted(missed):
        print(f"planted in {name}, and not found")
    for name in sorted(invented):
        print(f"found in {name}, where there is none")
    failed = len(missed) + len(invented)
    print(f"{len(PLANTED) + len(HARMLESS) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


def main():
    if "--self-test" in sys.argv:
        return self_test()
    found = violations(ROOT)
    for line in found:
        print(line)
    print(f"{0 if found else 1} passed, {len(found)} failed, 0 skipped")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
