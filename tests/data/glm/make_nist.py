#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the linear problems of NIST's Statistical Reference Datasets: nist/NAME.csv, and nist/certified.tsv with their
solutions, which rational arithmetic gives to every digit. The values that NIST has certified, which have 15 digits, are
in this file and are compared with these, so that neither a number of the data nor a solution can be mistyped.

A line of certified.tsv is a kind and values of one problem:
    problem  name, formula, rows, residual degrees of freedom, residual standard deviation
    coef     name, estimate, standard error

Run: make_nist.py [FOLDER]; without one, nist/ beside it.
"""
import decimal
import fractions
import pathlib
import sys

DIGITS = 40

LONGLEY = """y,deflator,gnp,unemployed,armed,population,year
60323,83.0,234289,2356,1590,107608,1947
61122,88.5,259426,2325,1456,108632,1948
60171,88.2,258054,3682,1616,109773,1949
61187,89.5,284599,3351,1650,110929,1950
63221,96.2,328975,2099,3099,112075,1951
63639,98.1,346999,1932,3594,113270,1952
64989,99.0,365385,1870,3547,115094,1953
63761,100.0,363112,3578,3350,116219,1954
66019,101.2,397469,2904,3048,117388,1955
67857,104.6,419180,2822,2857,118734,1956
68169,108.4,442769,2936,2798,120445,1957
66513,110.8,444546,4681,2637,121950,1958
68655,112.6,482704,3813,2552,123366,1959
69564,114.2,502601,3931,2514,125368,1960
69331,115.7,518173,4806,2572,127852,1961
70551,116.9,554894,4007,2827,130081,1962
"""

NORRIS = """0.1 0.2 338.8 337.4 118.1 118.2 888.0 884.6 9.2 10.1 228.1 226.5 668.5 666.3 998.5 996.3 449.1 448.6
778.9 777.0 559.2 558.2 0.3 0.4 0.1 0.6 778.1 775.5 668.8 666.9 339.3 338.0 448.9 447.5 10.8 11.6 557.7 556.0
228.3 228.1 998.0 995.8 888.8 887.6 119.6 120.2 0.3 0.3 0.6 0.3 557.6 556.8 339.3 339.1 888.0 887.2 998.5 999.0
778.9 779.0 10.2 11.1 117.6 118.3 228.9 229.2 668.4 669.1 449.2 448.9 0.2 0.5"""

# Loads go from 150,000 to 3,000,000, twice.
PONTIUS = """0.11019 0.21956 0.32949 0.43899 0.54803 0.65694 0.76562 0.87487 0.98292 1.09146 1.20001 1.30822 1.41599
1.52399 1.63194 1.73947 1.84646 1.95392 2.06128 2.16844 0.11052 0.22018 0.32939 0.43886 0.54798 0.65739 0.76596
0.87474 0.98300 1.09150 1.20004 1.30818 1.41613 1.52408 1.63159 1.73965 1.84696 1.95445 2.06177 2.16829"""

FILIP = """0.8116 -6.860120914 0.9072 -4.324130045 0.9052 -4.358625055 0.9039 -4.358426747 0.8053 -6.955852379
0.8377 -6.661145254 0.8667 -6.355462942 0.8809 -6.118102026 0.7975 -7.115148017 0.8162 -6.815308569
0.8515 -6.519993057 0.8766 -6.204119983 0.8885 -5.853871964 0.8859 -6.109523091 0.8959 -5.79832982
0.8913 -5.482672118 0.8959 -5.171791386 0.8971 -4.851705903 0.9021 -4.517126416 0.909 -4.143573228
0.9139 -3.709075441 0.9199 -3.499489089 0.8692 -6.300769497 0.8872 -5.953504836 0.89 -5.642065153
0.891 -5.031376979 0.8977 -4.680685696 0.9035 -4.329846955 0.9078 -3.928486195 0.7675 -8.56735134
0.7705 -8.363211311 0.7713 -8.107682739 0.7736 -7.823908741 0.7775 -7.522878745 0.7841 -7.218819279
0.7971 -6.920818754 0.8329 -6.628932138 0.8641 -6.323946875 0.8804 -5.991399828 0.7668 -8.781464495
0.7633 -8.663140179 0.7678 -8.473531488 0.7697 -8.247337057 0.77 -7.971428747 0.7749 -7.676129393
0.7796 -7.352812702 0.7897 -7.072065318 0.8131 -6.774174009 0.8498 -6.478861916 0.8741 -6.159517513
0.8061 -6.835647144 0.846 -6.53165267 0.8751 -6.224098421 0.8856 -5.910094889 0.8919 -5.598599459
0.8934 -5.290645224 0.894 -4.974284616 0.8957 -4.64454848 0.9047 -4.290560426 0.9129 -3.885055584
0.9209 -3.408378962 0.9219 -3.13200249 0.7739 -8.726767166 0.7681 -8.66695597 0.7665 -8.511026475
0.7703 -8.165388579 0.7702 -7.886056648 0.7761 -7.588043762 0.7809 -7.283412422 0.7961 -6.995678626
0.8253 -6.691862621 0.8602 -6.392544977 0.8809 -6.067374056 0.8301 -6.684029655 0.8664 -6.378719832
0.8834 -6.065855188 0.8898 -5.752272167 0.8964 -5.132414673 0.8963 -4.811352704 0.9074 -4.098269308
0.9119 -3.66174277 0.9228 -3.2644011"""

# Errors of Wampler's third to fifth problem.
DELTA = [759, -2048, 2048, -2048, 2523, -2048, 2048, -2048, 1838, -2048, 2048,
         -2048, 1838, -2048, 2048, -2048, 2523, -2048, 2048, -2048, 759]

WAMPLER_ERRORS = ("2152.32624678170 2363.55173469681 779.343524331583 101.475507550350 5.64566512170752 "
                  "0.112324854679312").split()
# Estimates and standard errors as NIST has them, the intercept first, and the residual standard deviation.
CERTIFIED = {
    "longley": ("-3482258.63459582 15.0618722713733 -0.358191792925910E-01 -2.02022980381683 -1.03322686717359 "
                "-0.511041056535807E-01 1829.15146461355",
                "890420.383607373 84.9149257747669 0.334910077722432E-01 0.488399681651699 0.214274163161675 "
                "0.226073200069370 455.478499142212", "304.854073561965"),
    "norris": ("-0.262323073774029 1.00211681802045", "0.232818234301152 0.429796848199937E-03", "0.884796396144373"),
    "pontius": ("0.673565789473684E-03 0.732059160401003E-06 -0.316081871345029E-14",
                "0.107938612033077E-03 0.157817399981659E-09 0.486652849992036E-16", "0.205177424076185E-03"),
    "noint1": ("2.07438016528926", "0.165289256198347E-01", "3.56753034006338"),
    "noint2": ("0.727272727272727", "0.420827318078432E-01", "0.369274472937998"),
    "filip": ("-1467.48961422980 -2772.17959193342 -2316.37108160893 -1127.97394098372 -354.478233703349 "
              "-75.1242017393757 -10.8753180355343 -1.06221498588947 -0.670191154593408E-01 -0.246781078275479E-02 "
              "-0.402962525080404E-04",
              "298.084530995537 559.779865474950 466.477572127796 227.204274477751 71.6478660875927 "
              "15.2897178747400 2.23691159816033 0.221624321934227 0.142363763154724E-01 0.535617408889821E-03 "
              "0.896632837373868E-05", "0.334801051324544E-02"),
    "wampler1": ("1 1 1 1 1 1", "0 0 0 0 0 0", "0"),
    "wampler2": ("1 0.1 0.01 0.001 0.0001 0.00001", "0 0 0 0 0 0", "0"),
    "wampler3": ("1 1 1 1 1 1", " ".join(WAMPLER_ERRORS), "2360.14502379268"),
    "wampler4": ("1 1 1 1 1 1", " ".join(e + "E2" for e in WAMPLER_ERRORS), "236014.502379268"),
    "wampler5": ("1 1 1 1 1 1", " ".join(e + "E4" for e in WAMPLER_ERRORS), "23601450.2379268"),
}


def in_pairs(text):
    words = text.split()
    return "y,x\n" + "".join(f"{y},{x}\n" for y, x in zip(words[::2], words[1::2]))


def polynomial(degree):
    return "y ~ x" + "".join(f" + I(x^{k})" for k in range(2, degree + 1))


def wampler(part, size):
    """Values of the polynomial of x times `part`, with `size` times the errors, without rounding."""
    lines = []
    for x in range(21):
        y = sum((part * x)**k for k in range(6)) + size * DELTA[x]
        lines.append(f"{decimal.Decimal(y.numerator) / decimal.Decimal(y.denominator)},{x}\n")
    return "y,x\n" + "".join(lines)


def problems():
    """Name, text of the file and formula."""
    one, tenth = fractions.Fraction(1), fractions.Fraction(1, 10)
    yield "longley", LONGLEY, "y ~ deflator + gnp + unemployed + armed + population + year"
    yield "norris", in_pairs(NORRIS), "y ~ x"
    loads = [150000 * (i % 20 + 1) for i in range(40)]
    yield "pontius", "y,x\n" + "".join(f"{y},{x}\n" for y, x in zip(PONTIUS.split(), loads)), polynomial(2)
    yield "noint1", "y,x\n" + "".join(f"{130 + i},{60 + i}\n" for i in range(11)), "y ~ 0 + x"
    yield "noint2", "y,x\n3,4\n4,5\n4,6\n", "y ~ 0 + x"
    yield "filip", in_pairs(FILIP), polynomial(10)
    for number, part, size in (1, one, 0), (2, tenth, 0), (3, one, 1), (4, one, 100), (5, one, 10000):
        yield f"wampler{number}", wampler(part, size), polynomial(5)


def columns_of(text, formula):
    """Response, and names and columns of the design, of exact numbers."""
    header, *lines = text.splitlines()
    table = list(zip(*([fractions.Fraction(v) for v in line.split(",")] for line in lines)))
    table = dict(zip(header.split(","), table))
    names, columns = ["(Intercept)"], [[fractions.Fraction(1)] * len(lines)]
    for term in formula.split(" ~ ")[1].split(" + "):
        if term == "0":
            names, columns = [], []
            continue
        names.append(term)
        power = int(term[4:-1]) if term.startswith("I(") else 1
        columns.append([v**power for v in table["x" if power > 1 else term]])
    return table["y"], names, columns


def inverse(matrix):
    """By elimination, without rounding."""
    size = len(matrix)
    rows = [list(row) + [fractions.Fraction(i == j) for j in range(size)] for i, row in enumerate(matrix)]
    for i in range(size):
        pivot = next(k for k in range(i, size) if rows[k][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for k in range(size):
            if k != i and rows[k][i] != 0:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i])]
    return [row[size:] for row in rows]


def product(a, b):
    return sum(x * y for x, y in zip(a, b))


def rounded(value):
    return decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)


def solve(y, columns):
    """Estimates, standard errors, residual standard deviation and its degrees of freedom."""
    inverted = inverse([[product(a, b) for b in columns] for a in columns])
    moments = [product(column, y) for column in columns]
    estimates = [product(row, moments) for row in inverted]
    left = product(y, y) - product(estimates, moments)
    df = len(y) - len(columns)
    errors = [rounded(left / df * inverted[j][j]).sqrt() for j in range(len(columns))]
    return [rounded(e) for e in estimates], errors, rounded(left / df).sqrt(), df


def check(what, exact, certified):
    """NIST's last digit may be off by one."""
    wanted = decimal.Decimal(certified)
    assert abs(exact - wanted) <= abs(wanted) * decimal.Decimal("1e-14"), (what, exact, certified)


def main(folder):
    decimal.getcontext().prec = DIGITS
    folder.mkdir(exist_ok=True)
    with open(folder / "certified.tsv", "w", encoding="utf-8") as out:
        out.write("# Solutions of linear problems of NIST's Statistical Reference Datasets, rounded to a double\n")
        for name, text, formula in problems():
            (folder / f"{name}.csv").write_text(text, encoding="utf-8")
            y, names, columns = columns_of(text, formula)
            estimates, errors, deviation, df = solve(y, columns)
            of_nist = [line.split() for line in CERTIFIED[name]]
            for what, exact, certified in zip((names, names, ["deviation"]), (estimates, errors, [deviation]), of_nist):
                assert len(exact) == len(certified) == len(what), name
                for label, value, recorded in zip(what, exact, certified):
                    check(f"{name} {label}", value, recorded)
            out.write("\t".join(map(str, ("problem", name, formula, len(y), df, repr(float(deviation))))) + "\n")
            for row in zip(names, map(float, estimates), map(float, errors)):
                out.write("\t".join(["coef", row[0], repr(row[1]), repr(row[2])]) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "nist"))
