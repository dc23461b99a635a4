"""The documents as a site, and the API reference: documents.py FOLDER

mkdocs builds the site into FOLDER/site and takes a warning for an error (a document that is named must exist);
linkchecker follows every link and anchor of the pages; doxygen builds FOLDER/reference from the public headers, where
what has no comment is an error. Prints `N passed, N failed, N skipped`.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def build_site(folder):
    return run("mkdocs", "build", "--strict", "--site-dir", folder / "site")


def check_links(folder):
    # linkchecker gives up root, and may not be allowed into the folder we are in.
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        shutil.copytree(folder / "site", f"{place}/site")
        shutil.copy(ROOT / "tools/linkchecker.ini", place)
        return run("linkchecker", "--no-status", "--config", f"{place}/linkchecker.ini", f"{place}/site/index.html")


def build_reference(folder):
    return run("doxygen", "-", text=f"{(ROOT / 'Doxyfile').read_text()}\nOUTPUT_DIRECTORY = {folder}\n")


def run(*command, text=None):
    """Nothing, or what it says of what is wrong."""
    result = subprocess.run(list(map(str, command)), cwd=ROOT, input=text, capture_output=True, text=True, check=False)
    return "" if result.returncode == 0 else f"{result.stdout}{result.stderr}"


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    steps = (build_site, check_links, build_reference)
    for step in steps:
        if wrong := step(folder):
            failed += 1
            print(f"failed: {step.__name__.replace('_', ' ')}\n{wrong}")
    print(f"{len(steps) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
