#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that sizes from outside are not taken at their word: docs/security.md says what is trusted.

Usage: tools/check_sizes.py [ROOT]. Prints one line a breach, `path:line: what is wrong`, and exits
with 1 when there is one. A line that is right all the same says why: `// size: it is a dtype`.
"""
import argparse
import pathlib
import re
import sys

from check_layers import listed_files

# Where code meets sizes that a graph, a file or a peer has chosen.
FOLDERS = ('data', 'distributed', 'ops', 'runtime')
# Where the checked forms are made.
MAKERS = {'distributed/grpc/rpc/wire.h'}
EXCUSE = re.compile(r'// size: \S')
# Counts that the number of a node's inputs, a rank or the program itself bounds.
BOUNDED = re.compile(r'^[\w.>()-]*(rank\w*(\(\))?|num_(inputs|outputs|ids)\(\)|frames_\.size\(\)|'
                     r'dims\.size\(\)|limits\.size\(\)|max_outputs_|\d+)$')
VECTOR = re.compile(r'\bstd::vector<(?:bool|char|float|double|u?int\d+_t|size_t|std::pair<[^>]*>)>'
                    r'\s+\w+\(([^,"]+)[,)]')
RULES = [
    (re.compile(r'\bTensor\s+\w+\((?!DType::\w+, Shape\(\)\))'
                r'(?:DType::\w+|[\w.>-]*dtype(?:\(\))?_?), (?!Shape\(\))'),
     'ends the process when memory is out; use Tensor::Allocate'),
    (re.compile(r'\bTensor::Zeros\('), 'ends the process when memory is out; use Tensor::Allocate'),
    (re.compile(r'\b(?:PushLimit|SetTotalBytesLimit|ReadVarint32|ReadVarintSizeAsInt)\('),
     'reads a length by itself; use ReadLength or FieldLimit (distributed/grpc/rpc/wire.h)'),
    (re.compile(r'\b(?:malloc|calloc|realloc|alloca)\('), 'memory that nobody counts'),
    (re.compile(r'\bnew\s+[\w:<>]+\['), 'memory that nobody counts; use CountedVector'),
    (re.compile(r'\b(?:int|int32_t|uint32_t)\s+\w+\s*=\s*(?:static_cast<int>\()?\w+[.>-]*num_elements\(\)'),
     'narrows a number of elements'),
]


def breaches(path, lines):
    for number, line in enumerate(lines, 1):
        code = line.split('//')[0]
        if EXCUSE.search(line):
            continue
        for pattern, what in RULES:
            if pattern.search(code):
                yield number, what
        found = VECTOR.search(code)
        if found and path.parts[0] in ('data', 'ops') and not BOUNDED.match(found[1].strip()):
            yield number, f'may take any memory: {found[1].strip()} elements; use CountedVector'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('root', nargs='?', type=pathlib.Path,
                        default=pathlib.Path(__file__).parent.parent)
    root = parser.parse_args().root
    failed = False
    for path in map(pathlib.PurePath, listed_files(root)):
        if path.parts[0] not in FOLDERS or path.suffix not in ('.cc', '.h') or str(path) in MAKERS:
            continue
        lines = (root / path).read_text(encoding='utf-8').splitlines()
        for number, what in breaches(path, lines):
            print(f'{path}:{number}: {what}')
            failed = True
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
