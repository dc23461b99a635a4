"""The documents as a site, and the API reference: documents.py FOLDER

mkdocs builds the site into FOLDER/site and takes a warning for an error (a document that is named must exist);
linkchecker follows every link and anchor of the pages; doxygen builds FOLDER/reference from the public headers, where
what has no comment is an error. Prints `N passed, N failed, N skipped`.
"""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def build_site(folder):
    return ["mkdocs", "build", "--strict", "--quiet", "--site-dir", folder / "site"], None


def check_links(folder):
    # The themes have links to what a server would do for them: a search.
    return ["linkchecker", "--no-status", "--no-warnings", "--config", ROOT / "tools/linkchecker.ini",
            folder / "site/index.html"], None


def build_reference(folder):
    return ["doxygen", "-"], f"{(ROOT / 'Doxyfile').read_text()}\nOUTPUT_DIRECTORY = {folder}\n"


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    # linkchecker gives up root, and must still be able to read.
    folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    failed = 0
    steps = (build_site, check_links, build_reference)
    for step in steps:
        command, text = step(folder)
        result = subprocess.run(list(map(str, command)), cwd=ROOT, input=text, capture_output=True, text=True,
                                check=False)
        if result.returncode != 0:
            failed += 1
            print(f"failed: {step.__name__.replace('_', ' ')}\n{result.stdout}{result.stderr}")
    print(f"{len(steps) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
