# SPDX-License-Identifier: Apache-2.0
"""Writes visits.csv.gz, synthetic data for the wide-and-deep example.  The output is deterministic.

A row is one visit: user, page, hour, price, and the outcome (0 left, 1 read, 2 bought).  The outcome
depends on the combination of a hidden taste of the user and a hidden topic of the page.  One of the two columns alone
does not predict it.  4 % of the rows are noise.
"""
import gzip
import io
import os
import random

USERS, PAGES, KINDS, ROWS = 60, 40, 6, 8000


def main():
    rng = random.Random(20161106)
    taste = [rng.randrange(KINDS) for _ in range(USERS)]
    topic = [rng.randrange(KINDS) for _ in range(PAGES)]
    out = io.StringIO()
    out.write("user,page,hour,price,outcome\n")
    for _ in range(ROWS):
        user, page = rng.randrange(USERS), rng.randrange(PAGES)
        hour, price = rng.random() * 24, rng.random() * 100
        likes = (taste[user] + topic[page]) % KINDS < KINDS // 2
        outcome = (2 if price < 50 or hour > 18 else 1) if likes else 0
        if rng.random() < 0.04:
            outcome = rng.randrange(3)
        out.write(f"{user},{page},{hour:.1f},{price:.0f},{outcome}\n")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "visits.csv.gz")
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(out.getvalue().encode())


main()
