"""What `meson install` leaves, used as others do: installed.py BUILD_DIRECTORY

Installs into a folder of its own. Every file belongs to one Debian package; pkg-config, CMake and Meson find the
library there, name nothing that it is made of, and build debian/tests/consumer, which runs; libfabric finds the
provider. Prints `N passed, N failed, N skipped`.
"""

import fnmatch
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONSUMER = ROOT / "debian/tests/consumer"


class Wrong(Exception):
    """What was found; says it in a sentence."""


def run(*command, **environment):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=100,
                            env={**os.environ, **environment})
    if result.returncode != 0:
        raise Wrong(f"{' '.join(map(str, command))} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


class Installed:
    def __init__(self, build, place):
        run("meson", "install", "-C", build, "--no-rebuild", "--destdir", place)
        found = list(place.rglob("pullman.pc"))
        if len(found) != 1:
            raise Wrong(f"{len(found)} files pullman.pc were installed, not one")
        self.place = place
        self.libraries = found[0].parent.parent
        self.environment = {"PKG_CONFIG_PATH": str(found[0].parent), "PKG_CONFIG_SYSROOT_DIR": str(place),
                            "LD_LIBRARY_PATH": str(self.libraries)}

    def run(self, *command, **environment):
        return run(*command, **{**self.environment, **environment})


def each_file_has_a_package(installed, _):
    prefix = next(path for path in (installed.place / "usr/local", installed.place / "usr") if path.is_dir())
    lists = {file.stem: file.read_text().split() for file in (ROOT / "debian").glob("*.install")}
    for path in prefix.rglob("*"):
        if path.is_dir():
            continue
        name = f"usr/{path.relative_to(prefix)}"
        owners = [package for package, patterns in lists.items()
                  if any(fnmatch.fnmatch(name, end) for pattern in patterns for end in (pattern, f"{pattern}/*"))]
        if len(owners) != 1:
            raise Wrong(f"{name} belongs to {len(owners)} packages {owners}: see debian/*.install")


def pkg_config_names_nothing_else(installed, _):
    flags = installed.run("pkg-config", "--static", "--libs", "--cflags", "pullman").split()
    own = ("-lpullman", f"-L{installed.place}", f"-I{installed.place}")
    foreign = [flag for flag in flags if not flag.startswith(own)]
    if foreign:
        raise Wrong(f"pkg-config names {foreign}, which a program does not need")


def cmake_builds_a_consumer(installed, folder):
    installed.run("cmake", "-S", CONSUMER, "-B", folder, f"-Dpullman_DIR={installed.libraries}/cmake/pullman",
                  PKG_CONFIG_PATH="")
    installed.run("cmake", "--build", folder)
    installed.run(folder / "consumer")


def meson_builds_a_consumer(installed, folder):
    installed.run("meson", "setup", folder, CONSUMER)
    installed.run("ninja", "-C", folder)
    installed.run(folder / "consumer")


def libfabric_finds_the_provider(installed, _):
    said = installed.run("fi_info", "-p", "pullman", FI_PROVIDER_PATH=str(installed.libraries / "libfabric"),
                         PULLMAN_NICS="lo", LD_LIBRARY_PATH="")
    if "FI_EP_RDM" not in said:
        raise Wrong(f"fi_info shows no endpoint type FI_EP_RDM:\n{said}")


CHECKS = (each_file_has_a_package, pkg_config_names_nothing_else, cmake_builds_a_consumer, meson_builds_a_consumer,
          libfabric_finds_the_provider)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        try:
            installed = Installed(build, pathlib.Path(folder) / "root")
        except Wrong as wrong:
            print(f"{wrong}\n0 passed, {len(CHECKS)} failed, 0 skipped")
            return 1
        for check in CHECKS:
            try:
                check(installed, pathlib.Path(folder) / check.__name__)
            except Wrong as wrong:
                failed += 1
                print(f"failed: {check.__name__.replace('_', ' ')}: {wrong}")
    print(f"{len(CHECKS) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
