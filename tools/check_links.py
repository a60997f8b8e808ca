#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every relative link of a Markdown page leads to something that goes with the page.

Usage: tools/check_links.py [ROOT]. ROOT is the source tree, of which only files that git tracks or
would track count, or a folder of installed files. Prints one line a breach, `path:line: what is
wrong`, and exits with 1 when there is one.
"""
import argparse
import pathlib
import posixpath
import re
import sys
import urllib.parse

from check_layers import listed_files

FENCE = re.compile(r'\s*(```|~~~)')
CODE = re.compile(r'(`+)(?!`).+?(?<!`)\1(?!`)')
# [text](target "title"), [name]: target, and the attributes of HTML.
LINK = re.compile(r'\]\(<?([^)>\s]+)>?(?:\s+"[^"]*")?\)|^\s*\[[^\]]+\]:\s+(\S+)|\b(?:href|src)="([^"]*)"')
SCHEME = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*:')
HEADING = re.compile(r'#{1,6}\s+(.*?)\s*#*$')


def lines_of(text):
    """(number, line) of what is prose: no block of code."""
    inside = None
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if fence and inside in (None, fence[1]):
            inside = None if inside else fence[1]
        elif inside is None:
            yield number, line


def anchors(text):
    """What may follow # in a link to the page, as GitHub makes it of the headings."""
    found = set()
    for _, line in lines_of(text):
        heading = HEADING.match(line)
        if not heading:
            continue
        words = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', heading[1]).lower()
        name = base = re.sub(r'[^\w\- ]', '', words).replace(' ', '-')
        times = 0
        while name in found:
            times += 1
            name = f'{base}-{times}'
        found.add(name)
    return found


def links(text):
    """(number, target) of each link that is no URL."""
    for number, line in lines_of(text):
        for match in LINK.finditer(CODE.sub('', line)):
            target = match[1] or match[2] or match[3] or ''
            if target and not SCHEME.match(target):
                yield number, urllib.parse.unquote(target)


def files_of(root):
    if (root / '.git').exists():
        return listed_files(root)
    return sorted(p.relative_to(root).as_posix() for p in root.rglob('*') if p.is_file())


def breaches(root):
    """(path, number, what) of each link that leads nowhere."""
    files = files_of(root)
    there = set(files) | {str(f) for name in files for f in pathlib.PurePosixPath(name).parents}
    text = {name: (root / name).read_text(encoding='utf-8') for name in files if name.endswith('.md')}
    names = {name: anchors(page) for name, page in text.items()}
    for page in text:
        for number, link in links(text[page]):
            path, _, anchor = link.partition('#')
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
            if link.startswith('/') or target not in there:
                yield page, number, f"'{link}' leads nowhere: there is no {target}"
            elif anchor and target in names and anchor not in names[target]:
                yield page, number, f"'{link}' leads nowhere: {target} has no heading '{anchor}'"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('root', nargs='?', type=pathlib.Path,
                        default=pathlib.Path(__file__).parent.parent)
    root = parser.parse_args(arguments).root
    if not root.is_dir():
        parser.error(f'{root} is no folder')
    found = list(breaches(root))
    for page, number, what in found:
        print(f'{page}:{number}: {what}')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
