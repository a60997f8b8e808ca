#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the ops that serialised graphs use, one a line, sorted.

    tools/list_graph_ops.py model.pb 001-client-worker0-CreateSession.req.bin ...

Each file is a GraphDef, or a request that holds one: the file's name says which
(CreateSession, ExtendSession, RegisterGraph). Ops inside functions of the graph's library count too.
Needs nothing but Python: it reads the few protobuf fields it wants by number.
"""
import argparse
import pathlib
import sys

# Where the GraphDef is in a message, by what the file name contains.
GRAPH_FIELD = {'CreateSession': 1, 'ExtendSession': 2, 'RegisterGraph': 2}


def read_varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError('not a protobuf message: bad varint')
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data, number):
    """The values of the length-delimited field `number` of a message, as bytes."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        wire_type = tag & 7
        if wire_type == 0:
            _, at = read_varint(data, at)
            continue
        if wire_type in (1, 5):
            at += 8 if wire_type == 1 else 4
            continue
        if wire_type != 2:
            raise ValueError(f'not a protobuf message: wire type {wire_type}')
        size, at = read_varint(data, at)
        if at + size > len(data):
            raise ValueError('not a protobuf message: cut short')
        if tag >> 3 == number:
            yield data[at:at + size]
        at += size


def graph_ops(graph):
    """The ops of a GraphDef: of its nodes and of those in its functions."""
    nodes = list(fields(graph, 1))
    for library in fields(graph, 2):
        for function in fields(library, 1):
            nodes.extend(fields(function, 3))
    return {op.decode() for node in nodes for op in fields(node, 2)}


def file_ops(path):
    data = path.read_bytes()
    for name, number in GRAPH_FIELD.items():
        if name in path.name:
            return set().union(*(graph_ops(g) for g in fields(data, number)))
    return graph_ops(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('files', nargs='+', type=pathlib.Path)
    args = parser.parse_args()
    ops = set()
    for path in args.files:
        try:
            ops |= file_ops(path)
        except (OSError, ValueError) as error:
            sys.exit(f'{path}: {error}')
    print('\n'.join(sorted(ops)))


if __name__ == '__main__':
    main()
