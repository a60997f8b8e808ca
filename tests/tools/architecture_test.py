# SPDX-License-Identifier: Apache-2.0
"""docs/architecture.md is true as far as a script can tell: its pictures are those of the sources,
and the files that it names are there."""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / 'docs' / 'architecture.md'
NAMED = re.compile(r'`((?:[a-z_]+/)+[a-z_]+\.(?:h|cc|md|py|ops))`')


class ArchitectureTest(unittest.TestCase):

    def test_the_pictures_are_those_of_the_sources(self):
        ran = subprocess.run([sys.executable, ROOT / 'tools' / 'draw_architecture.py', '--check'],
                             capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def test_the_picture_has_all_stages(self):
        text = (ROOT / 'runtime' / 'compile' / 'compiler.cc').read_text()
        stages = text[text.index('Compiler::AllStages()'):text.index('return *stages')]
        names = re.findall(r'Compilation::\w+\}', stages)
        drawn = re.findall(r'^  s\d+\["', PAGE.read_text(), re.MULTILINE)
        self.assertEqual(len(drawn), len(names) + 2)

    def test_the_files_that_it_names_are_there(self):
        named = set(NAMED.findall(PAGE.read_text()))
        self.assertGreater(len(named), 40)
        self.assertEqual(sorted(name for name in named if not (ROOT / name).is_file()), [])


if __name__ == '__main__':
    unittest.main()
