"""What CPython's json makes of a text, as python_test.go spells it.

    python3.11 python_json.py table > table.tsv     the hard cases below
    python3.11 python_json.py outcomes < lines      texts in hexadecimal, one a line

An outcome is "!" (refused), "D" (nothing is wrong but a key twice, which Python
takes), or the canonical bytes
in insertion order, a space, and those with sorted keys, in hexadecimal (the SHA-256
of one that is longer than 256 bytes). A text in the table is a row of HEX or
HEX*TIMES, joined by "+".
"""

import hashlib
import json
import random
import struct
import sys


def canonical(value, sort_keys):
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys).encode()


def spelled(data):
    return data.hex() if len(data) <= 256 else "sha256:" + hashlib.sha256(data).hexdigest()


def outcome(source):
    twice = []

    def pairs(members):
        if len(dict(members)) < len(members):
            twice.append(True)
        return members

    try:
        text = source.decode()
        value = json.loads(text)  # as it is used, without a hook
        result = f"{spelled(canonical(value, False))} {spelled(canonical(value, True))}"
        canonical(json.loads(text, object_pairs_hook=pairs), False)  # what was dropped too
    except (ValueError, RecursionError):
        return "!"
    return "D" if twice else result


NUMBERS = """
0 -0 1 -1 10 01 -01 00 1. .5 -.5 +1 -  1.50 1.0 -1.0 0.0 -0.0 -0e0 0e0 0E-0 1E3 1e3 1E+3 1e-3 1e03 1e+03 1e0 1.e1 1e 1e+
1e15 1e16 1e17 -1e16 9999999999999998.0 9999999999999999.0 123456789012345678.0 1e21 1e22 1e23 1e-4 1e-5 0.0001 0.00001
0.00012345 1.5e-7 123456.789e3 5e-324 4.9e-324 2.5e-324 2.4e-324 1e-400 -1e-400 2.2250738585072014e-308
2.2250738585072011e-308 1.7976931348623157e308 1.7976931348623158e308 1.797693134862315807e308 1.7976931348623159e308
1e308 1e309 -1e309 1e999 1E400 0.1 0.2 0.30000000000000004 3.141592653589793238462643383279 100.0 1234567.0
9007199254740991 9007199254740992 9007199254740993 9007199254740993.0 9223372036854775807 9223372036854775808
-9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616 999999999999999999
1000000000000000000 -999999999999999999 123456789012345678901234567890 -123456789012345678901234567890
0x10 1_000 1e1.5 1.2.3 --1 NaN -NaN Infinity -Infinity nan inf true false null True None tru nul 1e5 1e10 12e1 1.23E2
0.1e1 0.1e-1 100e-2 0e999 0.0e999 -0.0e-999 1e-323 1e-320 123e-325 8.5e-1 4.35 2.675 0.5 0.25 1e100 1.0000000000000002
""".split()

STRINGS = [
    r'""', r'"a"', r'"<>&"', r'"\u003c\u003e\u0026"', r'"/"', r'"\/"', r'"\"\\\/\b\f\n\r\t"', r'"\u0022\u005c\u002f"', r'"\x41"', r'"\a"',
    r'"\u12"', r'"\u123g"', r'"\u 123"', r'"\u+123"', r'"\u1_23"', r'"\U00000041"', r'"\u00e9\u00E9"', r'"\u2028\u2029"', '"\u2028\u2029"', r'"\ufeff"', '"\ufeff"',
    r'"\uffff\ufffe"', '"\uffff\ufffe\ufdd0"', r'"\ud800"', r'"\udc00"', r'"\udc00\ud800"', r'"\ud800\ud800\udc00"', r'"\ud83d\ude00"',
    r'"\uD83D\uDE00"', r'"\ud83dx"', r'"\ud83d\n"', r'"\ud83d\u0041"', r'"\ud83d\ud83d"', '"\U0001f600"', '"\U0010ffff"', r'"\udbff\udfff"', '"\u00e9"', '"e\u0301"', '"\u0000"', r'"\u0000"',
    '"\x1f"', '"\x7f"', r'"\u007f\u0080\u009f"', '"\u0080\u009f\u00a0\u00ad"', '"\t"', '"\n"', '"a', '"', '"\\', '"\\"', '"\\u', "'a'", '"a""b"', '"a" "b"', '"\u200b\u202e"',
]

