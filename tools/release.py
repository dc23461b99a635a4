#!/usr/bin/env python3
"""Makes a release of what is committed: release.py VERSION [--next VERSION]
    release.py --self-test   makes releases of a small tree, and sees what is refused

What a version means: docs/decisions/0039-what-a-version-means.md. Before it: `./dev test --long` of this commit.

The version goes into all places that name it, and the changes that CHANGELOG.md has as unreleased get the version and
the date. That is one commit, with an annotated tag whose text is those changes. A second commit begins the version
that is to come. The sources as tagged are left in build-release/, with their SHA-256. Nothing is pushed.
"""

import argparse
import datetime
import email.utils
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NUMBERS = re.compile(r"(\d+)\.(\d+)\.(\d+)")
UNRELEASED = "## Unreleased\n"
LIST = "debian/libpullman1.symbols"
HEADER = "lib/wire/header.h"


class Refused(Exception):
    """The release cannot be made: why, and what to do."""


def git(root, *arguments):
    result = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if result.returncode:
        raise Refused(f"git {' '.join(arguments)}: {result.stderr.strip()}")
    return result.stdout


def numbers(text):
    found = NUMBERS.fullmatch(text)
    if not found:
        raise Refused(f"'{text}' is no version: three numbers with points between, such as 0.2.1")
    return tuple(map(int, found.groups()))


def last_release(root):
    """The highest version that has a tag; nothing before the first."""
    tags = [tag[1:] for tag in git(root, "tag", "--list", "v*").split()]
    return max((tag for tag in tags if NUMBERS.fullmatch(tag)), key=numbers, default=None)


def wire_version(header):
    return re.search(r"kVersion = (\d+);", header).group(1)


def symbols(text):
    """The soname, and what is exported."""
    lines = text.splitlines()
    return lines[0].split()[0], {line.split()[0] for line in lines[1:]}


def least_step(root, last):
    """Which of the three numbers the changes since the last release ask for, and why."""
    def both(path):
        return git(root, "show", f"v{last}:{path}"), (root / path).read_text()
    (soname, exported), (soname_now, exported_now) = map(symbols, both(LIST))
    wire, wire_now = map(wire_version, both(HEADER))
    breaks = 0 if numbers(last)[0] else 1  # before 1.0 the second number says what breaks
    if wire != wire_now:
        return breaks, f"the wire's version was {wire} and is {wire_now}"
    if soname != soname_now:
        return breaks, f"the soname was {soname} and is {soname_now}"
    if exported - exported_now:
        return breaks, f"{len(exported - exported_now)} exported symbols are gone"
    if exported_now - exported:
        return 1, f"{len(exported_now - exported)} exported symbols are new"
    return 2, "nothing new is exported"


def check_step(root, version):
    last = last_release(root)
    if last is None:
        return
    was, now = numbers(last), numbers(version)
    if now <= was:
        raise Refused(f"{last} is released already: {version} must be higher")
    asked, why = least_step(root, last)
    step = next(i for i in range(3) if was[i] != now[i])
    if step > asked:
        lowest = ".".join(map(str, [*was[:asked], was[asked] + 1, *[0] * (2 - asked)]))
        raise Refused(f"{version} promises more than is kept: since {last} {why}, so it is {lowest} at least")


def replace(root, path, pattern, by):
    file = root / path
    text, count = re.subn(pattern, lambda _: by, file.read_text(), count=1, flags=re.M)
    if count != 1:
        raise Refused(f"{path} does not name its version where it is looked for ({pattern})")
    file.write_text(text)


def debian_entry(version, distribution, what, author, now):
    return f"pullman ({version}) {distribution}; urgency=medium\n\n  * {what}\n\n -- {author}  {now}\n"


def set_version(root, version):
    replace(root, "meson.build", r"^  version: '[^']*'", f"  version: '{version}'")
    replace(root, "lib/base/version.h", r'kLibraryVersion = "[^"]*"', f'kLibraryVersion = "{version}"')


