// SPDX-License-Identifier: Apache-2.0
#include "train/feature_columns/weight_rows.h"

#include <set>

#include "train/feature_columns/row_numbers.h"

namespace tenon {
namespace {

/// Where weights are used: which rows, and whether a dense matrix is multiplied with all.
struct UseOfWeights {
  Endpoint ids = {};
  Endpoint dense = {};
};

bool IsPartOf(const std::string& node, const std::string& variable) {
  constexpr std::string_view kPart = "/part_";
  if (!node.starts_with(variable)) return false;
  const std::string_view rest = std::string_view(node).substr(variable.size());
  if (rest.empty()) return true;
  return rest.starts_with(kPart) && rest.size() > kPart.size() &&
         rest.find_first_not_of("0123456789", kPart.size()) == std::string_view::npos;
}

/// The nodes that read the value of a variable, through others that hand it on.
void CollectUses(const Node& node, int slot, std::vector<UseOfWeights>* uses,
                 std::set<const Node*>* seen) {
  for (const OutEdge& edge : node.out_edges()) {
    if (edge.output != slot) continue;
    switch (ReaderKindOf(*edge.dst, edge.input)) {
      case ReaderKind::kHandsOn:
        if (seen->insert(edge.dst).second) CollectUses(*edge.dst, 0, uses, seen);
        break;
      case ReaderKind::kGathers:
        uses->push_back({.ids = edge.dst->input(1)});
        break;
      case ReaderKind::kMultiplies:
        uses->push_back({.dense = edge.dst->input(0)});
        break;
      case ReaderKind::kOther:
        break;
    }
  }
}

bool SameNames(const WeightRows& a, const WeightRows& b) {
  if (a.rows.size() != b.rows.size()) return false;
  for (size_t i = 0; i < a.rows.size(); ++i) {
    if (a.rows[i].level != b.rows[i].level || a.rows[i].kind != b.rows[i].kind) return false;
  }
  return true;
}

WeightRows NumberRows(int64_t count) {
  WeightRows named;
  for (int64_t i = 0; i < count; ++i) {
    named.rows.push_back({count == 1 ? "" : StrCat("element ", i), WeightRowKind::kNumber});
  }
  return named;
}

}  // namespace

WeightRows NameWeightRows(const Graph& graph, const std::string& variable, int64_t count,
                          const FindVocabulary& find) {
  std::vector<UseOfWeights> uses;
  std::set<const Node*> seen;
  bool found = false;
  for (const Node* node : graph.nodes()) {
    if (!node->is_variable() || !IsPartOf(node->name(), variable)) continue;
    found = true;
    CollectUses(*node, 0, &uses, &seen);
  }
  if (!found) return UnnamedRows(count, "the graph has no such variable");
  if (uses.empty()) return UnnamedRows(count, "the graph does not use it as feature columns do");
  WeightRows named;
  for (size_t i = 0; i < uses.size(); ++i) {
    const UseOfWeights& use = uses[i];
    WeightRows here;
    if (use.ids.node != nullptr) {
      here = NameRowNumbers(use.ids, count, find);
    } else if (const auto ids = RowNumbersOfIndicator(use.dense)) {
      here = NameRowNumbers(*ids, count, find);
    } else {
      here = NumberRows(count);
    }
    if (i > 0 && !SameNames(here, named)) {
      return UnnamedRows(count, "the graph uses it in several ways");
    }
    named = std::move(here);
    if (!named.why_unnamed.empty()) break;
  }
  return named;
}

}  // namespace tenon
