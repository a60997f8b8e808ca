// SPDX-License-Identifier: Apache-2.0
#include "tools/help.h"

#include <absl/strings/str_split.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/base/strings.h"
#include "tools/flag_checks.h"

namespace tenon::tools {
namespace {

constexpr size_t kHelpColumn = 30, kHelpWidth = 100;

/// "INT:INT in [0 - 65535]" or "TEXT:{a,b}" taken apart.
struct TypeText {
  std::string kind;
  std::vector<std::string> limits;
};

std::string LimitText(const std::string& description) {
  using flag_checks_internal::TextBetween;
  if (const auto set = TextBetween(description, {"{", "}"})) {
    std::string choices = (*set)[0];
    for (size_t i = 0; (i = choices.find(',', i)) != std::string::npos; i += 2) {
      choices.insert(i + 1, " ");
    }
    return choices;
  }
  if (const auto range = TextBetween(description, {"", " in [", " - ", "]"})) {
    return StrCat((*range)[1], " to ", (*range)[2]);
  }
  return description;
}

TypeText SplitTypeName(const CLI::Option& option) {
  TypeText text;
  std::string name = option.get_type_name();
  const size_t end = name.find(':');
  text.kind = name.substr(0, end);
  if (text.kind == "FLOAT") text.kind = "NUMBER";
  if (text.kind == "UINT") text.kind = "INT";
  while (name.find(':') != std::string::npos) {
    name.erase(0, name.find(':') + 1);
    text.limits.push_back(LimitText(name.substr(0, name.find(':'))));
  }
  return text;
}

/// The flag's names, but those that differ in '-' and '_' only once.
std::vector<std::string> HelpNames(const CLI::Option& option) {
  if (option.get_positional()) return {option.get_name(true, false)};
  std::vector<std::string> names, seen;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) {
    std::string plain = name;
    std::replace(plain.begin(), plain.end(), '-', '_');
    if (std::find(seen.begin(), seen.end(), plain) != seen.end()) continue;
    seen.push_back(plain);
    names.push_back("--" + name);
  }
  return names;
}

/// The values of "TEXT:{a,b}".
std::vector<std::string> Choices(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  const auto set = flag_checks_internal::TextBetween(
      name.substr(std::min(name.find('{'), name.size())), {"{", "}"});
  if (!set) return {};
  return absl::StrSplit((*set)[0], ',');
}

/// `text` from column `begin` on, broken between words before kHelpWidth.
std::string Wrapped(const std::string& text, size_t begin = kHelpColumn) {
  std::string out;
  size_t column = begin, at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (column > begin && column + 1 + word.size() > kHelpWidth) {
      out += "\n" + std::string(begin, ' ');
      column = begin;
    } else if (column > begin) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    at = end + 1;
  }
  return out;
}

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    const OptionHelp help = DescribeOption(*option);
    std::string left = "  " + Join(help.names, ",");
    if (!help.kind.empty() && !is_positional) StrAppend(&left, " ", help.kind);
    if (help.is_repeated) left += " ...";
    if (left.size() + 2 > kHelpColumn) {
      left += "\n" + std::string(kHelpColumn, ' ');
    } else {
      left.resize(kHelpColumn, ' ');
    }
    return left + Wrapped(help.text) + "\n";
  }

  std::string make_description(const CLI::App* app) const override {
    return Wrapped(app->get_description(), 0) + "\n";
  }

  std::string make_subcommand(const CLI::App* sub) const override {
    std::string left = "  " + sub->get_display_name(true);
    left.resize(std::max(kHelpColumn, left.size() + 1), ' ');
    return left + Wrapped(sub->get_description()) + "\n";
  }
};

}  // namespace

OptionHelp DescribeOption(const CLI::Option& option) {
  OptionHelp help;
  help.names = HelpNames(option);
  const bool takes_value = option.get_items_expected_max() > 0;
  const TypeText type = SplitTypeName(option);
  if (takes_value) {
    help.kind = type.kind;
    help.choices = Choices(option);
  }
  help.is_repeated = option.get_expected_max() >= CLI::detail::expected_max_vector_size;
  std::vector<std::string> notes;
  if (takes_value) notes = type.limits;
  for (const CLI::Option* other : option.get_needs()) notes.push_back("needs " + other->get_name());
  for (const CLI::Option* other : option.get_excludes()) {
    notes.push_back("not with " + other->get_name());
  }
  if (option.get_required() && !option.get_positional()) notes.emplace_back("must be given");
  if (takes_value && !option.get_default_str().empty()) {
    notes.push_back("default: " + option.get_default_str());
  }
  help.text = option.get_description();
  if (!notes.empty()) StrAppend(&help.text, help.text.empty() ? "(" : " (", Join(notes, "; "), ")");
  return help;
}

std::vector<const CLI::App*> Subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

void SetHelpFormat(CLI::App* app) { app->formatter(std::make_shared<HelpFormatter>()); }

void ShowDefaults(CLI::App* app) {
  for (CLI::Option* option : app->get_options([](CLI::Option*) { return true; })) {
    const bool says_it = option->get_description().find("default: ") != std::string::npos;
    if (!says_it && option->get_default_str().empty()) option->capture_default_str();
    const std::string found = option->get_default_str();
    if (says_it || found == "[]" || found == "{}") option->default_str("");
    if (!says_it && found == "-1") option->default_str("none");
  }
  for (CLI::App* sub : app->get_subcommands([](CLI::App*) { return true; })) ShowDefaults(sub);
}

}  // namespace tenon::tools