def name_debian(root, version, distribution, what):
    """Puts the version at the top of debian/changelog: over an entry that is not released, else as a new one."""
    file = root / "debian/changelog"
    text = file.read_text()
    author = re.search(r"^ -- (.*?)  ", text, re.M).group(1)
    entry = debian_entry(version, distribution, what, author, email.utils.format_datetime(
        datetime.datetime.now(datetime.timezone.utc)))
    top, rest = re.match(r"(.*?^ -- [^\n]*\n)\n?(.*)", text, re.M | re.S).groups()
    older = rest if "UNRELEASED" in top.splitlines()[0] else text
    file.write_text(entry + ("\n" + older if older else ""))


def unreleased(root):
    """What CHANGELOG.md has under "Unreleased"."""
    text = (root / "CHANGELOG.md").read_text()
    if UNRELEASED not in text:
        raise Refused(f"CHANGELOG.md has no '{UNRELEASED.strip()}'")
    changes = re.split(r"^## ", text.split(UNRELEASED, 1)[1], maxsplit=1, flags=re.M)[0].strip()
    if not changes:
        raise Refused("CHANGELOG.md has no changes under 'Unreleased': a release says what is new")
    return changes


def check_tree(root, version):
    if git(root, "status", "--porcelain"):
        raise Refused("there are changes that are not committed: commit or stash them")
    if git(root, "tag", "--list", f"v{version}"):
        raise Refused(f"the tag v{version} is there already")


