"""README's and the tutorials' code, compiled as it stands against the installed library: readme.py BUILD_DIRECTORY

Installs into a folder of its own, asks pkg-config, compiles every C++ block that has a main().
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import installed

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(command, **options):
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if result.returncode != 0:
        print(" ".join(map(str, command)), result.stdout, result.stderr, sep="\n")
    return result


def programs():
    documents = [ROOT / "README.md", *sorted((ROOT / "docs/tutorials").glob("*.md"))]
    return [block for document in documents if document.exists()
            for block in re.findall(r"```(?:cpp|c\+\+)\n(.*?)```", document.read_text(), re.S) if "int main" in block]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    blocks = programs()
    if not blocks:
        print("neither README.md nor docs/tutorials have a C++ program")
    good = 0
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        here = installed.Installed(build, place / "root")
        flags = here.run("pkg-config", "--cflags", "--libs", "pullman").split()
        for number, block in enumerate(blocks):
            source = place / f"readme{number}.cc"
            source.write_text(block)
            command = ["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", source, "-o",
                       place / f"readme{number}", *flags]
            good += run(command).returncode == 0
    failed = max(1, len(blocks)) - good
    print(f"{good} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
