// SPDX-License-Identifier: Apache-2.0
#include "train/feature_columns/row_numbers.h"

#include <cmath>
#include <string>
#include <utility>

#include "core/base/hash_map.h"
#include "train/feature_columns/vocabulary.h"
#include "train/glm/text/number_text.h"

namespace tenon {
namespace {

enum class Maker {
  kPass,        // the numbers of one input, or some of them
  kLookup,      // places in a vocabulary
  kChoice,      // one of two, by a condition
  kSum,         // of two
  kRemainder,   // of a division
  kParts,       // sorted by the part of a variable that has them
  kBoundaries,  // intervals
  kHash,        // buckets
  kCross,       // buckets of several features
  kFeature,     // values as they are in the data
};

struct MakerRule {
  Maker maker;
  int input = 0;   // of kPass, the one with the numbers
  int output = 0;  // the one that has them
};

/// The ops by name, since there is one table of them in this program. Whatever is not in it may
/// change row numbers.
const flat_hash_map<std::string_view, MakerRule>& MakerRules() {
  static const auto* rules = new flat_hash_map<std::string_view, MakerRule>{
      {"Identity", {Maker::kPass}},
      {"Cast", {Maker::kPass}},
      {"Reshape", {Maker::kPass}},
      {"ExpandDims", {Maker::kPass}},
      {"Squeeze", {Maker::kPass}},
      {"Unique", {Maker::kPass}},
      {"Gather", {Maker::kPass}},
      {"GatherV2", {Maker::kPass}},
      {"GatherNd", {Maker::kPass}},
      {"SparseToDense", {Maker::kPass, 2}},
      {"SparseFillEmptyRows", {Maker::kPass, 1, 1}},
      {"LookupTableFind", {Maker::kLookup}},
      {"LookupTableFindV2", {Maker::kLookup}},
      {"Select", {Maker::kChoice}},
      {"SelectV2", {Maker::kChoice}},
      {"Add", {Maker::kSum}},
      {"AddV2", {Maker::kSum}},
      {"FloorMod", {Maker::kRemainder}},
      {"DynamicPartition", {Maker::kParts}},
      {"Bucketize", {Maker::kBoundaries}},
      {"StringToHashBucket", {Maker::kHash}},
      {"StringToHashBucketFast", {Maker::kHash}},
      {"StringToHashBucketStrong", {Maker::kHash}},
      {"SparseCross", {Maker::kCross, 0, 1}},
      {"IteratorGetNext", {Maker::kFeature}},
      {"ParseExample", {Maker::kFeature}},
      {"ParseExampleV2", {Maker::kFeature}},
  };
  return *rules;
}

const MakerRule* RuleOf(const Endpoint& numbers) {
  const auto rule = MakerRules().find(numbers.node->op());
  if (rule == MakerRules().end()) return nullptr;
  // Other outputs are counts and places; those of features and parts are several of one kind.
  const bool any = rule->second.maker == Maker::kFeature || rule->second.maker == Maker::kParts;
  return any || numbers.index == rule->second.output ? &rule->second : nullptr;
}

/// Follows kPass.
Endpoint MakerOf(Endpoint numbers) {
  for (const MakerRule* rule = RuleOf(numbers); rule != nullptr && rule->maker == Maker::kPass;
       rule = RuleOf(numbers)) {
    numbers = numbers.node->input(rule->input);
  }
  return numbers;
}

std::optional<Maker> KindOf(const Endpoint& numbers) {
  const MakerRule* rule = RuleOf(numbers);
  if (rule == nullptr) return std::nullopt;
  return rule->maker;
}

void AddBuckets(int64_t buckets, WeightRows* named) {
  for (int64_t i = 0; i < buckets; ++i) {
    named->rows.push_back(
        {StrCat("bucket ", CountText(i), " of ", CountText(buckets)), WeightRowKind::kHashBucket});
  }
}

/// "< 6", "[6, 9)", ">= 21"; of several numbers with the place of the number.
void AddIntervals(const std::vector<float>& boundaries, int64_t numbers, WeightRows* named) {
  for (int64_t n = 0; n < numbers; ++n) {
    const std::string of = numbers == 1 ? "" : StrCat("element ", n, " ");
    for (size_t i = 0; i <= boundaries.size(); ++i) {
      std::string text = "all";
      if (!boundaries.empty()) {
        text = i == 0                   ? StrCat("< ", boundaries[0])
               : i == boundaries.size() ? StrCat(">= ", boundaries[i - 1])
                                        : StrCat("[", boundaries[i - 1], ", ", boundaries[i], ")");
      }
      named->rows.push_back({of + text, WeightRowKind::kInterval});
    }
  }
}

class RowNamer {
 public:
  RowNamer(int64_t count, const FindVocabulary& find) : count_(count), find_(find) {}