def archive(root, version):
    folder = root / "build-release"
    folder.mkdir(exist_ok=True)
    file = folder / f"pullman-{version}.tar.gz"
    git(root, "archive", f"--prefix=pullman-{version}/", f"--output={file}", f"v{version}")
    (folder / f"{file.name}.sha256").write_text(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n")
    return file


def release(root, version, following):
    numbers(version)
    check_tree(root, version)
    check_step(root, version)
    if numbers(following) <= numbers(version):
        raise Refused(f"the version to come, {following}, must be higher than {version}")
    changes = unreleased(root)
    today = datetime.date.today().isoformat()

    set_version(root, version)
    name_debian(root, version, "unstable", "See CHANGELOG.md.")
    replace(root, "CHANGELOG.md", f"^{UNRELEASED}", f"## {version} ({today})\n")
    git(root, "commit", "--all", "--message", f"release: {version}")
    git(root, "tag", "--annotate", "--cleanup=verbatim", f"v{version}", "--message", f"Pullman {version}\n\n{changes}\n")
    file = archive(root, version)

    set_version(root, following)
    name_debian(root, following, "UNRELEASED", "Not released.")
    replace(root, "CHANGELOG.md", rf"^## {re.escape(version)} ", f"{UNRELEASED}\n## {version} ")
    git(root, "commit", "--all", "--message", f"release: begin {following}")
    return file


def after(version):
    first, second, _ = numbers(version)
    return f"{first}.{second + 1}.0"


# --- the self-test

PLANTED = {
    "meson.build": "project('pullman', 'cpp',\n  version: '0.1.0',\n)\n",
    "lib/base/version.h": 'inline constexpr std::string_view kLibraryVersion = "0.1.0";\n',
    HEADER: "inline constexpr std::uint8_t kVersion = 1;\n",
    LIST: "libpullman.so.1 libpullman1 #MINVER#\n one@PULLMAN_1 0.1.0\n two@PULLMAN_1 0.1.0\n",
    "debian/changelog": debian_entry("0.1.0", "UNRELEASED", "First package.", "A <a@localhost>",
                                     "Mon, 30 Nov 2026 12:00:00 +0000"),
    "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n- Messages.\n# no heading, and kept\n",
    ".gitignore": "/build*\n",
}


class SelfTest:
    def __init__(self, root):
        self.root = root
        self.passed, self.failed = 0, 0
        for path, text in PLANTED.items():
            self.write(path, text)
        git(root, "init", "--quiet")
        for name, value in (("user.name", "A"), ("user.email", "a@localhost"), ("commit.gpgsign", "false"),
                            ("tag.gpgsign", "false")):
            git(root, "config", name, value)
        self.commit()

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def commit(self):
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "--message", "a change")

    def change(self, path, old, new):
        text = (self.root / path).read_text()
        assert old in text, f"{path} has no '{old}'"
        self.write(path, text.replace(old, new))
        self.commit()

    def more(self):
        """A change to be released."""
        self.change("CHANGELOG.md", UNRELEASED, f"{UNRELEASED}\n- More.\n")

    def expect(self, what, holds):
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)
        if not holds:
            print(f"not so: {what}")

    def refuses(self, version, words, following=None):
        before = git(self.root, "rev-parse", "HEAD")
        try:
            release(self.root, version, following or "9.9.9")
            why = "nothing"
        except Refused as refused:
            why = str(refused)
        self.expect(f"{version} is refused, with '{words}', not '{why}'", words in why)
        self.expect(f"{version} leaves no commit", git(self.root, "rev-parse", "HEAD") == before)

    def makes(self, version):
        file = release(self.root, version, after(version))
        tagged = {path: git(self.root, "show", f"v{version}:{path}") for path in PLANTED}
        for path in ("meson.build", "lib/base/version.h", "debian/changelog", "CHANGELOG.md"):
            self.expect(f"{path} of v{version} has its version", version in tagged[path])
        self.expect("nothing tagged is unreleased",
                    "nreleased" not in tagged["CHANGELOG.md"] and "UNRELEASED" not in tagged["debian/changelog"])
        self.expect("the tag is annotated", git(self.root, "cat-file", "-t", f"v{version}") == "tag\n")
        self.expect("the tree is clean", not git(self.root, "status", "--porcelain"))
        self.expect("the head is to be the next version",
                    f"'{after(version)}'" in (self.root / "meson.build").read_text())
        names = subprocess.run(["tar", "--list", "--file", file], capture_output=True, text=True, check=True).stdout
        self.expect("the archive has the tree", f"pullman-{version}/meson.build" in names)
        summed = subprocess.run(["sha256sum", "--check", f"{file.name}.sha256"], cwd=file.parent, capture_output=True,
                                check=False)
        self.expect("its sum is right", summed.returncode == 0)

    def run(self):
        self.refuses("0.1", "three numbers")
        self.refuses("0.1.0", "the version to come", following="0.1.0")
        self.write("CHANGELOG.md", "dirty")
        self.refuses("0.1.0", "not committed")
        git(self.root, "checkout", "--quiet", ".")
        self.makes("0.1.0")
        text = git(self.root, "tag", "--list", "--format=%(contents)", "v0.1.0")
        self.expect("the tag says what is new", "- Messages." in text and "# no heading" in text)
        self.refuses("0.1.0", "there already")
        self.refuses("0.2.0", "no changes")
        self.more()
        self.refuses("0.0.9", "must be higher")
        self.makes("0.1.1")

        self.more()
        self.change(LIST, " two@", " three@PULLMAN_1 0.2.0\n two@")
        self.refuses("0.1.2", "1 exported symbols are new, so it is 0.2.0")
        self.makes("0.2.0")
        self.more()
        self.change(HEADER, "kVersion = 1", "kVersion = 2")
        self.refuses("0.2.1", "the wire's version was 1 and is 2, so it is 0.3.0")
        self.makes("1.0.0")
        self.more()
        self.change(LIST, " one@PULLMAN_1 0.1.0\n", "")
        self.refuses("1.1.0", "1 exported symbols are gone, so it is 2.0.0")
        self.makes("2.0.0")
        changelog = (self.root / "debian/changelog").read_text()
        self.expect("Debian's changelog has each version once, the newest first",
                    re.findall(r"\(([^)]*)\)", changelog) == ["2.1.0", "2.0.0", "1.0.0", "0.2.0", "0.1.1", "0.1.0"])
        print(f"{self.passed} passed, {self.failed} failed, 0 skipped")
        return 1 if self.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", nargs="?", help="such as 0.2.1")
    parser.add_argument("--next", help="the version that is to come (the second number one higher)")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        with tempfile.TemporaryDirectory() as folder:
            return SelfTest(pathlib.Path(folder)).run()
    try:
        if options.version is None:
            raise Refused(f"which version? The last was {last_release(ROOT) or 'none'}")
        file = release(ROOT, options.version, options.next or after(options.version))
    except Refused as refused:
        print(f"no release: {refused}", file=sys.stderr)
        return 1
    print(f"{file}\nto publish it: git push --follow-tags")
    return 0


if __name__ == "__main__":
    sys.exit(main())
