"""What the programs say of themselves, held against their man pages and completion: programs.py BUILD_DIRECTORY

Each option of --help is in the page and the page has no other; so are the words an option may be given, and the
variables; bash completes each. pullman(7) has every variable of the public headers. mandoc finds nothing wrong with the
pages. Prints `N passed, N failed, N skipped`.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPLETION = "/usr/share/bash-completion/bash_completion"
PROGRAMS = ("bench/pullman-perf", "tools/pullman-info", "tools/pullman-key", "tools/pullman-stat")
# Completes the last of its arguments, as bash does when the tab key is pressed.
COMPLETE = """
source "$1"; source "$2"; shift 2
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_pullman "$1" "${*: -1}" "${*: -2:1}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def options_in_help(text):
    """The options, each with the words it may be given.

    >>> options_in_help("  -h,--help  Help\\n  --test TEXT:{rate,fail}\\n      --not an option\\n  --nic TEXT ...")
    {'--help': [], '--test': ['rate', 'fail'], '--nic': []}
    """
    found = re.findall(r"^  (?:-\w,)?(--[\w-]+)(?: [A-Z]+:\{([\w,]+)\})?", text, re.M)
    return {option: words.split(",") if words else [] for option, words in found}


def options_in_page(text):
    """
    >>> sorted(options_in_page(".It Fl h , Fl -help\\n.It Fl -test Ar TEST\\nand\\n.Fl -other\\n"))
    ['--help', '--test']
    """
    return {f"-{option}" for line in re.findall(r"^\.It (.*)", text, re.M)
            for option in re.findall(r"Fl (-[\w-]+)", line)}


def variables(text):
    return set(re.findall(r"PULLMAN_[A-Z_]*[A-Z]", text))


def wrong_in_page(options, text, page):
    written = options_in_page(page)
    yield from (f"says nothing of {option}" for option in options if option not in written)
    yield from (f"has {option}, which --help has not" for option in written if option not in options)
    yield from (f"says nothing of '{word}', which {option} may be given" for option, words in options.items()
                for word in words if not re.search(rf"\b{word}\b", page))
    yield from (f"says nothing of {name}" for name in sorted(variables(text) - variables(page)))


def complete(program, *words):
    result = subprocess.run(["bash", "-c", COMPLETE, "bash", COMPLETION, ROOT / "completions/pullman-perf", program,
                             *words], capture_output=True, text=True, check=False)
    return set(result.stdout.split())


def wrong_in_completion(program, options):
    if offered := set(options) ^ complete(program, "--"):
        yield f"completion of '--' and --help differ in {', '.join(sorted(offered))}"
    for option, words in options.items():
        if words and complete(program, option, "") != set(words):
            yield f"{option} is completed with {complete(program, option, '') or 'nothing'}, not {words}"


def wrong_in_pages(pages):
    result = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages], capture_output=True, text=True,
                            check=False)
    return result.stdout.splitlines()


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    checks = {"man/*": wrong_in_pages(sorted((ROOT / "man").glob("*.[0-9]")))}
    for program in PROGRAMS:
        name = pathlib.Path(program).name
        text = subprocess.run([build / program, "--help"], capture_output=True, text=True, check=True).stdout
        page = (ROOT / f"man/{name}.1").read_text()
        checks[f"man/{name}.1"] = list(wrong_in_page(options_in_help(text), text, page))
        checks[f"completions/{name}"] = list(wrong_in_completion(build / program, options_in_help(text)))
    headers = "".join(file.read_text() for file in (ROOT / "include/pullman").glob("*.h"))
    missing = sorted(variables(headers) - variables((ROOT / "man/pullman.7").read_text()))
    checks["man/pullman.7"] = [f"says nothing of {name}" for name in missing]
    for name, wrong in checks.items():
        for line in wrong:
            print(f"{name}: {line}")
    failed = sum(bool(wrong) for wrong in checks.values())
    print(f"{len(checks) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
