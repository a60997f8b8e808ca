// SPDX-License-Identifier: Apache-2.0
#include "train/feature_columns/vocabulary.h"

#include <algorithm>
#include <optional>

#include "core/base/hash_map.h"
#include "train/glm/text/number_text.h"

namespace tenon {
namespace {

constexpr int64_t kWholeLine = -2, kLineNumber = -1;

enum class VocabularyOp { kCast, kRange, kImport, kFromFile };

const flat_hash_map<std::string_view, VocabularyOp>& VocabularyOps() {
  static const auto* ops = new flat_hash_map<std::string_view, VocabularyOp>{
      {"Cast", VocabularyOp::kCast},
      {"Identity", VocabularyOp::kCast},
      {"Range", VocabularyOp::kRange},
      {"InitializeTable", VocabularyOp::kImport},
      {"InitializeTableV2", VocabularyOp::kImport},
      {"LookupTableImport", VocabularyOp::kImport},
      {"LookupTableImportV2", VocabularyOp::kImport},
      {"InitializeTableFromTextFile", VocabularyOp::kFromFile},
      {"InitializeTableFromTextFileV2", VocabularyOp::kFromFile},
  };
  return *ops;
}

std::optional<VocabularyOp> KindOfVocabularyOp(const Node& node) {
  const auto found = VocabularyOps().find(node.op());
  if (found == VocabularyOps().end()) return std::nullopt;
  return found->second;
}

/// The value of a constant, through casts.
std::optional<Tensor> ConstantAt(const Endpoint& at) {
  const Node* node = at.node;
  while (KindOfVocabularyOp(*node) == VocabularyOp::kCast) node = node->input(0).node;
  if (!node->is_constant()) return std::nullopt;
  auto value = node->attrs().Get<Tensor>("value");
  if (!value.ok()) return std::nullopt;
  return *std::move(value);
}

std::optional<std::vector<std::string>> Texts(const Tensor& value) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    switch (value.dtype()) {
      case DType::kString:
        texts.emplace_back(std::string_view(value.data<TString>()[i]));
        break;
      case DType::kInt32:
        texts.push_back(StrCat(value.data<int32_t>()[i]));
        break;
      case DType::kInt64:
        texts.push_back(StrCat(value.data<int64_t>()[i]));
        break;
      default:
        return std::nullopt;
    }
  }
  return texts;
}

std::optional<int64_t> IntegerAt(const Endpoint& at) {
  const auto value = ConstantAt(at);
  if (!value || value->num_elements() != 1) return std::nullopt;
  if (value->dtype() == DType::kInt32) return value->scalar<int32_t>();
  if (value->dtype() == DType::kInt64) return value->scalar<int64_t>();
  return std::nullopt;
}

/// Whether the values are 0, 1, 2 and so on, `count` of them.
bool CountsFromZero(Endpoint values, int64_t count) {
  while (KindOfVocabularyOp(*values.node) == VocabularyOp::kCast) values = values.node->input(0);
  if (KindOfVocabularyOp(*values.node) == VocabularyOp::kRange) {
    return IntegerAt(values.node->input(0)) == 0 && IntegerAt(values.node->input(1)) == count &&
           IntegerAt(values.node->input(2)) == 1;
  }
  const auto value = ConstantAt(values);
  const auto texts = value ? Texts(*value) : std::nullopt;
  if (!texts || static_cast<int64_t>(texts->size()) != count) return false;
  for (int64_t i = 0; i < count; ++i) {
    if ((*texts)[i] != StrCat(i)) return false;
  }
  return true;
}

StatusOr<Vocabulary> WordsOfGraph(const Node& import) {
  const auto keys = ConstantAt(import.input(1));
  auto words = keys ? Texts(*keys) : std::nullopt;
  if (!words) return Unimplemented("the words of '", import.name(), "' are no constants");
  if (!CountsFromZero(import.input(2), static_cast<int64_t>(words->size()))) {
    return Unimplemented("'", import.name(), "' does not number its words from 0 on");
  }
  Vocabulary vocabulary;
  vocabulary.words = *std::move(words);
  return vocabulary;
}

StatusOr<Vocabulary> WordsOfFile(const Node& initializer, const FindVocabulary& find) {
  const auto name = ConstantAt(initializer.input(1));
  const AttributeMap& attrs = initializer.attrs();
  if (!name || name->dtype() != DType::kString || name->num_elements() != 1 ||
      attrs.GetOr<int64_t>("key_index", 0) != kWholeLine ||
      attrs.GetOr<int64_t>("value_index", 0) != kLineNumber ||
      attrs.GetOr<int64_t>("offset", 0) != 0) {
    return Unimplemented("'", initializer.name(), "' is no vocabulary with a word a line");
  }
  TENON_ASSIGN_OR_RETURN(const VocabularyFile file,
                         find(std::string(std::string_view(name->scalar<TString>()))));
  Vocabulary vocabulary;
  vocabulary.file = file.path;
  const int64_t size = attrs.GetOr<int64_t>("vocab_size", -1);
  for (size_t begin = 0; begin < file.text.size();) {
    if (size >= 0 && static_cast<int64_t>(vocabulary.words.size()) == size) break;
    size_t end = std::min(file.text.find('\n', begin), file.text.size());
    std::string& word = vocabulary.words.emplace_back(file.text, begin, end - begin);
    std::erase(word, '\r');  // as TensorFlow reads lines
    begin = end + 1;
  }
  const auto found = static_cast<int64_t>(vocabulary.words.size());
  if (size >= 0 && found < size) {
    return FailedPrecondition("the vocabulary '", file.path, "' has ", CountText(found),
                              " lines, wanted ", CountText(size));
  }
  return vocabulary;
}

}  // namespace

StatusOr<Vocabulary> VocabularyOf(const Node& lookup, const FindVocabulary& find) {
  const Endpoint table = lookup.input(0);
  const Node* initializer = nullptr;
  for (const OutEdge& edge : table.node->out_edges()) {
    const auto kind = KindOfVocabularyOp(*edge.dst);
    if (edge.input != 0 || (kind != VocabularyOp::kImport && kind != VocabularyOp::kFromFile)) {
      continue;
    }
    if (initializer != nullptr) {
      return Unimplemented("the table '", table.node->name(), "' is filled more than once");
    }
    initializer = edge.dst;
  }
  if (initializer == nullptr) {
    return NotFound("nothing in the graph fills the table '", table.node->name(), "'");
  }
  TENON_ASSIGN_OR_RETURN(Vocabulary vocabulary,
                         KindOfVocabularyOp(*initializer) == VocabularyOp::kImport
                             ? WordsOfGraph(*initializer)
                             : WordsOfFile(*initializer, find));
  const auto default_row = IntegerAt(lookup.input(2));
  if (!default_row) return Unimplemented("what '", lookup.name(), "' gives else is no constant");
  vocabulary.default_row = *default_row;
  return vocabulary;
}

}  // namespace tenon
