# SPDX-License-Identifier: Apache-2.0
"""docs/training_reference.md is what tools/training_reference.py makes of the headers, and it has
everything that they declare for users, with what it does."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools'))
sys.dont_write_bytecode = True
import training_reference  # noqa: E402

HEADER = '''\
// Not of a declaration.

namespace tenon {

struct ScalingOptions {
  /// How much.
  double gain = 1, other{2};  // and so on
  enum class Mode { kA, kB } mode = Mode::kA;
  Initializer initializer = {};
  std::source_location location = std::source_location::current();
};
/// Scales by a gain, say that of He et al. 2015 (tf.layers.Scaling; Somebody 2001). More of it.
/// Variables: <name>/gain [units], of the dtype of x.
///
///   Output y = Scaling(3)(x);
class Scaling : public Layer {
 public:
  explicit Scaling(int64_t units, const ScalingOptions& options = {});
  Output operator()(const Input& x, const Input& training = false) const;
};

/// The larger (tf.first, tf.second):
///
///   y = max(a, b)
Output First(const std::vector<std::pair<int, int>>& a, const OpOptions& options = {.name = "f"});
Output Second(const Output& a, int b = 3,
              const std::source_location& at = std::source_location::current());

}  // namespace tenon
'''


class TrainingReferenceTest(unittest.TestCase):

    def test_the_page_is_current(self):
        written = (ROOT / 'docs' / 'training_reference.md').read_text(encoding='utf-8')
        self.assertEqual(written, training_reference.page(),
                         'tools/training_reference.py > docs/training_reference.md')

    def test_everything_says_what_it_does(self):
        lines = re.findall(r'^\| `(\w+)[^|]*\| (.*?) \|', training_reference.page(), re.M)
        self.assertGreater(len(lines), 120)
        self.assertEqual([name for name, what in lines if not what], [])

    def test_what_programs_use_is_there(self):
        names = set(re.findall(r'^\| `(\w+)', training_reference.page(), re.M))
        for name in ('Dense', 'BatchNormalization', 'DynamicRnn', 'ResidualWrapper', 'Auc', 'Ftrl',
                     'RecallAtK', 'HuberLoss', 'CosineDecay', 'ClipByValue', 'StopAtStep'):
            self.assertIn(name, names)

    def test_lines_are_made_of_declarations(self):
        read, training_reference.read = training_reference.read, lambda path: HEADER
        self.addCleanup(setattr, training_reference, 'read', read)
        options = {'ScalingOptions': training_reference.fields(
            re.search(r'struct \w+ \{(.*?)\n\};', re.sub('//.*', '', HEADER), re.S).group(1))}
        self.assertEqual(list(training_reference.rows(['a.h'], '', options)), [
            ['`Scaling(units, {gain = 1, other = 2, mode = Mode::kA, initializer})'
             '(x, training = false)`',
             'Scales by a gain, say that of He et al. 2015', '`tf.layers.Scaling`',
             r'\<name>/gain \[units], of the dtype of x'],
            ['`First(a, {name = "f"})`', 'The larger: `y = max(a, b)`', '`tf.first`', ''],
            ['`Second(a, b = 3)`', 'The larger: `y = max(a, b)`', '`tf.second`', '']])


if __name__ == '__main__':
    unittest.main()
