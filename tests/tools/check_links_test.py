# SPDX-License-Identifier: Apache-2.0
"""tools/check_links.py finds links that lead nowhere, and none in this tree."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools'))
sys.dont_write_bytecode = True
import check_links  # noqa: E402


def found(files, git=False):
    """What is found in a folder of these files."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        if git:
            subprocess.run(['git', 'init', '-q', folder], check=True)
        return [what for _, _, what in check_links.breaches(root)]


class CheckLinksTest(unittest.TestCase):

    def test_this_tree_is_clean(self):
        result = subprocess.run([sys.executable, str(ROOT / 'tools' / 'check_links.py'), str(ROOT)],
                                capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (0, ''), result.stderr)

    def test_links_to_files_folders_and_headings_hold(self):
        files = {'a.md': '# One `two`, three\n\n## [Four](b/c.md)\n## Four\n[x](b/c.md) [y](b/) [z](#one-two-three)\n'
                         '[`d`](b/d.py "of d") ![p](<b/d.py>) [r][r] <img src="b/d.py">\n\n[r]: b/c.md#five_5\n'
                         '[u](#four-1) [v](b/c.md#)\n',
                 'b/c.md': '### five_5 ###\n[back](../a.md#four)\n', 'b/d.py': ''}
        self.assertEqual(found(files), [])

    def test_what_is_no_link_between_pages_is_left_alone(self):
        text = ('[x](https://a.example/b) <a href="mailto:a@b">m</a> `[y](none.md)` ``[`y`](none.md)``\n'
                '```\n[z](none.md)\n```\n')
        self.assertEqual(found({'a.md': text}), [])

    def test_links_that_lead_nowhere_are_found(self):
        for text, why in (('[x](b.md)', "there is no b.md"), ('![x](p.svg)', "there is no p.svg"),
                          ('[x](../a.md)', "there is no ../a.md"), ('[x](/a.md)', "there is no /a.md"),
                          ('[x](A.md)', "there is no A.md"), ('[x](#two)', "a.md has no heading 'two'"),
                          ('[x](a.md#two)', "a.md has no heading 'two'"), ('[r]: b/', "there is no b"),
                          ('<a href="b.md">x</a>', "there is no b.md"), ('[x](b.md "t")', "there is no b.md")):
            (what,) = found({'a.md': '# One\n' + text + '\n'})
            self.assertTrue(what.endswith('leads nowhere: ' + why), what)

    def test_what_git_ignores_does_not_go_with_the_pages(self):
        files = {'a.md': '[x](build/b.md)\n', 'build/b.md': '[y](none.md)\n', '.gitignore': '/build/\n'}
        self.assertEqual(len(found(files)), 1)
        (what,) = found(files, git=True)
        self.assertIn("there is no build/b.md", what)

    def test_a_folder_that_is_not_there_is_a_mistake(self):
        with self.assertRaises(SystemExit):
            check_links.main([str(ROOT / 'no_such_folder')])


if __name__ == '__main__':
    unittest.main()
