#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `tenon train linear` says of inputs that are wrong: all of it, for the table of docs/linear_models.md has these messages.

    linear_bad_inputs_test.py            runs the cases
    linear_bad_inputs_test.py --table    prints the table
"""
import gzip
import os
import subprocess
import sys
import tempfile

from tenon_process import SOURCE, TENON, in_a_folder, main

ROWS = "".join(f"{i % 2},{i * 7 % 11},{'abc'[i % 3]},{i % 4}\n" for i in range(3000))
GOOD = "y,x,f,n\n" + ROWS
SHORT = "y,x,f\n1,2,a\n0,3,b\n1,4,a\n"
BINOMIAL, POISSON = ("--family", "binomial"), ("--family", "poisson")
REJECTED = "1 record is not as the others, wanted at most 0: --max_rejects leaves out more"


def with_line(number, line):
    """GOOD with another line in a place."""
    lines = GOOD.splitlines()
    lines[number - 1] = line
    return "\n".join(lines) + "\n"


# Each case: the mistake, the files, the arguments, the exit code (1 or 2), and the message without its kind of error.
CASES = [
    ("no such column", {"t.csv": GOOD}, ("y ~ speed",), 1,
     "formula, place 5: there is no column 'speed'; there are y, x, f, n"),
    ("a name that is nearly right", {"t.csv": GOOD}, ("y ~ x + F",), 1,
     "formula, place 9: there is no column 'F'; did you mean 'f'?"),
    ("another separator than a comma", {"t.csv": GOOD.replace(",", ";")}, ("y ~ x",), 1,
     "formula, place 1: there is no column 'y'; the only one is 'y;x;f;n'"),
    ("a formula that ends", {"t.csv": GOOD}, ("y ~ x +",), 1, "formula, place 8: found the end, wanted a term"),
    ("a formula without ~", {"t.csv": GOOD}, ("y x",), 1, "formula, place 3: found 'x', wanted '~'"),
    ("a response that is a term too", {"t.csv": GOOD}, ("y ~ x + y",), 1,
     "formula: 'y' is the response, found it among the terms too"),
    ("a function that there is not", {"t.csv": GOOD}, ("y ~ poly(x, 2)",), 1,
     "formula, place 5: found 'poly', wanted C, cut, hash, offset, I, log, log1p, sqrt, exp or abs"),
    ("places to cut at that go down", {"t.csv": GOOD}, ("y ~ cut(x, 5, 1, 3)",), 1,
     "formula, place 15: found '1', wanted a number above 5"),
    ("a number of intervals, as R's cut has", {"t.csv": GOOD}, ("y ~ cut(x, 3)",), 1,
     "formula, place 13: found ')', wanted two places to cut at or more: , 1, 5"),
    ("a text among numbers", {"t.csv": with_line(1703, "1,warm,a,2")}, ("y ~ x",), 1,
     "t.csv:1,703: column 2 (x): 'warm' is not a number\n  1,warm,a,2\n1 of its 3,000 values is no number: "
     "--na 'NA' --na 'warm' if they are missing, --types 'x=category' if the column is one of categories"),
    ("a short record", {"t.csv": with_line(1204, "1,2,a")}, ("y ~ x",), 1,
     f"t.csv:1,204: found 3 fields, wanted 4\n  1,2,a\n{REJECTED}"),
    ("a long record", {"t.csv": with_line(1204, "1,2,a,3,4")}, ("y ~ x",), 1,
     f"t.csv:1,204: found 5 fields, wanted 4\n  1,2,a,3,4\n{REJECTED}"),
    ("a quote that never ends", {"t.csv": 'y,x,f\n1,2,"a\n0,3,b\n1,4,a\n'}, ("y ~ x",), 1,
     't.csv:2: column 3 (f): a quote opens and none closes\n  1,2,\\"a\\n0,3,b\\n1,4,a\\n\n' + REJECTED),
    ("text behind a quote", {"t.csv": 'y,f\n1,"a"b\n0,c\n'}, ("y ~ f",), 1,
     't.csv:2: column 2 (f): found more behind the closing quote, wanted the end of the field\n  1,\\"a\\"b\n' + REJECTED),
    ("a byte 0", {"t.csv": with_line(1501, "1,2\0,a,3")}, ("y ~ x",), 1,
     f"t.csv:1,501: column 2 (x): found a byte 0, which text has not\n  1,2\\000,a,3\n{REJECTED}"),
    ("a field of more than 1 MiB", {"t.csv": with_line(1501, "1,2," + "z" * (1 << 20) + "z,3")}, ("y ~ f",), 1,
     "t.csv:1,501: column 3 (f): found a field of more than 1,048,576 bytes\n  1,2," + "z" * 96 + f"...\n{REJECTED}"),
    ("no such file", {}, ("y ~ x",), 1, "there is no file 't.csv'"),
    ("a pattern that nothing matches", {}, ("y ~ x", "part-*.csv"), 1, "no file matches 'part-*.csv'"),
    ("an empty file", {"t.csv": ""}, ("y ~ x",), 1,
     "'t.csv' is empty, wanted a first line with the names of the columns"),
    ("a header alone", {"t.csv": "y,x\n"}, ("y ~ x",), 1, "'t.csv' has no rows below the header"),
    ("files with different headers", {"t.csv": SHORT, "u.csv": "y,x,g\n1,2,a\n"}, ("y ~ x", "t.csv", "u.csv"), 1,
     "'u.csv': found the first line 'y,x,g', wanted the header 'y,x,f' of 't.csv'"),
    ("a file that comes twice", {"t.csv": SHORT}, ("y ~ x", "t.csv", "t.csv"), 1, "the file 't.csv' comes twice"),
    ("the standard input beside files", {"t.csv": SHORT}, ("y ~ x", "-", "t.csv"), 1,
     "found '-', the standard input, among 2 files, wanted it alone: it is a table of its own"),
    ("a gzip file that is cut short", {"t.csv": gzip.compress(GOOD.encode(), mtime=0)[:200]}, ("y ~ x",), 1,
     "'t.csv': the compressed data is cut short at byte 200"),
    ("UTF-16", {"t.csv": SHORT.encode("utf-16")}, ("y ~ x",), 1,
     "'t.csv': the text is in UTF-16, wanted UTF-8"),
    ("two columns of one name", {"t.csv": "y,x,x\n1,2,3\n0,1,2\n"}, ("y ~ x",), 1,
     "there are two columns 'x', wanted one"),
    ("a column without values", {"t.csv": "y,x\n1,NA\n0,\n"}, ("y ~ x",), 1,
     "'t.csv': column 'x' has no values: it is missing in each of 2 rows"),
    ("a response that is not 0 or 1", {"t.csv": "y,x\n0,1\n1,2\n2,3\n"}, ("y ~ x", "t.csv", *BINOMIAL), 1,
     "t.csv:4: column 1 (y): '2' is no response of family binomial, wanted 0 to 1\n  2,3"),
    ("a response of three texts", {"t.csv": "y,x\nyes,1\nno,2\nmaybe,3\n"}, ("y ~ x", "t.csv", *BINOMIAL), 1,
     "the response 'y' must have two levels, found 3: 'maybe', 'no', 'yes'; say which one counts: y == \"...\""),
    ("a response that never varies", {"t.csv": "y,x\n1,1\n1,2\n1,3\n"}, ("y ~ x", "t.csv", *BINOMIAL), 1,
     "the response 'y' is 1 in each of 3 rows: no coefficient is finite; --separated keep fits all the same"),
    ("a text that a response never has", {"t.csv": "y,x\nyes,1\nno,2\n"}, ('y == "on" ~ x', "t.csv", *BINOMIAL), 1,
     "column 'y' is never 'on'"),
    ("a negative count of successes", {"t.csv": "s,f,x\n1,2,1\n-1,3,2\n"}, ("cbind(s, f) ~ x", "t.csv", *BINOMIAL), 1,
     "t.csv:3: column 1 (s): '-1' is no count, wanted 0 or more\n  -1,3,2"),
    ("counts of another family", {"t.csv": "s,f,x\n1,2,1\n1,3,2\n"}, ("cbind(s, f) ~ x",), 1,
     "the response cbind(s, f) wants family binomial, found gaussian"),
    ("a negative response of family poisson", {"t.csv": "y,x\n1,1\n-2,2\n"}, ("y ~ x", "t.csv", *POISSON), 1,
     "t.csv:3: column 1 (y): '-2' is no response of family poisson, wanted 0 or more\n  -2,2"),
    ("a negative weight", {"t.csv": "y,x,w\n0,1,1\n1,2,-2\n"}, ("y ~ x", "t.csv", "--weights", "w"), 1,
     "t.csv:3: column 3 (w): '-2' is no weight, wanted 0 or more\n  1,2,-2"),
    ("a text for weights", {"t.csv": GOOD}, ("y ~ x", "t.csv", "--weights", "f"), 1,
     "the weights of column 'f' must be numbers, found 'a'"),
    ("a text for an offset", {"t.csv": GOOD}, ("y ~ x + offset(f)",), 1,
     "'offset' wants numbers, but column 'f' has texts such as 'a'"),
    ("the logarithm of 0", {"t.csv": "y,x\n1,1\n2,0\n"}, ("y ~ log(x)",), 1,
     "t.csv:3: column 2 (x): '0' makes log(x) -infinite\n  2,0"),
    ("a response that is infinite", {"t.csv": "y,x\n1,1\n0,2\n"}, ("log(y) ~ x",), 1,
     "t.csv:3: column 1 (y): '0' makes log(y) -infinite\n  0,2"),
    ("an infinite number", {"t.csv": "y,x\n1,1\n2,Inf\n"}, ("y ~ x",), 1,
     "t.csv:3: column 2 (x): 'Inf' is not a finite number\n  2,Inf"),
    ("a reference level that is none", {"t.csv": GOOD}, ("y ~ C(f, ref=z)",), 1,
     "column 'f' has no level 'z', which C(f) takes for the reference"),
    ("a type of a column that there is not", {"t.csv": GOOD}, ("y ~ x", "t.csv", "--types", "speed=category"), 1,
     "there is no column 'speed'; there are y, x, f, n"),
    ("a type that there is not", {"t.csv": GOOD}, ("y ~ x", "t.csv", "--types", "x=factor"), 2,
     "--types wants column=category, found 'x=factor' (see tenon train linear --help)"),
    ("a link that the family has not", {"t.csv": GOOD}, ("y ~ x", "t.csv", *POISSON, "--link", "logit"), 1,
     "the link of family poisson must be one of: log; found logit"),
    ("a level in percent", {"t.csv": GOOD}, ("y ~ x", "t.csv", "--level", "95"), 2,
     "--level: found 95, wanted 0.5 to 0.999999 (see tenon train linear --help)"),
]


def finish(folder, files, arguments):
    """The process, which ran in the folder with these files."""
    for name, text in files.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
    arguments = arguments if len(arguments) > 1 else (*arguments, "t.csv")
    return subprocess.run([os.path.abspath(TENON), "train", "linear", *arguments], cwd=folder, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def check(what, files, arguments, code, said):
    def case(folder):
        done = finish(folder, files, arguments)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        assert done.stdout == "", done.stdout
        assert done.stderr.startswith("tenon: ") and done.stderr.endswith("\n"), done.stderr
        message = done.stderr[len("tenon: "):-1]
        if code == 1:
            message = message.split(": ", 1)[1]
        assert message == said, f"found:\n{message}\nwanted:\n{said}"
    return what, in_a_folder(case)


def table_line(what, arguments, said):
    words = [f"'{word}'" if any(c in word for c in ' *"') else word for word in arguments]
    shown = "<br>".join(f"`{line.strip()}`" for line in said.replace("z" * 90, "").splitlines() if line != REJECTED)
    return f"| {what} | `{' '.join(words)}` | {shown} |"


def table():
    lines = ["| wrong is | arguments, with `t.csv` where no file is named | what is said |", "|---|---|---|"]
    return "\n".join(lines + [table_line(what, arguments, said) for what, _, arguments, _, said in CASES]) + "\n"


def documented():
    with open(os.path.join(SOURCE, "docs", "linear_models.md"), encoding="utf-8") as page:
        text = page.read()
    missing = [line for line in table().splitlines() if line not in text]
    assert not missing, "docs/linear_models.md has not:\n" + "\n".join(missing)


def bytes_that_are_no_utf8(folder):
    """Levels are bytes, but model.json is text."""
    rows = b"".join(b"%d,%s\n" % (i * i % 3 % 2, (b"\xff\xfe", b"\xc3\x28")[i // 4 % 2]) for i in range(60))
    arguments = [os.path.abspath(TENON), "train", "linear", "y ~ f", "t.csv", "--all"]
    with open(os.path.join(folder, "t.csv"), "wb") as file:
        file.write(b"y,f\n" + rows)
    done = subprocess.run(arguments, cwd=folder, timeout=60, capture_output=True, check=False)
    assert done.returncode == 0 and done.stderr == b"" and b"60 rows used" in done.stdout, done
    done = subprocess.run(arguments + ["--model_dir", "m"], cwd=folder, timeout=60, capture_output=True, check=False)
    assert done.returncode == 1 and b'model.json cannot have the level of f "' in done.stderr, done


def one_level(folder):
    done = finish(folder, {"t.csv": "y,x,f\n1,2,a\n0,3,a\n1,5,a\n"}, ("y ~ x + f",))
    assert done.returncode == 0 and "f has one level, 'a': it has no coefficient" in done.stdout, done.stdout


if __name__ == "__main__":
    if "--table" in sys.argv:
        print(table(), end="")
        sys.exit(0)
    sys.exit(main([check(*case) for case in CASES] + [("the page", documented)] + [
        (name, in_a_folder(case)) for name, case in (("bytes that are no UTF-8", bytes_that_are_no_utf8),
                                                     ("a factor of one level", one_level))]))
