"""The Debian packages: package.py FOLDER [--test]

Builds source and binary packages of the tree as it lies here, in a clean Debian that has what debian/control asks for
and nothing else, and leaves them in FOLDER. With --test lintian looks at them, and debian/tests runs on them in another
clean Debian, where they are installed; the last line is `N passed, N failed, N skipped`. mmdebstrap makes both, from
the sources that apt has here.
"""

import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = [path for path in ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list") if os.path.exists(path)]


def run(*command, **options):
    print("+", shlex.join(map(str, command)), flush=True)
    return subprocess.run(list(map(str, command)), check=False, **options).returncode


def suite():
    release = pathlib.Path("/etc/os-release").read_text()
    return re.search(r"^VERSION_CODENAME=(\w+)", release, re.M).group(1)


def apt_options():
    """How apt reaches its sources here: proxies, and whether their dates count."""
    dump = subprocess.run(["apt-config", "dump", "Acquire::http", "Acquire::https", "Acquire::Check-Valid-Until",
                           "Acquire::Check-Date"], capture_output=True, text=True, check=True).stdout
    return [f"--aptopt={line.rstrip(';')}" for line in dump.splitlines() if not line.endswith('"";')]


def clean_debian(variant, *hooks):
    """Makes one, in which the hooks are run, and throws it away."""
    return run("mmdebstrap", f"--variant={variant}", "--format=null", *apt_options(), *hooks, suite(), "/dev/null", *SOURCES)


def in_it(script):
    return f"--chrooted-customize-hook={script}"


def tree(file):
    """What git knows or would know, with changes that are not committed."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                           capture_output=True, check=True).stdout
    there = b"\0".join(name for name in names.split(b"\0") if name and os.path.lexists(ROOT / os.fsdecode(name)))
    subprocess.run(["tar", "--create", f"--file={file}", "--null", "--files-from=-", "--transform=s,^,pullman/,S"],
                   cwd=ROOT, input=there, check=True)


def build(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*_*"):
        old.unlink()
    processors = re.search(r"parallel=\d+", os.environ.get("DEB_BUILD_OPTIONS", ""))
    options = f"noautodbgsym {processors.group(0) if processors else f'parallel={os.cpu_count()}'}"
    with tempfile.TemporaryDirectory() as scratch:
        tree(f"{scratch}/tree.tar")
        return clean_debian(
            "buildd", "--customize-hook=mkdir $1/pullman-build",
            f"--customize-hook=tar-in {scratch}/tree.tar /pullman-build",
            in_it("cd /pullman-build/pullman && apt-get build-dep -qqy ./ && "
                  f"DEB_BUILD_OPTIONS='{options}' dpkg-buildpackage -us -uc && "
                  "mkdir ../made && find .. -maxdepth 1 -type f -exec mv {} ../made \\;"),
            f"--customize-hook=copy-out /pullman-build/made {scratch}",
            f"--customize-hook=cp {scratch}/made/* {shlex.quote(str(folder))}") == 0


def look(folder):
    """What Debian asks of a package, but for what this one has not: a release, and people with an address."""
    unasked = "unreleased-changes,bogus-mail-host,bogus-mail-host-in-debian-changelog"
    return run("lintian", "--allow-root", "--fail-on=error,warning", f"--suppress-tags={unasked}",
               *folder.glob("*.changes")) == 0


def try_it(folder):
    changes, = folder.glob("*.changes")
    return clean_debian("apt", f"--customize-hook=autopkgtest {shlex.quote(str(changes))} -- chroot $1") == 0


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--test", action="store_true", help="lintian, and debian/tests in a clean Debian")
    options = arguments.parse_args()
    folder = options.folder.resolve()
    if not build(folder):
        print("0 passed, 1 failed, 0 skipped")
        return 1
    results = {"build": True}
    if options.test:
        results |= {"lintian": look(folder), "debian/tests": try_it(folder)}
    for name, passed in results.items():
        if not passed:
            print(f"failed: {name}")
    print(f"{sum(results.values())} passed, {len(results) - sum(results.values())} failed, 0 skipped")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
