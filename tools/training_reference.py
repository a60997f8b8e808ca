#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/training_reference.md: what train/'s headers declare for users, a line each, with the
first sentence of its documentation, what TensorFlow calls it, and its variables.

Of the documentation in a header, the first brackets that have names of TensorFlow are taken for what
it is called there, in the order of the declarations that one comment is about; sentences that begin
with "Variables:" or "Slots:", and those that have "<name>/", for its variables."""
import argparse
import glob
import os
import re
import sys

# The subjects: what names in brackets without "tf." begin with in TensorFlow, and the headers.
SUBJECTS = [
    ("Layers", "", ["layers/dense.h", "layers/convolution.h", "layers/pooling.h",
                    "layers/normalization.h", "layers/dropout.h", "layers/embedding.h",
                    "layers/attention.h"]),
    ("Recurrent networks", "", ["layers/rnn_cell.h", "layers/rnn.h"]),
    ("Initializers and regularizers", "", ["layers/initializers.h", "layers/regularizers.h"]),
    ("Losses", "tf.losses.", ["losses.h"]),
    ("Metrics", "tf.metrics.", ["metric.h", "metrics.h"]),
    ("Optimizers", "", ["optimizers/gradient_descent.h", "optimizers/adagrad.h",
                        "optimizers/adam.h", "optimizers/rmsprop.h", "optimizers/ftrl.h",
                        "optimizers/gradient_accumulation.h", "sync/sync_options.h", "sync/sync_replicas.h",
                        "allreduce/distributed_optimizer.h", "allreduce/ranks.h",
                        "allreduce/rank_hooks.h", "allreduce/run_rank.h",
                        "allreduce/rank_values.h", "allreduce/sharded_tables.h"]),
    ("Schedules", "", ["optimizers/learning_rate_schedules.h"]),
    ("Gradients and weights", "", ["optimizers/clipping.h", "optimizers/moving_averages.h"]),
    ("Hooks", "", ["sessions/hooks.h"]),
]
# What these, and classes of one's own, are made of. A header of these folders is here or above.
OTHERS = ["layers/activation.h", "layers/layer.h", "layers/salted_seed.h", "layers/spatial_sizes.h",
          "layers/training_flag.h", "optimizers/optimizer.h", "sessions/session_hook.h",
          "sessions/session_starter.h", "sessions/signal_watch.h", "sessions/stop_signal.h",
          "sessions/monitored_training_session.h"]
FOLDERS = ["layers", "optimizers", "sessions"]
INTRODUCTION = """\
# Reference of training in C++

Made by `tools/training_reference.py` from the headers of `train/`, where the whole of each stands: shapes, dtypes, mistakes.
[training.md](training.md) is the guide. What stands in `{}` are options, by name, and with their defaults; second brackets are
those of a call of the layer that the first ones make. `tf.` is `tf.compat.v1`. Variables are in the scope of the layer or
metric, where no other is said; those of metrics are local, and those of optimizers are slots beside each variable `w`.
"""
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(path):
    with open(os.path.join(ROOT, "train", path), encoding="utf-8") as file:
        return file.read()


def declarations(text):
    """(documentation, code) of what stands in a header's namespace; declarations that follow each
    other without a line between share the same list."""
    doc, code, depth, fresh = [], "", 0, True
    for line in text.splitlines():
        if not code and line.startswith("///"):
            doc = [] if fresh else doc
            fresh = False
            doc.append(line[4:])
            continue
        if not code and (not line.strip() or line.startswith(("//", "#", "namespace", "}"))):
            doc, fresh = [], True
            continue
        bare = re.sub(r"//.*", "", line)
        code += bare + "\n"
        depth += sum(c in "{([" for c in bare) - sum(c in "})]" for c in bare)
        if depth == 0 and bare.rstrip().endswith((";", "}")):
            yield doc, code.strip()
            code, fresh = "", True


def split_top(text, separator=","):
    """The parts of a list, of which none is cut within brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{<") - (c in ")]}>")
        if c == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [" ".join(part.split()) for part in parts if part.strip()]


def in_brackets(text, begin):
    """What the bracket at `begin` holds."""
    depth = 0
    for i in range(begin, len(text)):
        depth += (text[i] in "({") - (text[i] in ")}")
        if depth == 0:
            return text[begin + 1:i]
    raise ValueError(text)


def with_default(name, value):
    value = value.replace("std::chrono::", "")
    return f"{name} = {value}" if value not in ("", "{}") else name


def fields(body):
    """The members of a struct of options."""
    body = re.sub(r"enum class (\w+) \{.*?\}", r"\1", body, flags=re.S)
    found = []
    for member in split_top(body, ";"):
        for part in split_top(member):
            declared, value = re.fullmatch(r"([^={]*)(?:=\s*(.*)|\{.*\})?", part).groups()
            name = re.search(r"\w+\s*$", declared).group().strip()
            value = value or part[len(declared):].strip("{}")
            found.append(with_default(name, value))
    return [field for field in found if not field.startswith("location")]


