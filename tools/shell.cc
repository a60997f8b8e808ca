// SPDX-License-Identifier: Apache-2.0
//
// `tenon completion` and `tenon manual`: what the command's own flags give a shell and `man`, so
// that neither can say anything else than the command.
#include <absl/strings/str_replace.h>

#include <cstdio>
#include <functional>

#include "core/base/strings.h"
#include "tools/commands.h"
#include "tools/help.h"

namespace tenon::tools {
namespace {

/// Calls `visit` with each command below `app` and its words, "tenon train mnist", outer ones
/// first.
void ForEachCommand(const CLI::App& app, const std::string& path,
                    const std::function<void(const CLI::App&, const std::string&)>& visit) {
  visit(app, path);
  for (const CLI::App* sub : Subcommands(app)) {
    ForEachCommand(*sub, StrCat(path, " ", sub->get_name()), visit);
  }
}

std::vector<const CLI::Option*> OptionsOf(const CLI::App& app) {
  return app.get_options([](const CLI::Option*) { return true; });
}

// The script is for Bash's programmable completion: COMP_WORDS are the words of the line,
// COMP_CWORD is the one that is being written. Where there is nothing to offer, it offers files.

constexpr char kCompletionBegin[] =
    R"(# Completion of the command tenon: source <(tenon completion), or a file in
# /usr/share/bash-completion/completions. zsh: autoload -U bashcompinit; bashcompinit; the same.
_tenon() {
  local path=tenon word words='' values=''
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in
)";
constexpr char kCompletionFlags[] = R"(        path="$path $word" ;;
    esac
  done
  case "$path ${COMP_WORDS[COMP_CWORD-1]}" in
)";
constexpr char kCompletionWords[] = R"(  esac
  case $path in
)";
constexpr char kCompletionEnd[] = R"(  esac
  COMPREPLY=()
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(
    compgen -W "${values:-$words}" -- "${COMP_WORDS[COMP_CWORD]}")
}
complete -o default -F _tenon tenon
)";

std::string CompletionScript(const CLI::App& app) {
  std::vector<std::string> paths;
  std::string flags, words;
  ForEachCommand(app, app.get_name(), [&](const CLI::App& command, const std::string& path) {
    std::vector<std::string> offered;
    for (const CLI::App* sub : Subcommands(command)) offered.push_back(sub->get_name());
    if (&command != &app) paths.push_back(StrCat("'", path, "'"));
    for (const CLI::Option* option : OptionsOf(command)) {
      const OptionHelp help = DescribeOption(*option);
      for (const std::string& name : help.names) {
        if (name.starts_with("--")) offered.push_back(name);
        if (help.choices.empty() || !name.starts_with('-')) continue;
        StrAppend(&flags, "    '", path, " ", name, "') values='", Join(help.choices, " "),
                  "' ;;\n");
      }
    }
    StrAppend(&words, "    '", path, "') words='", Join(offered, " "), "' ;;\n");
  });
  return StrCat(kCompletionBegin, "      ", Join(paths, " |\\\n      "), ")\n", kCompletionFlags,
                flags, kCompletionWords, words, kCompletionEnd);
}

/// Text as roff's man macros take it: a line that begins with a dot or quote would be a request.
std::string Roff(const std::string& text) {
  std::string out = absl::StrReplaceAll(
      text, {{"\\", "\\e"}, {"-", "\\-"}, {"\n.", "\n\\&."}, {"\n'", "\n\\&'"}});
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
}

std::string RoffOption(const CLI::Option& option) {
  const OptionHelp help = DescribeOption(option);
  std::vector<std::string> names;
  for (const std::string& name : help.names) names.push_back(StrCat("\\fB", Roff(name), "\\fR"));
  return StrCat(".TP\n", Join(names, ", "), help.kind.empty() ? "" : " \\fI" + help.kind + "\\fR",
                help.is_repeated ? " ..." : "", "\n", Roff(help.text), "\n");
}

std::string ManualPage(const CLI::App& app) {
  std::string page =
      StrCat(".TH TENON 1 \"\" \"", app.version(), "\" \"User Commands\"\n.SH NAME\ntenon \\- ",
             "runs and trains dataflow graphs, here and on clusters\n.SH SYNOPSIS\n.B tenon\n",
             ".I SUBCOMMAND\n[\\fIFLAGS\\fR]\n.SH DESCRIPTION\n", Roff(app.get_description()), "\n",
             Roff(app.get_footer()), "\n.SH SUBCOMMANDS\n");
  ForEachCommand(app, app.get_name(), [&](const CLI::App& command, const std::string& path) {
    if (&command == &app) return;
    StrAppend(&page, ".SS ", Roff(path), "\n", Roff(command.get_description()), "\n");
    for (const CLI::Option* option : OptionsOf(command)) {
      if (option != command.get_help_ptr()) page += RoffOption(*option);
    }
  });
  return StrCat(page, ".SH SEE ALSO\nThe pages of the documentation, of which command.md is about ",
                "this command, are installed beside README.md in share/doc.\n");
}

void AddPrinter(CLI::App& app, const char* name, const char* description,
                std::string (*print)(const CLI::App&), Command* chosen) {
  CLI::App* const command = app.add_subcommand(name, description);
  command->callback([=, &app] {
    *chosen = [=, &app] {
      const std::string text = print(app);
      std::fwrite(text.data(), 1, text.size(), stdout);
      return kDone;
    };
  });
}

}  // namespace

void AddShellCommands(CLI::App& app, Command* chosen) {
  AddPrinter(app, "completion", "Print the script that completes flags in bash and zsh",
             CompletionScript, chosen);
  AddPrinter(app, "manual", "Print the manual page: tenon manual | man -l -", ManualPage, chosen);
}

}  // namespace tenon::tools
