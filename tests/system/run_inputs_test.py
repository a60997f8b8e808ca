#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `tenon run` is fed with: rows of files in batches, the standard input, text, bytes of files."""
import os
import re
import subprocess
import struct
import sys
import zipfile
import zlib

from small_graphs import FLOAT, node, npy_bytes, placeholder, write_graph, write_npy
from tenon_process import TENON, in_a_folder, main, read_npy, run


def fed(*arguments, stdin=b""):
    """What `tenon run` prints whose standard input is `stdin`."""
    done = subprocess.run([TENON, "run", *map(str, arguments)], input=stdin, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def printed(*arguments, stdin=b""):
    code, out, err = fed(*arguments, stdin=stdin)
    assert code == 0, err
    return out


def mistake(*arguments, stdin=b""):
    """The line that is said of it."""
    code, out, err = fed(*arguments, stdin=stdin)
    assert code in (1, 2) and out == "" and len(err.splitlines()) == 1, (code, out, err)
    return err


def read(path):
    with open(path, "rb") as file:
        return read_npy(file.read())


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def tfrecord(data):
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))


def write_png(path, width, height, colour):
    """An image of one colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = (b"\0" + bytes(colour) * width) * height
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def batches_of_an_npy(folder):
    graph, count = write_graph(folder), 10
    values = [float(v) for v in range(3 * count)]
    x = write_npy(os.path.join(folder, "x.npy"), (count, 3), values)
    # The last batch has two rows.
    out = printed(graph, "--feed", f"x={x}", "--batch", 4, "--fetch", "y,total")
    assert out.splitlines()[0].startswith("batch 0: y = float[4,3] 0 2 4 "), out
    assert re.findall(r"batch (\d): total = float\[\] (\d+)", out) == \
        [("0", "132"), ("1", "420"), ("2", "318")], out
    y = os.path.join(folder, "y.npy")
    out = printed(graph, "--feed", f"x={x}", "--batch", 4, "--fetch", "y", "--output", y)
    assert read(y) == ((count, 3), [2 * v for v in values]), read(y)
    assert f"{y}: y float[10,3]" in out, out


def columns_first(folder):
    """The rows of an array in Fortran's order."""
    graph = write_graph(folder)
    x = write_npy(os.path.join(folder, "f.npy"), (2, 3), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0],
                  column_major=True)
    out = printed(graph, "--feed", f"x={x}", "--batch", 1, "--fetch", "y")
    assert out == "batch 0: y = float[1,3] 2 4 6\nbatch 1: y = float[1,3] 8 10 12\n", out


def batches_of_an_npz(folder):
    graph = write_graph(folder)
    both = os.path.join(folder, "both.npz")
    printed(graph, "--feed", "x=[[1,2,3],[4,5,6]]", "--feed", "n=[7,8]", "--fetch", "y,twice",
            "--output", both)
    out = printed(graph, "--feed", f"x={both}:y", "--feed", f"n={both}:twice", "--batch", 1,
                  "--fetch", "y,twice")
    assert out.splitlines() == ["batch 0: y = float[1,3] 4 8 12", "batch 0: twice = int32[1] 28",
                                "batch 1: y = float[1,3] 16 20 24",
                                "batch 1: twice = int32[1] 32"], out
    # A key of the tensor's name need not be said.
    one = os.path.join(folder, "one.npz")
    printed(graph, "--feed", "x=[[1,2,3]]", "--fetch", "y", "--output", one)
    assert printed(graph, "--feed", f"x={one}", "--fetch", "y") == "y = float[1,3] 4 8 12\n"
    said = mistake(graph, "--feed", f"x={both}", "--fetch", "y")
    assert f"choose: {both}:KEY, of twice, y" in said or f"choose: {both}:KEY, of y, twice" in said, said


