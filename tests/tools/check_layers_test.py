# SPDX-License-Identifier: Apache-2.0
"""tools/check_layers.py finds each kind of breach, and none in this tree."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools'))
sys.dont_write_bytecode = True
import check_layers  # noqa: E402

SPDX = '// SPDX-License-Identifier: Apache-2.0\n'


class CheckLayersTest(unittest.TestCase):

    def breaches(self, **files):
        """What is found in a tree of these files; `__` in a name stands for `/`, `_DOT_` for `.`."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            subprocess.run(['git', 'init', '-q', folder], check=True)
            for name, text in files.items():
                path = root / name.replace('__', '/').replace('_DOT_', '.')
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return [breach for _, _, breach in check_layers.breaches(root)]

    def expect_one(self, fragment, **files):
        found = self.breaches(**files)
        self.assertEqual(len(found), 1, found)
        self.assertIn(fragment, found[0])

    def test_this_tree_is_clean(self):
        self.assertEqual([f'{p}:{n}: {b}' for p, n, b in check_layers.breaches(ROOT)], [])

    def test_an_allowed_include_passes(self):
        self.assertEqual(self.breaches(ops__a_DOT_cc=SPDX + '#include "core/tensor/tensor.h"\n'), [])

    def test_modules_do_not_include_each_other(self):
        header = SPDX + '#pragma once\n'
        self.expect_one('a circle of includes, a header and its .cc as one: train/a, train/b',
                        train__a_DOT_h=header, train__a_DOT_cc=SPDX + '#include "train/b.h"\n',
                        train__b_DOT_h=header + '#include "train/a.h"\n')
        self.assertEqual(self.breaches(train__a_DOT_h=header, train__a_DOT_cc=SPDX + '#include "train/a.h"\n',
                                       train__b_DOT_h=header + '#include "train/a.h"\n'), [])

    def test_ops_may_not_include_runtime(self):
        self.expect_one('ops/ may not include runtime/',
                        ops__a_DOT_cc=SPDX + '#include "runtime/execute/executor.h"\n')

    def test_a_comment_can_be_read_alone(self):
        for opening in ('Of the longest one.', 'Those of both.', 'Whose value it is.',
                        'As `dtype` again.', 'As StridedCopy.'):
            wrong = f"opens with '{opening.split()[0]}' cannot be read alone"
            self.expect_one(wrong, ops__a_DOT_cc=f'{SPDX}\n  /// {opening}\n  int a;\n')
            self.expect_one(wrong, ops__a_DOT_cc=f'{SPDX}int a;  // {opening}\n')
            self.expect_one(wrong, proto__a_DOT_proto=f'{SPDX}\nint32 a = 1;  // {opening}\n')
            self.expect_one(wrong, tools__a_DOT_py=f'{SPDX.replace("//", "#")}\n# {opening}\n')

    def test_a_sentence_may_go_on_in_a_line_that_begins_so(self):
        text = SPDX + '\n/// The size\n/// Of nothing.\n// As a rule, a sentence.\nint a;  // of b\n'
        self.assertEqual(self.breaches(ops__a_DOT_cc=text), [])

    def test_core_may_not_include_tools(self):
        self.expect_one('core/ may not include tools/',
                        core__base__a_DOT_cc=SPDX + '#include "tools/command.h"\n')

    def test_pb_headers_stay_out_of_headers(self):
        text = SPDX + '#pragma once\n#include "proto/graph.pb.h"\n'
        self.expect_one('.pb.h in a header', train__a_DOT_h=text)
        self.assertEqual(self.breaches(core__proto__a_DOT_h=text, distributed__master__b_DOT_h=text,
                                       core__proto__README_DOT_md='`a.h`',
                                       distributed__master__README_DOT_md='`b.h`'), [])

    def test_grpc_headers_stay_in_the_grpc_folder(self):
        text = SPDX + '#include <grpcpp/grpcpp.h>\n'
        self.expect_one('gRPC header', distributed__master__a_DOT_cc=text)
        self.assertEqual(self.breaches(distributed__grpc__master_DOT_cc=text), [])

    def test_cuda_headers_stay_in_cuda_files(self):
        text = SPDX + '#include <cuda_runtime.h>\n'
        self.expect_one('CUDA header', ops__a_DOT_cc=text)
        self.assertEqual(self.breaches(ops__a_DOT_cu=text, runtime__cuda__a_DOT_cc=text), [])

    def test_files_are_reached_through_data(self):
        for text in ('std::ifstream in(path);', 'std::ofstream(path) << text;', '#include <fstream>',
                     'std::filesystem::remove(path);', 'std::FILE* f = std::fopen(path, "rb");'):
            text = SPDX + text + '\n'
            self.expect_one('data/files/file.h', train__a_DOT_cc=text)
            self.expect_one('data/files/file.h', tools__a_DOT_cc=text)
            self.assertEqual(self.breaches(data__files__a_DOT_cc=text, tests__a_DOT_cc=text), [])
        self.assertEqual(self.breaches(ops__a_DOT_cc=SPDX + '// As fopen does.\n'), [])

    def test_what_reads_files_itself_is_there(self):
        for path in check_layers.READS_FILES_ITSELF:
            self.assertTrue((ROOT / path).is_file(), path)

    def test_a_type_may_not_take_a_messages_name(self):
        self.expect_one('name of a message',
                        proto__graph_DOT_proto=SPDX + 'message GraphDef {\n}\n',
                        train__graph_DOT_h=SPDX + '#pragma once\nclass GraphDef {\n};\n')

    def test_time_comes_by_the_clock_alone(self):
        for text in ('auto now = std::chrono::steady_clock::now();', 'system_clock::now()',
                     'std::this_thread::sleep_for(pause);', 'cv.wait_until(lock, end);',
                     'future.wait_for(pause);'):
            self.expect_one('beside Clock', train__a_DOT_cc=f'{SPDX}{text}\n')
            self.expect_one('beside Clock', runtime__execute__a_DOT_cc=f'{SPDX}{text}\n')
            self.assertEqual(self.breaches(tests__a_DOT_cc=f'{SPDX}{text}\n',
                                           tools__a_DOT_cc=f'{SPDX}{text}\n',
                                           runtime__device__machine_clock_DOT_cc=SPDX + text), [])
        self.assertEqual(self.breaches(train__a_DOT_cc=SPDX + 'clock.SleepFor(pause);\n'), [])

    def test_only_one_type_is_called_clock(self):
        text = SPDX + '#pragma once\nclass Clock {\n};\n'
        self.expect_one('is called Clock', train__a_DOT_h=text)
        self.expect_one('is called Clock', tools__a_DOT_cc=SPDX + 'using Clock = Other;\n')
        self.assertEqual(self.breaches(core__base__clock_DOT_h=text,
                                       core__base__README_DOT_md='`clock.h`',
                                       train__b_DOT_h=SPDX + '#pragma once\nclass Clock;\n'), [])

    def test_a_long_file_is_found(self):
        self.expect_one('more than 500', core__base__a_DOT_cc=SPDX + '\n' * 500)

    def test_a_missing_licence_line_is_found(self):
        self.expect_one('SPDX', core__base__a_DOT_cc='int x;\n')

    def test_a_header_without_pragma_once_is_found(self):
        self.expect_one('pragma once', train__a_DOT_h=SPDX)

    def test_a_name_that_says_nothing_is_found(self):
        self.expect_one('does not say what it holds', core__base__string_util_DOT_cc=SPDX)
        self.assertEqual(self.breaches(core__base__utility_curve_DOT_cc=SPDX), [])

    def test_rooms_include_those_before_them_only(self):
        self.expect_one('core/tensor/ may not include core/graph/',
                        core__tensor__a_DOT_cc=SPDX + '#include "core/graph/graph.h"\n')
        self.expect_one('distributed/grpc/rpc/ may not include distributed/grpc/peer/',
                        distributed__grpc__rpc__a_DOT_cc=SPDX +
                        '#include "distributed/grpc/peer/peer_calls.h"\n')
        self.expect_one('distributed/grpc/peer/ may not include distributed/grpc/',
                        distributed__grpc__peer__a_DOT_cc=SPDX +
                        '#include "distributed/grpc/worker_service.h"\n')
        self.assertEqual(self.breaches(
            runtime__session__a_DOT_cc=SPDX + '#include "runtime/compile/compiler.h"\n',
            distributed__grpc__a_DOT_cc=SPDX + '#include "distributed/grpc/peer/peer_calls.h"\n'),
            [])

    def test_a_file_is_in_a_room(self):
        self.expect_one('the file is in none', core__a_DOT_cc=SPDX)

    def test_a_room_names_its_headers(self):
        self.expect_one('a.h is not in it', core__base__a_DOT_h=SPDX + '#pragma once\n')

    def test_a_room_has_few_files(self):
        files = {f'core__base__a{i}_DOT_cc': SPDX for i in range(31)}
        self.expect_one('31 files flat in a room', **files)

    def test_few_lines_ask_for_an_op_by_its_name(self):
        text = SPDX + 'if (node.op() == "Const") return;\n' * 11
        self.assertEqual(len(self.breaches(runtime__passes__a_DOT_cc=text)), 11)
        self.assertEqual(self.breaches(ops__a_DOT_cc=text), [])

    def test_unfinished_work_is_found(self):
        self.expect_one('has no place here', core__base__a_DOT_cc=SPDX + '// TO' 'DO: finish\n')

    def test_a_path_of_some_machine_is_found(self):
        self.expect_one('has no place here', README_DOT_md='see /ho' 'me/someone/notes\n')


if __name__ == '__main__':
    unittest.main()
