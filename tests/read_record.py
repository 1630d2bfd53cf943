#!/usr/bin/env python3
"""Reads the histograms and the series of each row of a record as the schema describes them, with
nothing of diskproof, and prints for each kind of operation what it found:

    tests/read_record.py RECORD.json

    [{"name": "random-read-d1", "op": "read", "count": 3, "latencies": 3, "cells": 3, …}]
"""
import base64
import json
import struct
import sys
import zlib


def leb128(data):
    """The unsigned LEB128 numbers of a text, in order."""
    number, shift = 0, 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield number
            number, shift = 0, 0


def series(text):
    """Packed columns: start, length of a cell, bytes of an operation, number of cells, columns."""
    numbers = list(leb128(zlib.decompress(base64.b64decode(text), wbits=-15)))
    start_ns, interval_ns, per_op, count = numbers[:4]
    columns = [numbers[4 + place * count :][:count] for place in range(5)]
    ops, errors, longest, _, rest = columns
    size = [(done * per_op + more) % (1 << 64) for done, more in zip(ops, rest)]
    return {"interval_ns": interval_ns, "ops": ops, "bytes": size, "latency_max_ns": longest}


def histogram(text):
    """(lowest value of the bucket, count) of an HdrHistogram V2: its README, "HistogramEncoding"."""
    outer = base64.b64decode(text)
    cookie, length = struct.unpack(">ii", outer[:8])
    assert cookie & ~0xF0 == 0x1C849304, hex(cookie)
    plain = zlib.decompress(outer[8 : 8 + length])
    _, payload, _, digits, lowest, _, _ = struct.unpack(">iiiiqqd", plain[:40])
    unit = lowest.bit_length() - 1
    sub = 2 * 10**digits - 1
    magnitude = max(sub.bit_length(), 1)
    half = 1 << (magnitude - 1)
    buckets, index = [], 0
    for number in leb128(plain[40 : 40 + payload]):
        signed = (number >> 1) ^ -(number & 1)
        if signed < 0:
            index -= signed
            continue
        if signed:
            bucket = (index >> (magnitude - 1)) - 1
            place = (index & (half - 1)) + half
            if bucket < 0:
                bucket, place = 0, place - half
            buckets.append((place << (bucket + unit), signed))
        index += 1
    return buckets


def operations(record):
    for row in record["measurements"]:
        for kind, op in row["data"]["ops"].items():
            cells = series(op["series"])
            buckets = histogram(op["latency"]["hdr"])
            device = row["data"]["device"]
            yield {
                "name": row["data"]["workload"]["name"],
                "op": kind,
                "count": op["count"],
                "bytes": op["bytes"],
                "latencies": sum(count for _, count in buckets),
                "lowest_ns": buckets[0][0] if buckets else 0,
                "mean_ns": op["latency"]["sum_ns"] / max(1, sum(n for _, n in buckets)),
                "interval_ns": cells["interval_ns"],
                "cells": sum(cells["ops"]),
                "cell_bytes": sum(cells["bytes"]),
                "longest_ns": max(cells["latency_max_ns"], default=0),
                "disk_bytes": device["read_bytes"] + device["write_bytes"],
            }


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        print(json.dumps(list(operations(json.load(file)))))