def memory_is_bounded(folder):
    """200 MB of rows through a process that may not have 200 MB more than one of a small file has."""
    graph = write_graph(folder)
    x, y = os.path.join(folder, "big.npy"), os.path.join(folder, "y.npy")
    rows = 16_000_000
    with open(x, "wb") as out:
        out.write(npy_bytes((rows, 3), []))
        out.truncate(out.tell() + 12 * rows)  # zeros, which take no room on the disk
    arguments = [TENON, "run", graph, "--feed", f"x={x}", "--batch", "100000", "--fetch", "total",
                 "--output", y]
    code = ("import resource, subprocess, sys; "
            "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); "
            "print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    done = run(sys.executable, "-c", code, *arguments)
    status, kilobytes = map(int, done.stdout.split())
    assert status == 0, done.stderr
    assert kilobytes < 150_000, f"{kilobytes} KiB for a file of {12 * rows} bytes"
    assert read(y) == ((160,), [0.0] * 160), read(y)[0]


def rows_that_differ(folder):
    graph = write_graph(folder)
    x = write_npy(os.path.join(folder, "x3.npy"), (3, 3), [1.0] * 9)
    n = write_npy(os.path.join(folder, "n2.npy"), (2,), [1, 2], descr="<i4")
    said = mistake(graph, "--feed", f"x={x}", "--feed", f"n={n}", "--fetch", "y,twice", "--batch", 1)
    assert "--feed x has 3 rows and --feed n has 2, wanted as many" in said, said
    said = mistake(graph, "--feed", "x=[[1,2,3]]", "--fetch", "y", "--batch", 1)
    assert "--batch cuts feeds from files into rows, of which there is none" in said, said
    said = mistake(graph, "--feed", f"x={x}", "--fetch", "y", "--batch", 1, "--steps", 2)
    assert "--batch and --steps exclude each other" in said, said


def numbers_are_converted(folder):
    """As TensorFlow's session does with what it is fed."""
    graph = write_graph(folder)
    x = write_npy(os.path.join(folder, "d.npy"), (1, 3), [1.5, 2.5, 3.5], descr="<f8")
    n = write_npy(os.path.join(folder, "q.npy"), (2,), [5, 1 << 40], descr="<i8")
    assert printed(graph, "--feed", f"x={x}", "--fetch", "y") == "y = float[1,3] 3 5 7\n"
    said = mistake(graph, "--feed", f"n={n}", "--fetch", "twice")
    assert "found 1099511627776, which int32 cannot hold" in said, said
    x = write_npy(os.path.join(folder, "h.npy"), (2,), [2.0, 2.5])
    said = mistake(graph, "--feed", f"n={x}", "--fetch", "twice")
    assert "found 2.5, wanted int32" in said, said
    truth = write_graph(folder, 'node { name: "t" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } } } '
                        'node { name: "not" op: "LogicalNot" input: "t" }', "truth.pbtxt")
    for value in ("[true, false, true]", "[True, False, True]", "[1, 0, 1]",
                  write_npy(os.path.join(folder, "b.npy"), (3,), [1, 0, 1], descr="<i4")):
        assert printed(truth, "--feed", f"t={value}", "--fetch", "not") == "not = bool[3] false true false\n", value
    assert "found 7, wanted true, false, 1 or 0" in mistake(truth, "--feed", "t=7", "--fetch", "not")
    assert "found 5, wanted 1 or 0 for a bool" in mistake(truth, "--feed", f"t={n}", "--fetch", "not")


def standard_input(folder):
    graph = write_graph(folder)
    wanted = "y = float[2,3] 2 4 6 8 10 12\n"
    for text in (npy_bytes((2, 3), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), b"[[1, 2, 3], [4, 5, 6]]\n",
                 b"\xef\xbb\xbf1,2,3\n4,5,6\n",
                 b"1,2,3\n4,5,6\n", b"1 2  3\n4 5 6", b"a,b,c\n1,2,3\n4,5,6\n", b"1\t2\t3\n\n4\t5\t6\n",
                 b"# of numpy.savetxt\n1.000e+00 2.000e+00 3.000e+00\n4 5 6\n"):
        out = printed(graph, "--feed", "x=-", "--fetch", "y", stdin=text)
        assert out == wanted, (text, out)
    # In batches too, from a pipe that cannot be read twice.
    for text in (npy_bytes((2, 3), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), b"1,2,3\n4,5,6\n"):
        out = printed(graph, "--feed", "x=-", "--fetch", "y", "--batch", 1, stdin=text)
        assert out == "batch 0: y = float[1,3] 2 4 6\nbatch 1: y = float[1,3] 8 10 12\n", out
    out = printed(graph, "--feed", "n=-", "--fetch", "twice", stdin=b"3\n4\n5\n")
    assert out == "twice = int32[3] 6 8 10\n", out
    out = printed(graph, "--feed", "t=-", "--fetch", "same", stdin=b"two words\n\nx,y\n")
    assert out == "same = string[3] 'two words' '' 'x,y'\n", out


def text_that_is_none(folder):
    graph = write_graph(folder)
    for text, wanted in ((b"1,2,3\n4,5\n", "line 2: found 2 values, wanted 3 as in the lines before"),
                         (b"1,2,x\n", "line 1, value 3: found 'x', wanted float"),
                         (b"1,2\n", "line 1: found 2 values, wanted 3 for a row of [?,3]"),
                         (b"", "the standard input is empty"),
                         (b"a,b,c\n", "has no values after a line of names"),
                         (npy_bytes((2, 3), [1.0, 2.0]), "found 8 bytes of elements, wanted 6")):
        said = mistake(graph, "--feed", "x=-", "--fetch", "y", stdin=text)
        assert "--feed x: " in said and wanted in said, (text, said)
    one = npy_bytes((1, 3), [1.0, 2.0, 3.0])
    for batch, wanted in (((), " bytes of elements, wanted 3 of 4 bytes"),
                          (("--batch", 2), "bytes follow the elements of the array")):
        said = mistake(graph, "--feed", "x=-", "--fetch", "y", *batch, stdin=one + one)
        assert "the standard input: " in said and wanted in said, said
    said = mistake(graph, "--feed", "x=-", "--fetch", "y", stdin=b"PK\x03\x04...")
    assert "the standard input is an archive, such as an .npz file" in said, said
    said = mistake(graph, "--feed", "x=-", "--feed", "n=-", "--fetch", "y", stdin=b"1\n")
    assert "only one --feed can be the standard input" in said, said


def files_of_text_and_bytes(folder):
    graph = write_graph(folder)
    table = os.path.join(folder, "x.csv")
    with open(table, "w", encoding="utf-8") as out:
        out.write("a,b,c\n" + "".join(f"{i},{i + 1},{i + 2}\n" for i in range(5)))
    out = printed(graph, "--feed", f"x={table}", "--batch", 2, "--fetch", "total")
    assert out.splitlines() == ["batch 0: total = float[] 18", "batch 1: total = float[] 42",
                                "batch 2: total = float[] 30"], out
    picture = os.path.join(folder, "picture.jpg")
    with open(picture, "wb") as out:
        out.write(b"\xff\xd8\x00bytes")
    said = mistake(graph, "--feed", f"t={picture}", "--fetch", "same")
    assert f"is an image, wanted a string; its bytes are @{picture}" in said, said
    unknown = os.path.join(folder, "sound.ogg")
    with open(unknown, "wb") as out:
        out.write(b"bytes")
    said = mistake(graph, "--feed", f"t={unknown}", "--fetch", "same")
    assert f"there is a file of that name, whose bytes @{unknown} are" in said, said
    said = mistake(graph, "--feed", f"x=@{picture}", "--fetch", "y")
    assert "is the bytes of a file, a string; wanted float" in said, said
    scalar = write_graph(folder, 'node { name: "t" op: "Placeholder" '
                         'attr { key: "dtype" value { type: DT_STRING } } } node { name: "same" '
                         'op: "Identity" input: "t" attr { key: "T" value { type: DT_STRING } } }',
                         "scalar.pbtxt")
    out = printed(scalar, "--feed", f"t=@{picture}", "--fetch", "same")
    assert out == "same = string[] '\\xff\\xd8\\x00bytes'\n", out


def columns_of_tables(folder):
    """FILE.csv:COLUMN is a column by its name, whatever stands in the others."""
    graph = write_graph(folder)
    table, other = (os.path.join(folder, name) for name in ("a.csv", "b.csv"))
    with open(table, "w", newline="", encoding="utf-8") as file:
        file.write('name,n\r\n"ann, the first",1\r\n"two\r\nlines",2\r\n,3\r\n')
    with open(other, "w", encoding="utf-8") as file:
        file.write("n,name\n4,dan\n")
    out = printed(graph, "--feed", f"n={table}:n", "--feed", f"t={table}:name", "--fetch", "twice,same")
    assert out == ("twice = int32[3] 2 4 6\nsame = string[3] 'ann, the first' 'two\\r\\nlines' ''\n"), out
    out = printed(graph, "--feed", f"n={table}:n,{other}:n", "--batch", 2, "--fetch", "twice")
    assert out == "batch 0: twice = int32[2] 2 4\nbatch 1: twice = int32[2] 6 8\n", out
    said = mistake(graph, "--feed", f"n={table}:m", "--fetch", "twice")
    assert f"'{table}' has no column 'm'; it has name, n" in said, said
    said = mistake(graph, "--feed", f"n={table}:name", "--fetch", "twice")
    assert "line 2: column 'name': found 'ann, the first', wanted int32" in said, said


def records(folder):
    """The records of .tfrecord files are strings, read batch after batch."""
    graph = write_graph(folder)
    path = os.path.join(folder, "r.tfrecord")
    with open(path, "wb") as file:
        for record in (b"one", b"", b"three"):
            file.write(tfrecord(record))
    out = printed(graph, "--feed", f"t={path}", "--batch", 2, "--fetch", "same")
    assert out == "batch 0: same = string[2] 'one' ''\nbatch 1: same = string[1] 'three'\n", out
    assert "wanted int32" in mistake(graph, "--feed", f"n={path}", "--fetch", "twice")
    with open(path, "rb") as file:
        whole = file.read()
    with open(path, "wb") as file:
        file.write(whole[:-1])
    code, _, err = fed(graph, "--feed", f"t={path}", "--batch", 2, "--fetch", "same")
    assert code == 1 and "the record at byte 35 is damaged" in err, err


def images(folder):
    """Images are rows of pixels, and of one size a batch."""
    pixels = (placeholder("p", FLOAT, [-1, -1, -1, 3]) + node("q", "Identity", "p", T=f"type: {FLOAT}")
              + placeholder("one", FLOAT, [-1, -1, 1]) + node("r", "Identity", "one", T=f"type: {FLOAT}"))
    graph = write_graph(folder, pixels)
    for name, width, colour in (("a.png", 2, (1, 2, 3)), ("b.png", 2, (7, 7, 7)), ("c.png", 1, (9, 9, 9))):
        write_png(os.path.join(folder, name), width, 1, colour)
    out = printed(graph, "--feed", f"p={folder}/[ab].png", "--batch", 2, "--fetch", "q")
    assert out == "batch 0: q = float[2,1,2,3] 1 2 3 1 2 3 7 7 ...\n", out
    out = printed(graph, "--feed", f"p={folder}/b.png", "--fetch", "q")
    assert out == "q = float[1,1,2,3] 7 7 7 7 7 7\n", out
    assert printed(graph, "--feed", f"one={folder}/b.png", "--fetch", "r") == "r = float[1,2,1] 7 7\n"
    said = mistake(graph, "--feed", f"p={folder}/*.png", "--batch", 3, "--fetch", "q")
    assert "c.png' has rows of [1,1,3], wanted [1,2,3] as" in said, said
    with open(os.path.join(folder, "d.jpg"), "wb") as file:
        file.write(b"none")
    said = mistake(graph, "--feed", f"p={folder}/d.jpg", "--fetch", "q")
    assert "d.jpg': found another format, wanted a PNG or JPEG image" in said, said


def several_files(folder):
    """One after the other, as if they were one; a pattern gives them by name."""
    graph = write_graph(folder)

    def part(name, *rows, **options):
        return write_npy(os.path.join(folder, name), (len(rows), 3), [v for row in rows for v in row], **options)
    one, two = part("part-1.npy", (1, 2, 3), (4, 5, 6)), part("part-2.npy", (7, 8, 9), descr="<f8")
    wanted = "y = float[3,3] 2 4 6 8 10 12 14 16 ...\n"
    assert printed(graph, "--feed", f"x={one},{two}", "--fetch", "y") == wanted
    assert printed(graph, "--feed", f"x={folder}/part-*.npy", "--fetch", "y") == wanted
    # In batches that do not end where a file does, beside one of numbers.
    with open(os.path.join(folder, "n.csv"), "w", encoding="utf-8") as out:
        out.write("n\n1\n2\n")
    with open(os.path.join(folder, "none.csv"), "w", encoding="utf-8") as out:
        out.write("n\n")
    with open(os.path.join(folder, "m.csv"), "w", encoding="utf-8") as out:
        out.write("3\n")
    y = os.path.join(folder, "y.npy")
    out = printed(graph, "--feed", f"x={folder}/part-?.npy", "--feed",
                  f"n={folder}/n.csv,{folder}/none.csv,{folder}/m.csv", "--batch", 2, "--fetch", "y,twice")
    assert out.splitlines() == [
        "batch 0: y = float[2,3] 2 4 6 8 10 12", "batch 0: twice = int32[2] 2 4",
        "batch 1: y = float[1,3] 14 16 18", "batch 1: twice = int32[1] 6"], out
    printed(graph, "--feed", f"x={two},{one}", "--batch", 2, "--fetch", "y", "--output", y)
    assert read(y) == ((3, 3), [14.0, 16.0, 18.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]), read(y)
    # Arrays of archives, by their key.
    for name, value in (("a.npz", "[1]"), ("b.npz", "[2,3]")):
        printed(graph, "--feed", f"n={value}", "--fetch", "twice", "--output", os.path.join(folder, name))
    for files in ("[ab].npz:twice", f"a.npz:twice,{folder}/b.npz:twice"):
        out = printed(graph, "--feed", f"n={folder}/{files}", "--fetch", "twice")
        assert out == "twice = int32[3] 4 8 12\n", out
    # A name may have what patterns have.
    odd = part("odd[1],*.npy", (1, 1, 1))
    assert printed(graph, "--feed", f"x={odd}", "--fetch", "y") == "y = float[1,3] 2 2 2\n"


def several_files_of_bytes(folder):
    graph = write_graph(folder)
    for name in ("b.bin", "a.bin", "c.bin"):
        with open(os.path.join(folder, name), "wb") as out:
            out.write(b"of " + name.encode())
    assert printed(graph, "--feed", f"t=@{folder}/*.bin", "--fetch", "same") == \
        "same = string[3] 'of a.bin' 'of b.bin' 'of c.bin'\n"
    # What takes one string takes a step for each file.
    scalar = write_graph(folder, 'node { name: "t" op: "Placeholder" '
                         'attr { key: "dtype" value { type: DT_STRING } } '
                         'attr { key: "shape" value { shape { } } } } node { name: "same" '
                         'op: "Identity" input: "t" attr { key: "T" value { type: DT_STRING } } }',
                         "scalar.pbtxt")
    table = os.path.join(folder, "out.csv")
    printed(scalar, "--feed", f"t=@{folder}/b.bin,@{folder}/a.bin", "--fetch", "same", "--batch", 1,
            "--output", table)
    with open(table, encoding="utf-8") as file:
        assert file.read() == "same\nof b.bin\nof a.bin\n"
    said = mistake(scalar, "--feed", f"t=@{folder}/*.bin", "--fetch", "same")
    assert "3 files have rows, wanted one value" in said and "--batch 1 runs a step for each" in said, said


def names_of_files(folder):
    graph = write_graph(folder)
    for name, rows in (("a", 2), ("b", 1), ("c", 2)):
        write_npy(os.path.join(folder, name + ".npy"), (rows, 3), [1.0] * 3 * rows)
    table = os.path.join(folder, "o.csv")
    printed(graph, "--feed", f"x={folder}/*.npy", "--fetch", "y", "--batch", 2, "--output", table, "--file_names")
    with open(table, encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert lines[0] == "file,y[0],y[1],y[2]", lines
    assert [os.path.basename(line.split(",")[0]) for line in lines[1:]] == \
        ["a.npy", "a.npy", "b.npy", "c.npy", "c.npy"], lines
    said = mistake(graph, "--feed", f"x={folder}/a.npy", "--fetch", "y", "--batch", 2, "--output", table,
                   "--file_names")
    assert "--file_names is for --batch, --output and a feed of several files" in said, said


def rows_of_different_lengths(folder):
    """One at a time."""
    graph = write_graph(folder, f'node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: {FLOAT} }} }} }} '
                        'node { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" '
                        'value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 1 } } } } '
                        'node { name: "sum" op: "Sum" input: "x" input: "axis" attr { key: "T" value { type: '
                        f'{FLOAT} }} }} attr {{ key: "Tidx" value {{ type: DT_INT32 }} }} }}')
    for length in (2, 5, 3):
        write_npy(os.path.join(folder, f"of{length}.npy"), (1, length), [1.0] * length)
    table = os.path.join(folder, "sums.csv")
    printed(graph, "--feed", f"x={folder}/of*.npy", "--fetch", "sum", "--batch", 1, "--output", table)
    with open(table, encoding="utf-8") as file:
        assert file.read() == "sum\n2\n3\n5\n"
    said = mistake(graph, "--feed", f"x={folder}/of*.npy", "--fetch", "sum", "--batch", 2)
    assert "of3.npy' has rows of [3], wanted [2] as" in said and "with --batch 1 each row has a step" in said, said


def file_that_a_step_fails_on(folder):
    """It is named, with its batch."""
    graph = write_graph(folder, 'node { name: "t" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } } '
                        'attr { key: "shape" value { shape { } } } } node { name: "number" '
                        'op: "StringToNumber" input: "t" attr { key: "out_type" value { type: DT_FLOAT } } }')
    for name, text in (("0.txt", "7"), ("1.txt", "8"), ("2.txt", "none")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
            out.write(text)
    said = fed(graph, "--feed", f"t=@{folder}/*.txt", "--fetch", "number", "--batch", 1)[2]
    assert f"batch 2, t from {folder}/2.txt: node 'number'" in said, said


def files_that_do_not_belong_together(folder):
    graph = write_graph(folder)
    three = write_npy(os.path.join(folder, "3.npy"), (1, 3), [1.0] * 3)
    two = write_npy(os.path.join(folder, "2.npy"), (1, 2), [1.0] * 2)
    scalar = write_npy(os.path.join(folder, "s.npy"), (), [1.0])
    table = os.path.join(folder, "2.csv")
    with open(table, "w", encoding="utf-8") as out:
        out.write("1,2\n")
    for value, wanted in (
            (f"{three},{two}", f"'{two}' has rows of [2], wanted [3] as '{three}' has"),
            (f"{three},{scalar}", "scalar"),
            (f"{three},{table}", f"'{table}', line 1: found 2 values, wanted 3 for a row of [?,3]"),
            (f"{three},{folder}/no.npy", "no.npy': No such file or directory"),
            (f"{three},{folder}/no.csv", "no.csv': No such file or directory"),
            (folder, f"; it is a folder, of whose files a pattern is meant, such as '{folder}/*.npy'"),
            (f"{folder}/*.wav", f"; of files with other endings '@{folder}/*.wav' is the bytes"),
            (f"{folder}/no*.npy", f"no file matches '{folder}/no*.npy'"),
            (f"{folder}/no/*.npy", f"no file matches '{folder}/no/*.npy'")):
        said = mistake(graph, "--feed", f"x={value}", "--fetch", "y", "--batch", 2)
        assert "--feed x: " in said and wanted in said, (value, said)
    said = mistake(graph, "--feed", f"x={three},{three}", "--feed", f"n={folder}/1.npy,{folder}/1.npy",
                   "--fetch", "y")
    assert "--feed n: " in said, said


def fed_twice(folder):
    graph = write_graph(folder)
    x = write_npy(os.path.join(folder, "x.npy"), (3, 3), [1.0] * 9)
    for value, name, wanted in (("[[1,2,3]]", "x", "--feed x is given twice, wanted once: found "),
                                (x, "x:0", "--feed x:0 and --feed x are one tensor, wanted once: found ")):
        said = mistake(graph, "--feed", f"x={x}", "--feed", f"{name}={value}", "--fetch", "y", "--batch", 1)
        assert wanted + f"{x} and {value}" in said and "joined by commas" in said, said


def no_rows(folder):
    """No step is run, and the output has no rows either."""
    graph = write_graph(folder)
    x = write_npy(os.path.join(folder, "x.npy"), (0, 3), [])
    empty, header = os.path.join(folder, "empty.csv"), os.path.join(folder, "header.csv")
    with open(empty, "w", encoding="utf-8") as out:
        out.write("")
    with open(header, "w", encoding="utf-8") as out:
        out.write("a,b,c\n")
    for value in (x, empty, header, f"{empty},{x}", "-"):
        y = os.path.join(folder, "y.npz")
        code, out, err = fed(graph, "--feed", f"x={value}", "--batch", 2, "--fetch", "y,total", "--output", y)
        assert code == 0 and err == "tenon: --batch: the feeds have no rows: no step was run\n", (value, err)
        assert out == f"{y}: y float[0,3], total float[0]\n", (value, out)
        with zipfile.ZipFile(y) as archive:
            assert read_npy(archive.read("y.npy")) == ((0, 3), []), value
    out = printed(graph, "--feed", f"x={x}", "--batch", 2, "--fetch", "y", "--output", "-")
    assert out == "y[0],y[1],y[2]\n", out
    said = mistake(graph, "--feed", f"x={empty}", "--fetch", "y")
    assert f"'{empty}' has no values" in said, said


def initialisers_are_fed(folder):
    """--init gets what the first step is fed with."""
    graph = write_graph(folder)
    out = printed(graph, "--init", "w/assign", "--feed", "w/initial=[5, 6, 7]", "--fetch", "w")
    assert out == "w = float[3] 5 6 7\n", out
    out = printed(graph, "--init", "init,next", "--fetch", "w/read")
    assert out == "w/read = float[3] 2 3 4\n", out


if __name__ == "__main__":
    sys.exit(main([(name, in_a_folder(case)) for name, case in (
        ("batches of an .npy", batches_of_an_npy),
        ("an .npy in Fortran's order", columns_first),
        ("batches of an .npz", batches_of_an_npz),
        ("bounded memory", memory_is_bounded),
        ("rows that differ", rows_that_differ),
        ("numbers of another dtype", numbers_are_converted),
        ("the standard input", standard_input),
        ("text that is none", text_that_is_none),
        ("files of text and bytes", files_of_text_and_bytes),
        ("columns of tables", columns_of_tables),
        ("records", records),
        ("images", images),
        ("several files", several_files),
        ("several files of bytes", several_files_of_bytes),
        ("names of files", names_of_files),
        ("rows of different lengths", rows_of_different_lengths),
        ("a file that a step fails on", file_that_a_step_fails_on),
        ("files that do not belong together", files_that_do_not_belong_together),
        ("fed twice", fed_twice),
        ("no rows", no_rows),
        ("initialisers", initialisers_are_fed))]))