OTHER = [
    "", " ", "\n", "{}", "[]", "[ ]", "{ }", " [ 1 , 2 ] ", "\t{\r\n\"a\" :\t1\r,\n\"b\":2 }\n", "\f1", "\v1", "\u00a01", "\u20281", "\ufeff1", "1 2", "1,2", "[1,]", "[,1]", "[1 2]", "{,}", '{"a":1,}',
    '{"a"}', '{"a":}', '{a:1}', "{1:2}", '{"a":1 "b":2}', '{"a":1;"b":2}', "[1]]", "[1}", "[", "{", '{"a"', '{"a":', '{"a":1', "]", "}", ":", ",", "[1,2", "// x\n1", "/* x */1", "#1",
    '{"a":1,"a":2}', '{"a":1,"\\u0061":2}', '{"a":{"b":1,"b":1}}', '[{"a":1},{"a":2}]', '{"":0}', '{"":0,"":0}', '{"b":1,"a":2,"c":{"z":1,"y":[{"q":1,"p":2}]}}',
    '{"\\ud83d\\ude00":1,"\\uffff":2,"a":3}', '{"\U0001f600":1,"\uffff":2,"\ue000":3,"z":4,"\u00e9":5}', '{"B":1,"a":2,"A":3,"_":4,"~":5}', '{"a":1,"ab":2,"":3,"a\\u0000":4}', '{"10":1,"9":2,"1":3}',
    '{"\\ud800":1}', "[1,2,3.0]", "[1,-0,2]", "[1,1e2]", "[9223372036854775807,9223372036854775808]", "[1,true]", "[true,1]", "[null,[],{},\"\",0]", "[[1,2],[3]]", "[[[]]]", '[{"a":[]}]',
    '{"a":NaN}', "[Infinity]", "[-Infinity]", "[1e999]", '["\\u0041\\u00df\\u20ac"]', "[0,1,2,3,4,5,6,7,8,9]", "[00]", "[-]", "[1.]", "[01]", "nulll", "truefalse", "[true,false,null]", "[True]",
]

# Bytes that are no UTF-8, and long texts as (piece, times).
RAW = [
    [(b'"\xff"', 1)], [(b'"\xc0\x80"', 1)], [(b'"\xed\xa0\x80"', 1)], [(b'"\xed\xb0\x80"', 1)], [(b'"\xf4\x90\x80\x80"', 1)], [(b'"\xe2\x82"', 1)], [(b'"\xc3', 1)], [(b"\xff\xfe1\x00", 1)], [(b"\x001", 1)], [(b"1\x00", 1)],
    [(b"\xef\xbb\xbf{}", 1)], [(b"\xef\xbb\xbf", 1)], [(b'"\xf0\x9f\x98\x80"', 1)], [(b'"\xf8\x88\x80\x80\x80"', 1)], [(b'"\xed\x9f\xbf\xee\x80\x80"', 1)],
    [(b"9", 4300)], [(b"9", 4301)], [(b"-", 1), (b"9", 4300)], [(b"-", 1), (b"9", 4301)], [(b"[1,", 1), (b"9", 4301), (b"]", 1)], [(b"9", 5000), (b".0", 1)], [(b"0.", 1), (b"3", 5000)], [(b"1", 1), (b"0", 300), (b".5", 1)], [(b"0.", 1), (b"0", 330), (b"1", 1)],
    [(b"1e", 1), (b"0", 1000), (b"5", 1)], [(b"1e", 1), (b"9", 1000)], [(b"1e-", 1), (b"9", 1000)], [(b"[", 450), (b"]", 450)], [(b"[", 990), (b"]", 990)], [(b"[", 10000), (b"]", 10000)], [(b"[", 100000)], [(b'{"a":', 450), (b"1", 1), (b"}", 450)], [(b'{"a":', 10000), (b"1", 1), (b"}", 10000)],
    [(b"[", 10000)], [(b"[1", 1), (b",1", 9999), (b"]", 1)], [(b'"', 1), (b"a\\u0041\\n", 500), (b'"', 1)],
]


def hard_cases():
    for text in NUMBERS + STRINGS + OTHER:
        yield [(text.encode("utf-8", "surrogatepass"), 1)]
    for code in range(0x20):
        yield [(b'"\\u%04x\\u%04X"' % (code, code), 1)]
        yield [(b'"' + bytes([code]) + b'"', 1)]
    yield from RAW
    bits = random.Random(8)  # floats from everywhere, with too many digits
    while bits.getrandbits(8):
        x = struct.unpack("<d", bits.randbytes(8))[0]
        if x == x:
            yield [(b"[%.17e,%.25g]" % (x, x), 1)]


def main(mode):
    if mode == "table":
        for pieces in hard_cases():
            source = b"".join(piece * times for piece, times in pieces)
            print("+".join(piece.hex() + (f"*{times}" if times > 1 else "") for piece, times in pieces), outcome(source), sep="\t")
    elif mode == "outcomes":
        for line in sys.stdin:
            print(outcome(bytes.fromhex(line)))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
