# SPDX-License-Identifier: Apache-2.0
"""tests/data/glm/nist has what make_nist.py writes, which compares its solutions with those that NIST has certified."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

GLM = pathlib.Path(__file__).resolve().parents[1] / "data" / "glm"


class MakeNistTest(unittest.TestCase):
    def test_the_files_are_made_again(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, GLM / "make_nist.py", folder], check=True, timeout=60)
            made = {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}
        self.assertEqual(made, {path.name: path.read_bytes() for path in (GLM / "nist").iterdir()})
        self.assertEqual(len(made), 12)


if __name__ == "__main__":
    unittest.main()
