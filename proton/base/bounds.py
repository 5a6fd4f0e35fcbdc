"""The table by which a kernel on the CPU checks its accesses (`PROTON_CHECK_BOUNDS`).

It consists of 64-bit words. The first five are the report of the first access that is outside
of its array: which access of the kernel it is, counted from 1 (0 while all is well), its
address, and the x, y and z of its program. Behind them come two for each argument of the code,
0 for one that is no pointer: the address of the array's first byte, and how many bytes it has.
"""

ACCESS_WORD, ADDRESS_WORD, PROGRAM_WORD = 0, 1, 2
_REPORT_WORDS = 5
_WORDS_AN_ARGUMENT = 2
WORD_BYTES = 8


def argument_word(argument: int) -> int:
    """Where the array of an argument of the code is described."""
    return _REPORT_WORDS + _WORDS_AN_ARGUMENT * argument


def table_words(arguments: int) -> int:
    """The size of a table."""
    return argument_word(arguments)
