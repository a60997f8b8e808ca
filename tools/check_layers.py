#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the house rules that a compiler does not: who includes whom, and what a file looks like.

Usage: tools/check_layers.py [ROOT]. Prints one line a breach, `path:line: what is wrong`, and exits
with 1 when there is one. Only files that git tracks or would track are looked at.
"""
import argparse
import pathlib
import re
import subprocess
import sys

# Which folders the files of a folder may include, beside their own. Folders that are not listed
# (tools, tests, examples) may include everything.
MAY_INCLUDE = {
    'core': set(),
    'data': {'core'},
    'ops': {'core', 'data'},
    'runtime': {'core'},
    'distributed': {'core', 'runtime'},
    'train': {'core', 'data', 'ops', 'runtime', 'distributed'},
    'plugins': {'core', 'data', 'ops', 'runtime'},
    'tenon': {'core', 'data', 'ops', 'runtime', 'distributed', 'train'},
}
# The rooms of a folder, each of which may include those before it only.
ROOMS = {
    'core': ['base', 'memory', 'tensor', 'device', 'op', 'graph', 'build', 'gradient', 'proto',
             'generator'],
    'data': ['files', 'batch', 'csv', 'table', 'table_places', 'records', 'checkpoint', 'arrays',
             'http', 's3', 'hdfs'],
    'runtime': ['device', 'execute', 'passes', 'functions', 'captures', 'compile', 'collectives',
                'session', 'accelerator', 'cuda', 'gloo', 'mpi'],
    'distributed': ['protocol', 'resolver', 'worker', 'master', 'client', 'grpc'],
    # Files beside these rooms come last.
    'distributed/grpc': ['polling', 'rpc', 'peer'],
    'train/glm': ['text', 'formula', 'model', 'result', 'solvers', 'rows', 'inference', 'report',
                  'predict'],
}
MAX_FILES = 30  # flat in a room
# What ops are is said in their declarations: so many lines outside ops/ may ask for one by name.
MAX_OP_NAMES = 10
OP_NAME = re.compile(r'\bop\(\) *[!=]= *"|"[A-Z]\w*" *[!=]= *\S*\bop\(\)|\bop\(\)\.\w+_with\(')
FOLDERS = set(MAY_INCLUDE) | {'tools', 'tests', 'examples'}
SOURCES = {'.cc', '.h', '.cu', '.cuh', '.proto', '.py', '.sh', '.cmake'}
HEADERS = {'.h', '.cuh'}
MAX_LINES = 500
BAD_NAME = re.compile(r'(^|_)(utils?|helpers?|misc|managers?)(_|$)')
# Spelled in two parts, so that this file does not breach its own rules.
UNFINISHED = re.compile(r'\b(TO' r'DO|FIX' r'ME|XX' r'X)\b')
# Paths of one machine and hosts of package registries differ from user to user.
FOREIGN = re.compile(r'(?<![\w.])/(work|root|home|Users)/\w|\b(pypi|debian)\.org\b')
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
CUDA = re.compile(r'^(cuda|cublas|cudnn|cufft|curand|cusolver|cusparse|nccl|nvml|driver_types)')
TYPE = re.compile(r'^(?:class|struct|enum(?: class)?)\s+(?:[A-Z_]+\([^)]*\)\s+)?(\w+)\b[^;]*[{:]')
# Time is learned, and waited for, by Clock alone; tools, tests and examples are programs of their own.
TIME = re.compile(r'\b(steady_clock|system_clock|high_resolution_clock|sleep_for|sleep_until|wait_for|'
                  r'wait_until|usleep|nanosleep|clock_gettime|gettimeofday)\b')
KEEPERS_OF_TIME = {
    'core/base/clock.h', 'core/base/mutex.h', 'runtime/device/machine_clock.cc',
    'core/base/loop_team.cc',            # how long others keep a core: of this machine, also in a simulation
    'distributed/grpc/rpc/deadline.h',   # gRPC waits by the machine's clock
    'train/sessions/stop_signal.cc',  # a signal handler may call next to nothing
    'data/records/event_file.cc',    # the time of day in files, unless it is given
    'data/files/file.cc',            # the age of a file, which the file system's clock tells
    'ops/summary/logging_ops.cc',
}
CLOCK = re.compile(r'\b(?:class|struct|using) Clock\b(?!;)')
MESSAGE = re.compile(r'^(?:message|enum) (\w+)')
# A comment that opens so has its subject in the line above, or none, and cannot be read alone.
COMMENT = r'%s (Of\b|Those\b|Whose\b|As (?=[`A-Z]))'
COMMENTS = {mark: (re.compile(r'\s*' + mark), re.compile(r'(?:^|\s)' + COMMENT % mark))
            for mark in ('///?', '#')}

# Files are opened, listed and removed through data/files/file.h; what the table names reads what is no
# data of a program's, or may not include data/.
FILES = re.compile(r'\b(?:std::)?(?:[io]?fstream|fopen|filesystem)\b')
READS_FILES_ITSELF = {
    'core/generator/main.cc',             # the build's own program, before data/ is built
    'core/memory/memory_limit.cc',        # what the kernel says of this process
    'distributed/protocol/credentials.cc',  # secrets of this machine
    'ops/cuda/libraries.cc',              # libraries of this machine
    'tools/bench_cluster.cc',             # what the kernel says of a process
    'tools/main.cc',                      # text for files that may be pipes and terminals
    'tools/processes.cc',                 # programs of this machine
    'tools/run/outputs.cc',               # tables for files that may be pipes and terminals
}


def listed_files(root):
    out = subprocess.run(['git', '-C', str(root), 'ls-files', '-co', '--exclude-standard', '-z'],
                         check=True, capture_output=True, text=True).stdout
    return sorted({p for p in out.split('\0') if p and (root / p).is_file()})


def room_of(hall, rooms, path):
    """The place of the room that `path` is in among those of `hall`; behind all of them for a file
    of no room, and None for one outside of the hall."""
    if not path.startswith(hall + '/'):
        return None
    room = path[len(hall) + 1:].split('/')[0]
    return rooms.index(room) if room in rooms else len(rooms)


def include_breach(path, included):
    """What is wrong with `path` including `included`, or None."""
    folder, suffix = path.parts[0], path.suffix
    target = included.split('/')[0] if '/' in included else ''
    if folder in MAY_INCLUDE and target in FOLDERS | {folder}:
        if target != folder and target not in MAY_INCLUDE[folder]:
            return f'{folder}/ may not include {target}/ ({included})'
    tested = folder == 'tests' or folder == 'tools' or folder == 'examples'
    for hall, rooms in ROOMS.items():
        own, other = room_of(hall, rooms, str(path)), room_of(hall, rooms, included)
        if own is not None and other is not None and other > own:
            return f'{path.parent}/ may not include {pathlib.PurePosixPath(included).parent}/ ' \
                   f'({included})'
    is_pb = included.endswith('.pb.h')
    if is_pb and suffix in HEADERS and not tested and folder != 'distributed' \
            and not str(path).startswith('core/proto/'):
        return f'.pb.h in a header outside distributed/ and core/proto/ ({included})'
    is_grpc = target in ('grpcpp', 'grpc') or included.endswith('.grpc.pb.h')
    if is_grpc and suffix in HEADERS and not str(path).startswith(('distributed/grpc/', 'tests/')):
        return f'gRPC header in a header outside distributed/grpc/ ({included})'
    if is_grpc and folder in MAY_INCLUDE and not str(path).startswith('distributed/grpc/'):
        return f'gRPC header outside distributed/grpc/ ({included})'
    if CUDA.match(included) and suffix not in {'.cu', '.cuh'} \
            and not str(path).startswith(('runtime/cuda/', 'tests/runtime/cuda/')):
        return f'CUDA header outside .cu, .cuh and runtime/cuda/ ({included})'
    return None


def comment_breaches(lines, mark):
    """Yields (line number, breach) for comments that are no sentences; `mark` begins a comment."""
    is_comment, ellipsis = COMMENTS[mark]
    inside = False
    for number, line in enumerate(lines, 1):
        match = None if inside and is_comment.match(line) else ellipsis.search(line)
        if match:
            yield number, f"a comment that opens with '{match[1].strip()}' cannot be read alone"
        inside = bool(is_comment.match(line))


def check_source(path, lines, messages):
    """Yields (line number, breach) for one source file."""
    head = lines[1] if len(lines) > 1 and lines[0].startswith('#!') else (lines or [''])[0]
    if 'SPDX-License-Identifier: Apache-2.0' not in head:
        yield 1, 'the SPDX line must come first'
    if len(lines) > MAX_LINES:
        yield MAX_LINES + 1, f'{len(lines)} lines, more than {MAX_LINES}'
    is_cpp = path.suffix in {'.cc', '.h', '.cu', '.cuh'}
    if path.suffix in HEADERS and '#pragma once' not in lines:
        yield 1, 'a header without #pragma once'
    yield from comment_breaches(lines, '///?' if is_cpp or path.suffix == '.proto' else '#')
    for number, line in enumerate(lines, 1):
        if is_cpp:
            match = INCLUDE.match(line)
            breach = match and include_breach(path, match[1])
            if breach:
                yield number, breach
            match = TIME.search(line)
            if match and path.parts[0] in MAY_INCLUDE and str(path) not in KEEPERS_OF_TIME:
                yield number, f'{match[0]} beside Clock (core/base/clock.h)'
            if CLOCK.search(line) and str(path) != 'core/base/clock.h':
                yield number, 'another type than that of core/base/clock.h is called Clock'
            if FILES.search(line.split('//')[0]) and not str(path).startswith(('data/files/', 'tests/')) \
                    and str(path) not in READS_FILES_ITSELF:
                yield number, 'files are reached through data/files/file.h'
            match = TYPE.match(line)
            if match and match[1] in messages and path.suffix in HEADERS:
                yield number, f'{match[1]} is the name of a message in package tenon'


def room_breaches(root, files):
    """Yields (path, line number, breach): of rooms that are too large, or whose README leaves a
    header out, of files in no room, and of too many lines that ask for an op by its name."""
    rooms = {}
    asking = []
    for name in files:
        path = pathlib.PurePosixPath(name)
        if path.suffix not in {'.cc', '.h'}:
            continue
        if path.parts[0] in ROOMS and len(path.parts) == 2:
            yield path, 1, f'{path.parts[0]}/ has rooms; the file is in none of them'
        if path.parts[0] in ROOMS and len(path.parts) > 2:
            rooms.setdefault(path.parent, []).append(path)
        if path.parts[0] in MAY_INCLUDE.keys() - {'ops'} or path.parts[0] == 'tools':
            asking += [(path, number) for number, line
                       in enumerate((root / path).read_text().splitlines(), 1)
                       if OP_NAME.search(line)]
    for room, members in rooms.items():
        if len(members) > MAX_FILES:
            yield room, 1, f'{len(members)} files flat in a room, more than {MAX_FILES}'
        readme = root / room / 'README.md'
        text = readme.read_text() if readme.is_file() else ''
        for member in members:
            if member.suffix == '.h' and f'`{member.name}`' not in text:
                yield room / 'README.md', 1, f'{member.name} is not in it'
    if len(asking) > MAX_OP_NAMES:
        for path, number in asking:
            yield path, number, (f'an op is asked for by its name, in {len(asking)} lines outside '
                                 f'ops/; at most {MAX_OP_NAMES}: a trait says what an op is '
                                 '(core/op/op_traits.h)')


def circles(includes):
    """The sets of modules of which each reaches each by includes, with more than one member (Tarjan's
    algorithm, without recursion). `includes` has the set of included modules of each."""
    number, low, stack, on_stack, found = {}, {}, [], set(), []
    for start in sorted(includes):
        if start in number:
            continue
        number[start] = low[start] = len(number)
        stack.append(start)
        on_stack.add(start)
        path = [(start, iter(sorted(includes[start])))]
        while path:
            module, rest = path[-1]
            child = next(rest, None)
            if child is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[module])
                if low[module] == number[module]:
                    circle = set()
                    while module not in circle:
                        circle.add(stack.pop())
                    on_stack -= circle
                    if len(circle) > 1:
                        found.append(sorted(circle))
            elif child not in number:
                number[child] = low[child] = len(number)
                stack.append(child)
                on_stack.add(child)
                path.append((child, iter(sorted(includes[child]))))
            elif child in on_stack:
                low[module] = min(low[module], number[child])
    return found


def circle_breaches(root, files):
    """Yields (path, line number, breach) for modules, a header with its .cc, that include each other
    in a circle."""
    of_module = {name.rsplit('.', 1)[0] if name.endswith(('.h', '.cc')) else name: name
                 for name in files if pathlib.PurePosixPath(name).suffix in {'.h', '.cc', '.cu', '.cuh'}
                 and name.split('/')[0] not in {'tests', 'examples'}}
    includes = {module: set() for module in of_module}
    for name in files:
        module = name.rsplit('.', 1)[0] if name.endswith(('.h', '.cc')) else name
        if module not in includes:
            continue
        for line in (root / name).read_text().splitlines():
            match = INCLUDE.match(line)
            other = match and match[1].removesuffix('.h')
            if other in includes and other != module:
                includes[module].add(other)
    for circle in circles(includes):
        yield (pathlib.PurePosixPath(of_module[circle[0]]), 1,
               f"a circle of includes, a header and its .cc as one: {', '.join(circle)}")


def breaches(root):
    """Yields (path, line number, breach) for all files below root."""
    files = listed_files(root)
    messages = set()
    for name in files:
        if name.startswith('proto/') and name.endswith('.proto'):
            text = (root / name).read_text()
            package = re.search(r'^package (.*);', text, re.M)
            if package is None or package[1] == 'tenon':
                messages.update(match[1] for match in map(MESSAGE.match, text.splitlines()) if match)
    yield from room_breaches(root, files)
    yield from circle_breaches(root, files)
    for name in files:
        path = pathlib.PurePosixPath(name)
        for part in path.parts:
            if BAD_NAME.search(part.split('.')[0].replace('-', '_')):
                yield path, 1, f"'{part}' does not say what it holds"
        if path.suffix not in SOURCES | {'.md', '.txt', '.json', '.in', ''} or name == 'LICENSE':
            continue
        is_sample = path.parts[:2] == ('tests', 'data') and len(path.parts) > 3
        if is_sample or 'corpus' in path.parts:
            continue
        try:
            lines = (root / path).read_text().splitlines()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, 1):
            for rule in (UNFINISHED, FOREIGN):
                match = rule.search(line)
                if match:
                    yield path, number, f"'{match[0]}' has no place here"
        if path.suffix in SOURCES or path.name == 'CMakeLists.txt':
            yield from ((path, n, breach) for n, breach in check_source(path, lines, messages))


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('root', nargs='?', type=pathlib.Path,
                        default=pathlib.Path(__file__).parent.parent)
    found = list(breaches(parser.parse_args(arguments).root))
    for path, number, breach in found:
        print(f'{path}:{number}: {breach}')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