  /// An error says why not.
  Status Name(const Endpoint& numbers, WeightRows* named) {
    Endpoint at = MakerOf(numbers);
    if (KindOf(at) == Maker::kParts) {
      TENON_ASSIGN_OR_RETURN(at, NumbersBeforeParts(at));
      at = MakerOf(at);
    }
    const Node& node = *at.node;
    switch (KindOf(at).value_or(Maker::kPass)) {
      case Maker::kLookup: {
        TENON_ASSIGN_OR_RETURN(Vocabulary vocabulary, VocabularyOf(node, find_));
        AddWords(vocabulary, named);
        return OkStatus();
      }
      case Maker::kChoice:
        return NameLookupWithOthers(node, named);
      case Maker::kSum:
        if (const Endpoint first = MakerOf(node.input(0)); KindOf(first) == Maker::kBoundaries) {
          return NameIntervals(*first.node, named);
        }
        break;
      case Maker::kBoundaries:
        return NameIntervals(node, named);
      case Maker::kHash:
      case Maker::kCross:
        return NameBuckets(node, named);
      default:
        break;
    }
    if (IsFeature(at) && IsInteger(node.output_type(at.index))) {
      for (int64_t i = 0; i < count_; ++i) {
        named->rows.push_back({StrCat(i), WeightRowKind::kCategory});
      }
      return OkStatus();
    }
    return Unimplemented("the row numbers come from '", node.name(), "' (", node.op(), ")");
  }

 private:
  static bool IsFeature(const Endpoint& at) {
    return KindOf(at) == Maker::kFeature || at.node->is_placeholder();
  }

