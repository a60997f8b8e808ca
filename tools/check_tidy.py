#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the checks of .clang-tidy over the .cc files that the newest commits have changed.

Usage: tools/check_tidy.py [--build FOLDER] [--commits N] [--most N] [--seconds N] [FILE...]

Prints what clang-tidy finds, and exits with 1 when that is anything; says nothing otherwise. Needs a build tree that
is built, whose compile_commands.json tells how each file is compiled, those too that a unity build joins. When the
seconds are over, the files that are left are not looked at.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIDY = 'clang-tidy-19'  # of the compiler's version, so that it knows the flags and the language as well
JOINED = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def changed_files(commits):
    """The .cc files that the newest commits or the working tree have changed and that are there, newest first."""
    def git(*arguments):
        return subprocess.run(['git', '-C', str(ROOT), *arguments], check=True, capture_output=True,
                              text=True).stdout.split()
    names = git('diff', '--name-only', 'HEAD', '--', '*.cc')
    names += git('log', f'-{commits}', '--no-merges', '--name-only', '--format=', '--', '*.cc')
    return [ROOT / name for name in dict.fromkeys(names) if (ROOT / name).is_file()]


def commands(build):
    """By file, the entry of a compilation database that compiles it alone."""
    found = {}
    for entry in json.loads((build / 'compile_commands.json').read_text()):
        unit = pathlib.Path(entry['file'])
        files = [unit]
        if 'Unity' in unit.parts:
            files = [pathlib.Path(name) for name in JOINED.findall(unit.read_text())]
        for file in files:
            found.setdefault(file, {**entry, 'file': str(file),
                                    'command': entry['command'].replace(str(unit), str(file))})
    return found


def findings(file, database, seconds):
    """What clang-tidy prints of the file when it finds anything within the seconds, else nothing."""
    try:
        done = subprocess.run([TIDY, '--quiet', f'-p={database}', str(file)], cwd=ROOT, timeout=seconds,
                              capture_output=True, text=True, check=False)
    except subprocess.TimeoutExpired:
        return ''
    return done.stdout + done.stderr if done.returncode else ''


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('files', metavar='FILE', nargs='*', type=pathlib.Path, help='look at these files instead')
    parser.add_argument('--build', type=pathlib.Path, default=ROOT / 'build/release', help='a build tree')
    parser.add_argument('--commits', type=int, default=10, help='how many commits to look back')
    parser.add_argument('--most', type=int, default=20, help='how many of their files to look at')
    parser.add_argument('--seconds', type=float, default=50, help='how long to look at most')
    options = parser.parse_args(arguments)
    known = commands(options.build)
    files = [file.resolve() for file in options.files] or changed_files(options.commits)[:options.most]
    database = options.build / 'tidy'
    database.mkdir(exist_ok=True)
    (database / 'compile_commands.json').write_text(json.dumps([known[f] for f in files if f in known]))
    end = time.monotonic() + options.seconds

    def look_at(file):
        left = end - time.monotonic()
        return findings(file, database, left) if file in known and left > 0 else ''

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        found = [text for text in threads.map(look_at, files) if text]
    print(''.join(found), end='')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
