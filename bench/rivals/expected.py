"""What the programs that print and read numbers must write: where the definitions have their hashes from.

Usage: expected.py print counter|random COUNT | sha256sum
       expected.py larger < INPUT | sha256sum

Shares no code with the runners, and is as slow as it is plain. (`larger` needs the input: `make bench` leaves it in
the directory that `--inputs` names.)
"""

import sys


def random_numbers(state=3):
    """The numbers of print/random.h, from their description: splitmix64, then a length, then a number."""
    mask = 2**64 - 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
        digits, left = divmod(z * 10, 2**64)
        least = 10**digits if digits > 0 else 0
        yield least + (left * (10 ** (digits + 1) - least) >> 64)


def main(arguments):
    if arguments == ["larger"]:
        next(sys.stdin)
        for line in sys.stdin:
            print(max(int(word) for word in line.split()))
        return
    _, kind, count = arguments
    numbers = range(int(count)) if kind == "counter" else random_numbers()
    for _, number in zip(range(int(count)), numbers):
        sys.stdout.write(f"Hello, {number}\t")


main(sys.argv[1:])