  static bool IsInteger(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

  static void AddWords(const Vocabulary& vocabulary, WeightRows* named) {
    for (const std::string& word : vocabulary.words) {
      named->rows.push_back({word, WeightRowKind::kCategory});
    }
    if (vocabulary.default_row >= 0 &&
        vocabulary.default_row < static_cast<int64_t>(named->rows.size())) {
      named->rows[vocabulary.default_row].level += " or out of vocabulary";
    }
    named->file = vocabulary.file;
  }

  /// Variables in parts have the rows 0 to n of the whole in the first part, and so on ("div"); the
  /// numbers within the part are remainders, chosen by whether parts of that place are one longer.
  static StatusOr<Endpoint> NumbersBeforeParts(const Endpoint& parts) {
    const Endpoint chosen = parts.node->input(0);
    if (KindOf(chosen) == Maker::kChoice) {
      const Endpoint remainder = MakerOf(chosen.node->input(1));
      if (KindOf(remainder) == Maker::kRemainder) return remainder.node->input(0);
    }
    return Unimplemented("the parts of the variable do not follow each other");
  }

  /// A lookup that gives the words of no vocabulary buckets behind it.
  Status NameLookupWithOthers(const Node& choice, WeightRows* named) {
    const Endpoint lookup = MakerOf(choice.input(1)), others = MakerOf(choice.input(2));
    if (KindOf(lookup) != Maker::kLookup || KindOf(others) != Maker::kSum) {
      return Unimplemented("the row numbers are chosen by '", choice.name(), "'");
    }
    const Endpoint hash = MakerOf(others.node->input(0));
    if (KindOf(hash) != Maker::kHash) {
      return Unimplemented("words of no vocabulary get rows from '", hash.node->name(), "'");
    }
    TENON_ASSIGN_OR_RETURN(Vocabulary vocabulary, VocabularyOf(*lookup.node, find_));
    vocabulary.default_row = -1;
    AddWords(vocabulary, named);
    TENON_ASSIGN_OR_RETURN(const int64_t buckets, hash.node->attrs().Get<int64_t>("num_buckets"));
    if (buckets < 0 || buckets > count_) return OkStatus();  // the number of rows will differ
    for (int64_t i = 0; i < buckets; ++i) {
      const std::string which = buckets == 1 ? "" : StrCat(" ", i, " of ", buckets);
      named->rows.push_back({"out of vocabulary" + which, WeightRowKind::kOutOfVocabulary});
    }
    return OkStatus();
  }

  Status NameIntervals(const Node& bucketize, WeightRows* named) {
    TENON_ASSIGN_OR_RETURN(const auto boundaries,
                           bucketize.attrs().Get<std::vector<float>>("boundaries"));
    const auto intervals = static_cast<int64_t>(boundaries.size()) + 1;
    AddIntervals(boundaries, std::max<int64_t>(1, count_ / intervals), named);
    // With a normalizer_fn the boundaries are in its units.
    const Endpoint number = MakerOf(bucketize.input(0));
    if (!IsFeature(number)) {
      for (WeightRow& row : named->rows)
        row.level += " of what '" + number.node->name() + "' gives";
    }
    return OkStatus();
  }

  Status NameBuckets(const Node& node, WeightRows* named) {
    TENON_ASSIGN_OR_RETURN(const int64_t buckets, node.attrs().Get<int64_t>("num_buckets"));
    if (!node.attrs().GetOr<bool>("hashed_output", true)) {
      return Unimplemented("'", node.name(), "' makes texts");
    }
    // Before that many names are made.
    if (buckets != count_) {
      return FailedPrecondition("the graph has ", CountText(buckets), " buckets");
    }
    AddBuckets(buckets, named);
    return OkStatus();
  }

  const int64_t count_;
  const FindVocabulary& find_;
};

enum class MatrixStep { kPass, kOneHot };

const flat_hash_map<std::string_view, MatrixStep>& MatrixSteps() {
  static const auto* steps = new flat_hash_map<std::string_view, MatrixStep>{
      {"Identity", MatrixStep::kPass},
      {"Reshape", MatrixStep::kPass},
      {"Sum", MatrixStep::kPass},
      {"OneHot", MatrixStep::kOneHot},
  };
  return *steps;
}

}  // namespace

ReaderKind ReaderKindOf(const Node& node, int input) {
  struct Rule {
    ReaderKind kind;
    int input;
  };
  static const auto* rules = new flat_hash_map<std::string_view, Rule>{
      {"Identity", {ReaderKind::kHandsOn, 0}},  {"ReadVariableOp", {ReaderKind::kHandsOn, 0}},
      {"ConcatV2", {ReaderKind::kHandsOn, -1}}, {"Gather", {ReaderKind::kGathers, 0}},
      {"GatherV2", {ReaderKind::kGathers, 0}},  {"ResourceGather", {ReaderKind::kGathers, 0}},
      {"MatMul", {ReaderKind::kMultiplies, 1}},
  };
  const auto rule = rules->find(node.op());
  if (rule == rules->end()) return ReaderKind::kOther;
  if (rule->second.input >= 0 && input != rule->second.input) return ReaderKind::kOther;
  // Gradients multiply with what is transposed.
  const AttributeMap& attrs = node.attrs();
  if (attrs.GetOr<bool>("transpose_a", false) || attrs.GetOr<bool>("transpose_b", false)) {
    return ReaderKind::kOther;
  }
  return rule->second.kind;
}

std::optional<Endpoint> RowNumbersOfIndicator(const Endpoint& matrix) {
  for (Endpoint at = matrix; at.index == 0;) {
    const auto step = MatrixSteps().find(at.node->op());
    if (step == MatrixSteps().end()) break;
    at = at.node->input(0);
    if (step->second == MatrixStep::kOneHot) return at;
  }
  return std::nullopt;
}

WeightRows NameRowNumbers(const Endpoint& numbers, int64_t count, const FindVocabulary& find) {
  WeightRows named;
  const Status status = RowNamer(count, find).Name(numbers, &named);
  if (!status.ok()) return UnnamedRows(count, std::string(Message(status)));
  if (static_cast<int64_t>(named.rows.size()) != count) {
    return UnnamedRows(count,
                       StrCat("the graph has ", CountText(static_cast<int64_t>(named.rows.size())),
                              " names for ", CountText(count), " rows"));
  }
  return named;
}

}  // namespace tenon
