#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the two pictures of docs/architecture.md from the sources: the rooms and who includes whom,
and a step's way through the stages of the compiler.

Writes the pictures, as Mermaid, between the marks that the page has for them; with --check it exits
with 1 when they are not as they would be.
"""
import argparse
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import check_layers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / 'docs' / 'architecture.md'
HALLS = {folder: rooms for folder, rooms in check_layers.ROOMS.items() if '/' not in folder}
INCLUDE = re.compile(r'^#include "(\w+)/(\w+)/')
STAGE = re.compile(r'\{"([a-z ]+)",\s*"([^"]+)",\s*Compilation::')


def includes():
    """{(room, room)}: the rooms, as 'folder/room', of which one includes the other."""
    found = set()
    for folder, rooms in HALLS.items():
        for room in rooms:
            for path in (ROOT / folder / room).rglob('*.*'):
                if path.suffix not in {'.h', '.cc'}:
                    continue
                for line in path.read_text().splitlines():
                    match = INCLUDE.match(line)
                    if match and match[2] in HALLS.get(match[1], []):
                        found.add((f'{folder}/{room}', f'{match[1]}/{match[2]}'))
    return {(a, b) for a, b in found if a != b}


def without_shortcuts(edges):
    """The edges that no path of others stands for."""
    below = {}
    for a, b in edges:
        below.setdefault(a, set()).add(b)

    def reaches(a, b):
        return any(c == b or reaches(c, b) for c in below.get(a, ()))
    return {(a, b) for a, b in edges
            if not any(c != b and reaches(c, b) for c in below[a])}


def rooms_picture():
    lines = ['```mermaid', 'flowchart BT']
    for folder, rooms in HALLS.items():
        lines.append(f'  subgraph {folder}')
        lines += [f'    {folder}_{room}["{room}"]' for room in rooms]
        lines.append('  end')
    for a, b in sorted(without_shortcuts(includes())):
        lines.append(f'  {a.replace("/", "_")} --> {b.replace("/", "_")}')
    return lines + ['```']


def way_picture():
    text = (ROOT / 'runtime/compile/compiler.cc').read_text()
    stages = STAGE.findall(text)
    steps = [('build', 'a program or GraphFromProto makes a graph')] + stages + [
        ('run', 'Program::Execute, with one ProgramRun for all its kernels')]
    lines = ['```mermaid', 'flowchart TB']
    lines += [f'  s{i}["<b>{name}</b><br/>{what}"]' for i, (name, what) in enumerate(steps)]
    lines += [f'  s{i} --> s{i + 1}' for i in range(len(steps) - 1)]
    return lines + ['```']


def drawn(page):
    for name, picture in (('rooms', rooms_picture()), ('way', way_picture())):
        begin, end = f'<!-- {name}: drawn by tools/draw_architecture.py -->', f'<!-- end of {name} -->'
        before, rest = page.split(begin)
        after = rest.split(end)[1]
        page = before + begin + '\n' + '\n'.join(picture) + '\n' + end + after
    return page


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--check', action='store_true', help='write nothing')
    check = parser.parse_args(arguments).check
    page = PAGE.read_text()
    wanted = drawn(page)
    if check and page != wanted:
        print(f'{PAGE.name}: the pictures are not those of the sources; '
              'run tools/draw_architecture.py')
        return 1
    if not check:
        PAGE.write_text(wanted)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
