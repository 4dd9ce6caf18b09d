"""The opcodes of pickle, protocols 0 to 5: their names, and the bytes each needs behind it.

By Python's Lib/pickletools.py, where each is described.
"""

_NAMES = {
    "(": "MARK",
    ".": "STOP",
    "0": "POP",
    "1": "POP_MARK",
    "2": "DUP",
    "F": "FLOAT",
    "I": "INT",
    "J": "BININT",
    "K": "BININT1",
    "L": "LONG",
    "M": "BININT2",
    "N": "NONE",
    "P": "PERSID",
    "Q": "BINPERSID",
    "R": "REDUCE",
    "S": "STRING",
    "T": "BINSTRING",
    "U": "SHORT_BINSTRING",
    "V": "UNICODE",
    "X": "BINUNICODE",
    "a": "APPEND",
    "b": "BUILD",
    "c": "GLOBAL",
    "d": "DICT",
    "}": "EMPTY_DICT",
    "e": "APPENDS",
    "g": "GET",
    "h": "BINGET",
    "i": "INST",
    "j": "LONG_BINGET",
    "l": "LIST",
    "]": "EMPTY_LIST",
    "o": "OBJ",
    "p": "PUT",
    "q": "BINPUT",
    "r": "LONG_BINPUT",
    "s": "SETITEM",
    "t": "TUPLE",
    ")": "EMPTY_TUPLE",
    "u": "SETITEMS",
    "G": "BINFLOAT",
    "B": "BINBYTES",
    "C": "SHORT_BINBYTES",
    "\x80": "PROTO",
    "\x81": "NEWOBJ",
    "\x82": "EXT1",
    "\x83": "EXT2",
    "\x84": "EXT4",
    "\x85": "TUPLE1",
    "\x86": "TUPLE2",
    "\x87": "TUPLE3",
    "\x88": "NEWTRUE",
    "\x89": "NEWFALSE",
    "\x8a": "LONG1",
    "\x8b": "LONG4",
    "\x8c": "SHORT_BINUNICODE",
    "\x8d": "BINUNICODE8",
    "\x8e": "BINBYTES8",
    "\x8f": "EMPTY_SET",
    "\x90": "ADDITEMS",
    "\x91": "FROZENSET",
    "\x92": "NEWOBJ_EX",
    "\x93": "STACK_GLOBAL",
    "\x94": "MEMOIZE",
    "\x95": "FRAME",
    "\x96": "BYTEARRAY8",
    "\x97": "NEXT_BUFFER",
    "\x98": "READONLY_BUFFER",
}
NAMES = {ord(byte): name for byte, name in _NAMES.items()}
CODES = {name: code for code, name in NAMES.items()}

_SIZES = {
    1: "PROTO BININT1 BINGET BINPUT EXT1 LONG1 SHORT_BINSTRING SHORT_BINBYTES SHORT_BINUNICODE",
    2: "BININT2 EXT2",
    4: "BININT LONG_BINGET LONG_BINPUT EXT4 LONG4 BINSTRING BINBYTES BINUNICODE",
    8: "BINFLOAT FRAME BINUNICODE8 BINBYTES8 BYTEARRAY8",
}
# Bytes of a fixed argument, or of the length that stands before one.
ARGUMENT_BYTES = {CODES[name]: size for size, names in _SIZES.items() for name in names.split()}


def named(code: int) -> str:
    """How an error calls an opcode: its name, or the byte that is none."""
    return NAMES.get(code, f"byte 0x{code:02x}")
