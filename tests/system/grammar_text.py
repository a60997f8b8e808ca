# SPDX-License-Identifier: Apache-2.0
"""A text with something to learn: sentences of a small grammar, whose words are made of syllables."""
import random

SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]
KINDS = ("name", "animal", "place", "colour", "act", "move")
WORDS_OF_A_KIND = 16


def lexicon():
    """The words of each kind, all different."""
    choose = random.Random(0)
    words = set()
    while len(words) < len(KINDS) * WORDS_OF_A_KIND:
        words.add("".join(choose.choices(SYLLABLES, k=choose.randint(2, 3))))
    words = sorted(words)
    choose.shuffle(words)
    return {kind: words[i::len(KINDS)] for i, kind in enumerate(KINDS)}


def sentence(choose, words):
    animal = f"the {choose(words['colour'])} {choose(words['animal'])}"
    kind = choose(range(3))
    if kind == 0:
        return f"{choose(words['name'])} {choose(words['act'])} {animal}"
    if kind == 1:
        return f"{animal} {choose(words['move'])} in the {choose(words['place'])}"
    other = choose(words["name"])
    return f"{choose(words['name'])} {choose(words['move'])} with {other} at {choose(words['place'])}"


def grammar_text(size, seed=1):
    """At least `size` characters, in lines of a sentence each."""
    choose, words = random.Random(seed).choice, lexicon()
    lines, written = [], 0
    while written < size:
        lines.append(sentence(choose, words) + " .\n")
        written += len(lines[-1])
    return "".join(lines)
