#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which glibc the programs and libraries of a folder need: for each of them the highest version that it
names, with the symbols of that version.

  tools/glibc_versions.py FOLDER
  tools/glibc_versions.py FOLDER --at-most 2.36    ends with 1, and names files and symbols, when one needs more
"""
import argparse
import os
import re
import subprocess
import sys

# Versions without a number: what a glibc must be able to do, and the first that can.
ABILITIES = {"GLIBC_ABI_DT_RELR": (2, 36)}
ANY = (10**9,)  # no other glibc is sure to do: GLIBC_PRIVATE, and abilities not in the table


def number(version):
    """(2, 3, 4) of GLIBC_2.3.4; comparable."""
    found = re.fullmatch(r"GLIBC_(\d+(?:\.\d+)*)", version)
    return tuple(map(int, found[1].split("."))) if found else ABILITIES.get(version, ANY)


def is_elf(path):
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def elf_files(folder):
    """The ELF files below the folder, as seen from it, in order of their names."""
    found = [os.path.join(base, name) for base, _, names in os.walk(folder) for name in names]
    return sorted(os.path.relpath(path, folder) for path in found if is_elf(path))


def needed_versions(path):
    """{version: symbols} of what the file needs of glibc. The loader looks at the versions, and some
    have no symbol."""
    text = subprocess.run(["readelf", "--wide", "--version-info", "--dyn-syms", path], check=True,
                          stdout=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C"}).stdout
    # A version that the file itself defines has "Rev:" where these have "Name:".
    versions = {v: [] for v in re.findall(r"^ +(?:0x)?[0-9a-f]+: +Name: (GLIBC_\S+)", text, re.M)}
    for symbol, version in re.findall(r" UND (\S+?)@+(GLIBC_\S+)", text):
        versions.setdefault(version, []).append(symbol)
    return versions


def shown(symbols, most=5):
    more = [f"and {len(symbols) - most} more"] if len(symbols) > most else []
    return ", ".join(sorted(symbols)[:most] + more) or "no symbol"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--at-most", metavar="VERSION", help="such as 2.36")
    flags = parser.parse_args()
    if flags.at_most and not re.fullmatch(r"\d+(\.\d+)*", flags.at_most):
        parser.error(f"--at-most wants a version such as 2.36, not '{flags.at_most}'")
    files = elf_files(flags.folder)
    if not files:
        sys.exit(f"{flags.folder}: no ELF file in it")
    limit = number("GLIBC_" + flags.at_most) if flags.at_most else ANY
    above, highest = [], "GLIBC_0"
    for file in files:
        versions = needed_versions(os.path.join(flags.folder, file))
        top = max(versions, key=number, default="GLIBC_0")
        highest = max(highest, top, key=number)
        print(f"{top if versions else '-':16} {file}" + (f" ({shown(versions[top])})" if versions else ""))
        above += [f"{file}: {version} ({shown(symbols)})"
                  for version, symbols in sorted(versions.items(), key=lambda v: number(v[0]))
                  if flags.at_most and number(version) > limit]
    print(f"{highest} is the highest of {len(files)} files")
    for line in above:
        print(f"above {flags.at_most}: {line}", file=sys.stderr)
    sys.exit(1 if above else 0)


if __name__ == "__main__":
    main()
