"""For mkdocs: a document that another names, such as `docs/guide.md`, is a link on the site; one that is not there is a
warning, and so an error with --strict."""

import logging
import posixpath
import re

LOG = logging.getLogger("mkdocs.hooks.site_links")
# A folder stands for the page that begins it.
NAMED = re.compile(r"`((?:docs/)?(?:[\w-]+/)*(?:[\w-]+\.md|(?<=decisions/)))`")


def target_of(name, pages):
    """The page that is meant; within docs/ the folder may be left out."""
    file = name + "README.md" if name.endswith("/") else name
    return next((page for page in (file, f"docs/{file}") if page in pages), None)


def with_links(text, page, pages):
    """
    >>> with_links("`docs/guide.md`, `wire.md` 4.1, `gone.md`", "docs/mpi.md", {"docs/guide.md", "docs/wire.md"})
    ('[`docs/guide.md`](guide.md), [`wire.md`](wire.md) 4.1, `gone.md`', ['gone.md'])
    """
    missing = []

    def link(found):
        name = found.group(1)
        target = target_of(name, pages)
        if target is None:
            missing.append(name)
            return found.group(0)
        return f"[`{name}`]({posixpath.relpath(target, posixpath.dirname(page) or '.')})"

    return NAMED.sub(link, text), missing


def on_page_markdown(markdown, page, files, **_):
    pages = {file.src_uri for file in files.documentation_pages()}
    text, missing = with_links(markdown, page.file.src_uri, pages)
    for name in missing:
        LOG.warning("%s names %s, which does not exist", page.file.src_uri, name)
    return text
