# What the measured python3 does: classes, dictionaries, strings, sorting, JSON, regular expressions, pickling, syntax
# trees, big numbers, generators and exceptions. Open it to change which features are measured. It needs the standard
# library only, and prints nothing that depends on the seed of hashes: sets are sorted before they are shown.
import ast
import collections
import csv
import decimal
import functools
import hashlib
import heapq
import io
import json
import pickle
import re
import sys
import textwrap

ROUNDS = 5
WORDS = "river stone cloud ember forest harbor meadow signal garden window market bridge castle island valley".split()


class Numbers:
    """A linear congruential generator: the same numbers in every version of Python."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state * 1103515245 + 12345) % 2**31
        return (self.state >> 8) % limit


class Account:
    def __init__(self, number, owner, tags):
        self.number = number
        self.owner = owner
        self.tags = tags
        self.entries = []

    def book(self, amount, text):
        self.entries.append({"amount": amount, "text": text, "balance": self.balance() + amount})

    def balance(self):
        return self.entries[-1]["balance"] if self.entries else 0

    def as_dict(self):
        return {"number": self.number, "owner": self.owner, "tags": sorted(self.tags), "entries": self.entries}


def show(*values):
    print(*values)


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def make_accounts(numbers):
    accounts = {}
    for i in range(2500):
        owner = " ".join(WORDS[numbers.below(len(WORDS))].title() for _ in range(2)) + f" {i % 97}"
        accounts[f"A{i:05d}"] = Account(i, owner, {WORDS[numbers.below(len(WORDS))] for _ in range(3)})
    for i in range(15000):
        account = accounts[f"A{numbers.below(2500):05d}"]
        account.book(numbers.below(20000) - 8000, f"{WORDS[i % len(WORDS)]}-{i:x}")
    return accounts


def json_and_pickle(accounts):
    text = json.dumps([account.as_dict() for account in accounts.values()], indent=1)
    again = json.loads(text)
    by_owner = collections.defaultdict(list)
    for each in again:
        by_owner[each["owner"]].append(each["number"])
    copies = pickle.loads(pickle.dumps(accounts, protocol=4))
    show("json", len(text), digest(text), len(by_owner), sum(each.balance() for each in copies.values()))
    return text


def strings_and_regex(text, numbers):
    found = collections.Counter(re.findall(r'"text": "([a-z]+)-[0-9a-f]+"', text))
    hidden = re.sub(r'"amount": (-?)(\d+)', lambda match: f'"amount": {match[1]}{len(match[2]) * "9"}', text)
    lines = [" ".join(WORDS[numbers.below(len(WORDS))] for _ in range(numbers.below(12) + 1)) for _ in range(8000)]
    lines.sort(key=lambda line: (len(line), line[::-1]))
    wrapped = textwrap.fill(" ".join(lines[:1500]), 60)
    table = io.StringIO()
    csv.writer(table).writerows(line.upper().split() for line in lines)
    longest = max(csv.reader(io.StringIO(table.getvalue())), key=lambda row: (len(row), row))
    show("text", sorted(found.items())[:3], digest(hidden), digest(wrapped), digest(",".join(longest)))
    return lines


def graphs_and_heaps(numbers):
    edges = collections.defaultdict(dict)
    for _ in range(20000):
        edges[numbers.below(4000)][numbers.below(4000)] = 1 + numbers.below(90)
    distance, queue = {0: 0}, [(0, 0)]
    while queue:
        so_far, node = heapq.heappop(queue)
        if so_far > distance[node]:
            continue
        for other, length in edges[node].items():
            if so_far + length < distance.get(other, 10**9):
                distance[other] = so_far + length
                heapq.heappush(queue, (so_far + length, other))
    show("graph", len(distance), sum(distance.values()))


def syntax_trees(numbers):
    source = "\n".join(
        f"def f{i}(a, b={i}, *rest, **named):\n    x = [a * j + {numbers.below(99)} for j in range(b) if j % 3]\n"
        f"    return {{'sum': sum(x), 'text': f'{{a}} of {{b}}', **named}}\n"
        for i in range(400)
    )
    tree = ast.parse(source)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    functions = {}
    exec(compile(tree, "made", "exec"), functions)
    total = sum(functions[f"f{i}"](i, 9, more=i)["sum"] for i in range(400))
    show("syntax", len(ast.unparse(tree)), sorted(names), total)


def numbers_and_errors(numbers):
    @functools.lru_cache(maxsize=500)
    def steps(value):
        return 0 if value == 1 else 1 + steps(value // 2 if value % 2 == 0 else 3 * value + 1)

    decimal.getcontext().prec = 40
    root = sum((decimal.Decimal(i).sqrt() for i in range(1, 2000)), decimal.Decimal(0))
    product = functools.reduce(lambda a, b: a * b, range(1, 1200))
    failures = 0
    for _ in range(15000):
        try:
            int(WORDS[numbers.below(len(WORDS))][: numbers.below(3)] or "7")
        except ValueError as error:
            failures += len(str(error))
    rows = [tuple(numbers.below(1000) for _ in range(4)) for _ in range(25000)]
    rows.sort(key=lambda row: (row[1], -row[0]))
    kept = {a + b for a, b, *_ in rows if a % 7} & set(range(0, 2000, 3))
    show("numbers", sum(map(steps, range(1, 3000))), root, product % 1000003, failures, rows[-1], len(kept))


def main():
    sys.setrecursionlimit(10000)
    numbers = Numbers(7)
    kept = []  # from round to round, as a process that runs for long has it
    for _ in range(ROUNDS):
        accounts = make_accounts(numbers)
        text = json_and_pickle(accounts)
        lines = strings_and_regex(text, numbers)
        graphs_and_heaps(numbers)
        syntax_trees(numbers)
        numbers_and_errors(numbers)
        kept.append((accounts, set(lines)))
    show("kept", [(len(accounts), len(lines)) for accounts, lines in kept])


main()