def arguments(text, options):
    """The arguments of a function as users give them."""
    shown = []
    for argument in split_top(text):
        declared, _, value = argument.partition(" = ")
        kind, name = re.fullmatch(r"(.*[\s&*])(\w+)", declared).groups()
        kind = re.sub(r"\bconst\b|[&*\s]|std::", "", kind)
        if kind in options:
            shown.append("{" + ", ".join(options[kind]) + "}")
        elif kind == "OpOptions":
            shown.append("{name" + re.sub(r"^\{\.name|\}$|^\{\}$", "", value) + "}")
        elif kind != "source_location":
            shown.append(with_default(name, value))
    return "(" + ", ".join(shown) + ")"


def signature(code, options):
    """(name, arguments) of a function, or of a class that programs make; else None."""
    made = re.match(r"class (\w+)", code)
    if made:
        name = made.group(1)
        public = code.partition("public:")[2].partition("protected:")[0]
        held = [in_brackets(public, match.end() - 1)
                for match in re.finditer(rf"(?<![~\w]){name}\(", public)]
        held = [text for text in held if text and not text.startswith(f"const {name}&")]
        call = re.search(r"operator\(\)\(", public)
        called = arguments(in_brackets(public, call.end() - 1), options) if call else ""
        return (name, arguments(held[0], options) + called) if held else None
    match = re.search(r"[\s*&](\w+)\(", code)
    if not match or code.startswith(("struct", "enum", "using")):
        return None
    return match.group(1), arguments(in_brackets(code, match.end() - 1), options)


def prose(lines):
    """The text, without examples, but with formulas that follow a colon."""
    text, formulas = "", []
    for line in lines + ["."]:
        if line.startswith("  "):
            formulas.append(line.strip())
        elif line:
            if formulas and text.endswith(":"):
                text += f" `{'; '.join(formulas)}`."
            formulas = []
            text += " " * bool(text) + line
    return text[:-2]


def sentences(text):
    parts = re.split(r"(?<!et al)\. (?=[A-Z`])", text)
    return [part[:-1] if part.endswith(".") and not part.endswith("...") else part for part in parts]


def names_in(text, prefix):
    """TensorFlow's names, and the text without the brackets that say them."""
    found = re.search(r" \(([^()]*\btf\.[^()]*)\)", text)
    if found is None and prefix:
        found = re.search(r" \(([a-z0-9_]+(?:, [a-z0-9_]+)*)\)", text)
    if found is None:
        return [], text
    names = re.findall(r"tf\.[\w.]*\w", found.group(1))
    names = names or [prefix + name for name in found.group(1).split(", ")]
    return names, text[:found.start()] + text[found.end():]


def variables_in(told):
    found = []
    for sentence in told:
        named = re.match(r"(?:Variables?|Slots?)(?: as well)?(?:, [^:]*)?: (.*)", sentence)
        if named or "<name>/" in sentence:
            found.append(named.group(1) if named else sentence)
    return "; ".join(found)


def cell(text):
    """A column's text, in which Markdown takes nothing for its own."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*<_\[])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts).replace("|", "\\|")


def rows(paths, prefix, options):
    """What stands in the columns for each declaration."""
    found, groups = {}, {}
    for path in paths:
        for doc, code in declarations(read(path)):
            signed = signature(code, options)
            if signed and signed[0] not in found:
                group = groups.setdefault(id(doc), []) if doc else []
                found[signed[0]] = (*signed, doc, group)
                group.append(signed[0])
    for name, shown, doc, group in found.values():
        names, text = names_in(prose(doc), prefix)
        own = [names[group.index(name)]] if len(group) == len(names) else names
        first, *more = sentences(text)
        # Variables of convolutions stand in the sentence that says what they do.
        first, within = re.fullmatch(r"(.*?)(?:; (\w+/\w*kernel.*))?", first).groups()
        variables = "; ".join(filter(None, [within, variables_in(more)]))
        yield [f"`{name}{shown}`", cell(first), ", ".join(f"`{n}`" for n in own), cell(variables)]


def page():
    listed = [path for _, _, paths in SUBJECTS for path in paths]
    there = {f"{folder}/{os.path.basename(path)}" for folder in FOLDERS
             for path in glob.glob(os.path.join(ROOT, "train", folder, "*.h"))}
    missing = sorted(there - set(listed) - set(OTHERS))
    if missing:
        sys.exit(f"{sys.argv[0]}: of which subject are {', '.join(missing)}?")
    options = {}
    for path in listed:
        for _, code in declarations(read(path)):
            struct = re.match(r"struct (\w+Options) \{(.*)\};$", code, re.S)
            if struct:
                options[struct.group(1)] = fields(struct.group(2))
    lines = INTRODUCTION.splitlines()
    for title, prefix, paths in SUBJECTS:
        table = list(rows(paths, prefix, options))
        columns = [i for i in range(4) if i < 3 or any(row[i] for row in table)]
        heads = ["", "", "TensorFlow", "variables"]
        lines += ["", f"## {title}", ""]
        for row in [heads, ["---"] * 4] + table:
            lines.append("| " + " | ".join(row[i] for i in columns) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__,
                            formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    sys.stdout.write(page())
