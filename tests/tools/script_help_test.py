# SPDX-License-Identifier: Apache-2.0
"""--help of each Python script of tools/ says how to call it, and does nothing else."""
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class ScriptHelpTest(unittest.TestCase):
    def test_help_is_a_page(self):
        # What PyTorch is compared with needs PyTorch even for that.
        scripts = sorted(script for script in (ROOT / 'tools').glob('*.py')
                         if 'import torch' not in script.read_text(encoding='utf-8'))
        self.assertGreater(len(scripts), 4)
        for script in scripts:
            with self.subTest(script=script.name):
                done = subprocess.run([sys.executable, script, '--help'], capture_output=True,
                                      text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(done.stdout.startswith('usage: ' + script.name), done.stdout[:200])
                self.assertLess(len(done.stdout.splitlines()), 60)


if __name__ == '__main__':
    unittest.main()
