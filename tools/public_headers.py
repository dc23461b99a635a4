"""What users of the library see: public_headers.py BUILD_DIRECTORY

Each header of include/pullman compiles alone, with every compiler that is here, includes only public headers and those
of the standard library, and shows nothing internal; the library exports nothing internal either. Prints
`N passed, N failed, N skipped`.
"""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
# A header of the standard library has neither a folder nor an ending.
ALLOWED = re.compile(r'"pullman/\w+\.h"|<[a-z_]+>')
INTERNAL = re.compile(r"boost|detail|spdlog|\bfmt\b", re.I)
EXPORTED_INTERNAL = re.compile(r"boost|spdlog|\bfmt::|pullman::(?:\w+::State|Request::Operation|[a-z_]+::)")


def compile_alone(compiler, header):
    """The headers it brings along, and what the compiler says against it."""
    result = subprocess.run(
        [compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-H", "-I", INCLUDE, "-x", "c++", "-"],
        input=f'#include "pullman/{header.name}"\n', capture_output=True, text=True, check=False)
    lines = result.stderr.splitlines()
    brought = [line.split()[-1] for line in lines if re.match(r"\.+ ", line)]
    return brought, "" if result.returncode == 0 else result.stderr[-2000:]


def wrong_in(header, compilers):
    text = header.read_text()
    for number, line in enumerate(text.splitlines(), 1):
        included = re.match(r"\s*#\s*include\s*(\S+)", line)
        if included and not ALLOWED.fullmatch(included.group(1)):
            yield f"{header.name}:{number}: users do not have {included.group(1)}"
        elif INTERNAL.search(line):
            yield f"{header.name}:{number}: shows what is internal: {line.strip()}"
    for compiler in compilers:
        brought, refused = compile_alone(compiler, header)
        if refused:
            yield f"{header.name}: {compiler} does not compile it alone:\n{refused}"
        foreign = [path for path in brought if "/boost/" in path]
        if foreign:
            yield f"{header.name}: {compiler} reads {len(foreign)} headers of Boost, {foreign[0]} first"


def wrong_in_library(library):
    result = subprocess.run(["nm", "--dynamic", "--demangle", "--defined-only", library], capture_output=True, text=True,
                            check=False)
    if result.returncode != 0:
        return [f"{library} is not built"]
    names = [line.split(maxsplit=2)[-1] for line in result.stdout.splitlines()]
    return [f"exported: {name}" for name in names if EXPORTED_INTERNAL.search(name)]


def main():
    compilers = [name for name in ("g++", "clang++") if shutil.which(name)]
    checks = [list(wrong_in(header, compilers)) for header in sorted((INCLUDE / "pullman").glob("*.h"))]
    checks.append(wrong_in_library(ROOT / sys.argv[1] / "lib/libpullman.so"))
    for wrong in checks:
        for line in wrong[:10]:
            print(line)
    failed = sum(bool(wrong) for wrong in checks)
    print(f"{len(checks) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
