"""The file map of docs/architecture.md: every source folder is in it, every file it names exists."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAP = ROOT / "docs/architecture.md"
TOPS = ["include", "lib", "test", "bench", "examples", "tools"]
SUFFIXES = {".h", ".cc", ".py", ".pml"}
# What the document may leave off in front of a name.
PREFIXES = ["", "lib", "include", "include/pullman", "docs", "test"]

NAMED = re.compile(r"(?<![\w/.*-])((?:[\w-]+/)*[\w-]+\.(?:h|cc|py|pml|md|build))(?![\w/*])")


def source_folders():
    folders = set()
    for top in TOPS:
        for path in (ROOT / top).rglob("*"):
            if path.suffix in SUFFIXES and "__pycache__" not in path.parts:
                folders.add(path.parent.relative_to(ROOT).as_posix())
    return sorted(folders)


def all_names():
    names = set()
    for top in TOPS + ["docs"]:
        names |= {path.name for path in (ROOT / top).rglob("*") if path.is_file()}
    return names | {path.name for path in ROOT.iterdir() if path.is_file()}


def exists(name, names):
    if "/" not in name:
        return name in names
    return any((ROOT / prefix / name).exists() for prefix in PREFIXES)


def mentioned(folder, text):
    return re.search(rf"(?<![\w/]){re.escape(folder)}(?![\w])", text) is not None


def main():
    if not MAP.exists():
        print("docs/architecture.md is missing\n0 passed, 1 failed, 0 skipped")
        return 1
    text = MAP.read_text()
    names = all_names()
    folders = source_folders()
    files = sorted(set(NAMED.findall(text)))
    wrong = [f"docs/architecture.md says nothing of {f}/" for f in folders if not mentioned(f, text)]
    wrong += [f"docs/architecture.md names {f}, which does not exist" for f in files
              if not exists(f, names)]
    for line in wrong:
        print(line)
    print(f"{len(folders) + len(files) - len(wrong)} passed, {len(wrong)} failed, 0 skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
