"""Prints a function's line table and what Python itself makes of it.

Run by each interpreter (3.9 to 3.13), the output appended to line_tables.txt:
a line "VERSION FIRST_LINE TABLE_IN_HEX OFFSET:LINE,..." for each function.
"""
import dis
import sys


def plain(values):
    total = 0
    for value in values:
        if value > 3:
            total += value
        else:
            total -= (
                value
                * 2)
    return total


def guarded(path):
    try:
        with open(path) as file:
            return [line for line in file
                    if line]
    except OSError as error:
        raise ValueError(
            path
        ) from error
    finally:
        print("done")
# Far enough away for deltas of two bytes.





































































































































































def far(a):
    x = (a +


































































































































































            1)
    return x


for code in (plain.__code__, guarded.__code__, far.__code__):
    table = (code.co_linetable if sys.version_info >= (3, 10)
             else code.co_lnotab)
    if sys.version_info >= (3, 10):
        lines = {offset: line for start, end, line in code.co_lines()
                 for offset in range(start, end, 2)}
    else:
        starts = dict(dis.findlinestarts(code))
        lines, line = {}, code.co_firstlineno
        for offset in range(0, len(code.co_code), 2):
            line = starts.get(offset, line)
            lines[offset] = line
    print("%d.%d" % sys.version_info[:2], code.co_firstlineno, table.hex(),
          ",".join("%d:%s" % (offset, lines[offset] or 0)
                   for offset in sorted(lines)))
