"""What the library exports, held against debian/libpullman1.symbols: abi.py BUILD_DIRECTORY [--update]

Programs that are installed need every symbol in that list, so none may go within a soname; one that is added must be
there to stay, so it is put there on purpose: `--update`. Prints `N passed, N failed, N skipped`.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "debian/libpullman1.symbols"
LOST = """LOST: programs that are installed need them. Bring them back; or begin a new ABI: `abi` in lib/meson.build,
the node in lib/pullman.map, debian/libpullman1.*, and the package's name in debian/control."""
NEW = """NEW: if they are to stay, `python3 tools/abi.py BUILD_DIRECTORY --update`; if not, leave them out of
lib/pullman.map."""


def gensymbols(library, made, beyond=""):
    """The list as the library would have it goes to `made`; returns how that differs from ours."""
    # The first version with a symbol is the release's, without Debian's revision.
    version = re.search(r"\(([^)-]+)", (ROOT / "debian/changelog").read_text()).group(1)
    return subprocess.run(
        ["dpkg-gensymbols", "-t", "-c4", "-plibpullman1", f"-v{version}{beyond}", f"-e{library}", f"-I{LIST}",
         f"-O{made}"], cwd=ROOT, capture_output=True, text=True, check=False)


def compare(library, made):
    # Of what a version brought itself dpkg-gensymbols does not say that it is gone: only a later one can lose it.
    result = gensymbols(library, made, beyond="+")
    lost = re.findall(r"^\+ *#MISSING: \S+ (\S+)@", result.stdout, re.M)
    new = re.findall(r"^\+ (\S+)@", result.stdout, re.M)
    return result, lost, new


def tell(heading, symbols):
    names = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True).stdout
    print(heading)
    print("".join(f"  {name}\n" for name in names.splitlines()), end="")


def main():
    library = pathlib.Path(sys.argv[1]).resolve() / "lib/libpullman.so.1"
    with tempfile.NamedTemporaryFile(mode="r") as made:
        result, lost, new = compare(library, made.name)
        if lost:
            tell(LOST, lost)
        elif "--update" in sys.argv:
            gensymbols(library, made.name)
            LIST.write_text(made.read())
            result, lost, new = compare(library, made.name)
        if new:
            tell(NEW, new)
    failed = result.returncode != 0
    if failed and not lost and not new:
        print(result.stdout, result.stderr, sep="\n")
    print(f"{int(not failed)} passed, {int(failed)} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
