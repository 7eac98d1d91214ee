# SPDX-License-Identifier: Apache-2.0
"""Writes visits.csv.gz, made-up data for the wide-and-deep example: the same file each time.

A row is one visit: user, page, hour, price, and what came of it (0 left, 1 read, 2 bought).  Whether
somebody likes a page depends on the hidden taste of the user and the hidden topic of the page
together, so that neither column tells anything alone; 4 rows in 100 are noise.
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
