# SPDX-License-Identifier: Apache-2.0
"""tools/check_sizes.py finds each kind of breach, and none in this tree."""
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools'))
sys.dont_write_bytecode = True
import check_sizes  # noqa: E402


def found(line, path='ops/a.cc'):
    return [what for _, what in check_sizes.breaches(pathlib.PurePath(path), [line])]


class CheckSizesTest(unittest.TestCase):

    def test_this_tree_is_clean(self):
        result = subprocess.run([sys.executable, str(ROOT / 'tools' / 'check_sizes.py'), str(ROOT)],
                                capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (0, ''), result.stderr)

    def test_a_tensor_that_ends_the_process_is_found(self):
        for line in ('Tensor out(DType::kFloat, shape);', 'Tensor t(dtype, x.shape());',
                     'return Tensor::Zeros(dtype, shape);'):
            self.assertEqual(len(found(line)), 1, line)
        self.assertEqual(found('Tensor t(DType::kFloat, Shape());'), [])
        self.assertEqual(found('Tensor out(DType::kFloat, shape, buffer);  // size: of a buffer'), [])

    def test_a_vector_of_any_size_is_found(self):
        self.assertEqual(len(found('std::vector<int64_t> counts(num_segments, 0);')), 1)
        self.assertEqual(len(found('std::vector<bool> seen(n);', 'data/a.cc')), 1)
        for line in ('std::vector<bool> drop(dims.size(), true);',
                     'std::vector<int64_t> at(x.rank(), 0);',
                     'CountedVector<int64_t> counts(num_segments, 0);'):
            self.assertEqual(found(line), [], line)

    def test_a_length_that_is_read_by_hand_is_found(self):
        self.assertEqual(len(found('if (!in.ReadVarint32(&size)) return false;',
                                   'distributed/grpc/x.cc')), 1)
        self.assertEqual(len(found('in.PushLimit(size);', 'distributed/grpc/x.cc')), 1)

    def test_memory_that_nobody_counts_is_found(self):
        self.assertEqual(len(found('char* p = static_cast<char*>(malloc(n));')), 1)
        self.assertEqual(len(found('auto p = new float[n];')), 1)

    def test_a_narrowed_number_of_elements_is_found(self):
        self.assertEqual(len(found('const int n = static_cast<int>(t.num_elements());')), 1)
        self.assertEqual(found('const int64_t n = t.num_elements();'), [])


if __name__ == '__main__':
    unittest.main()
