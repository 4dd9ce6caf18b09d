"""Mangled C++ names as a person reads them: the common forms of the Itanium ABI, or nothing.

What is written is what ``c++filt`` writes. Names with expressions, decltype, member pointers and
other rare forms are left as they are.
"""

from dataclasses import dataclass
from functools import lru_cache

from app.domain.coredump.mangled import (
    BUILTINS,
    LITERALS,
    MOST_CHARACTERS,
    NotKnown,
    Reader,
    Type,
)

_STANDARD = {"a": "std::allocator", "b": "std::basic_string"}
_NAMED_BUILTINS = {"Di": "char32_t", "Ds": "char16_t", "Du": "char8_t", "Dn": "decltype(nullptr)"}
_QUALIFIERS = {"r": " restrict", "V": " volatile", "K": " const"}
_MARKS = {"P": "*", "R": "&", "O": "&&"}


@dataclass(frozen=True, slots=True)
class Name:
    """*short* has the template arguments, *called* the parameters too, *full* also the result."""

    short: str
    full: str
    called: str


@lru_cache(maxsize=4096)
def demangled(mangled: str) -> Name | None:
    """None: it is not mangled, or not in a form that is read here for certain."""
    if not mangled.startswith("_Z") or len(mangled) > MOST_CHARACTERS:
        return None
    reader = Reader(mangled)
    reader.need("_Z")
    try:
        name = _Names(reader).encoding()
    except NotKnown:
        return None
    return name if reader.ended else None


@dataclass(frozen=True, slots=True)
class _Qualified:
    """A name as it was read: whether it ends in template arguments, and what follows it."""

    text: str
    arguments: tuple[Type, ...] | None = None
    suffix: str = ""


class _Names:
    """One name and what it can refer back to."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        # What can be referred back to; and, where template parameters are in it, of which
        # encoding: in another one the same words mean other types.
        self._seen: list[tuple[Type, int | None]] = []
        self._arguments: tuple[Type, ...] | None = None
        self._encodings = 0
        self._encoding = 0
        self._parameters_used = 0

    def encoding(self) -> Name:
        outer = self._arguments, self._encoding
        self._encodings += 1
        self._arguments, self._encoding = None, self._encodings
        name = self._name()
        result, called = "", name.text
        if not self._reader.ended and self._reader.peek() != "E":
            self._arguments = name.arguments
            result = "" if name.arguments is None else self._result()
            called = f"{name.text}({self._parameters()}){name.suffix}"
        self._arguments, self._encoding = outer
        return Name(name.text, self._reader.written(result + called), called)

    def _result(self) -> str:
        result = self._type()
        if result.right or result.pack is not None:
            raise NotKnown
        return f"{result} "

    def _parameters(self) -> str:
        reader = self._reader
        if reader.peek() == "v":
            reader.one()
            if not reader.ended and reader.peek() != "E":
                raise NotKnown
            return ""
        types = []
        while not reader.ended and reader.peek() != "E":
            types.append(self._type())
            if str(types[-1]) == "void":
                raise NotKnown
        if not types:
            raise NotKnown
        return ", ".join(str(one) for one in types if one.pack != ())

    def _name(self) -> _Qualified:
        with self._reader:
            if self._reader.take("N"):
                return self._nested()
            if self._reader.take("Z"):
                return self._local()
            return self._unscoped()

    def _unscoped(self) -> _Qualified:
        reader, used = self._reader, self._parameters_used
        if reader.peek() == "S" and reader.peek(2) != "St":
            text = str(self._substitution())
            if reader.peek() != "I":
                raise NotKnown  # a function cannot be named by what was said before
            return self._with_arguments(text)
        text = "std::" if reader.take("St") else ""
        text += self._unqualified()
        if reader.peek() != "I":
            return _Qualified(text)
        self._remember(Type(text), used)
        return self._with_arguments(text)

    def _with_arguments(self, text: str) -> _Qualified:
        arguments = self._template_arguments()
        return _Qualified(text + self._angled(arguments, text), arguments)

    def _nested(self) -> _Qualified:
        reader, used = self._reader, self._parameters_used
        suffix = ""
        while reader.peek() in ("r", "V", "K"):
            suffix = _QUALIFIERS[reader.one()] + suffix
        if reader.peek() in ("R", "O"):
            suffix += " &" if reader.one() == "R" else " &&"
        text, arguments = "", None
        while not reader.take("E"):
            text, arguments, new = self._component(text, arguments)
            if new and reader.peek() != "E":
                self._remember(Type(text), used)
        if not text:
            raise NotKnown
        return _Qualified(text, arguments, suffix)

    def _component(
        self, text: str, arguments: tuple[Type, ...] | None
    ) -> tuple[str, tuple[Type, ...] | None, bool]:
        """*text* with one more part; whether this prefix can be referred back to."""
        reader = self._reader
        if reader.peek() == "S":
            if text:
                raise NotKnown
            if reader.take("St"):
                return "std", None, False
            return str(self._substitution()), None, False
        if reader.peek() == "I":
            if not text or arguments is not None:
                raise NotKnown
            arguments = self._template_arguments()
            return text + self._angled(arguments, text), arguments, True
        part = self._unqualified()
        return self._reader.written(f"{text}::{part}" if text else part), None, True

    def _local(self) -> _Qualified:
        reader = self._reader
        within = self.encoding()
        reader.need("E")
        if reader.peek() in ("s", "d"):
            raise NotKnown
        entity = self._name()
        if reader.peek() == "_":  # which of several of that name: not shown
            reader.one()
            if not (reader.digits() if reader.peek() != "_" else ""):
                raise NotKnown
        text = reader.written(f"{within.called}::{entity.text}")
        return _Qualified(text, entity.arguments, entity.suffix)

    def _unqualified(self) -> str:
        reader = self._reader
        reader.take("L")  # of internal linkage
        if reader.take("Ul"):
            return self._closure()
        if reader.take("Ut"):
            return f"{{unnamed type#{reader.ordinal()}}}"
        if reader.take("cl"):
            return "operator()"
        name = reader.source_name()
        while reader.take("B"):
            name += f"[abi:{reader.source_name()}]"
        return name

    def _closure(self) -> str:
        outer, self._arguments = self._arguments, None
        parameters = self._parameters()
        self._arguments = outer
        self._reader.need("E")
        return f"{{lambda({parameters})#{self._reader.ordinal()}}}"

    def _template_arguments(self) -> tuple[Type, ...]:
        reader, arguments = self._reader, []
        reader.need("I")
        while not reader.take("E"):
            arguments.append(self._argument())
        return tuple(arguments)

    def _argument(self) -> Type:
        with self._reader:
            if self._reader.take("J"):
                pack = []
                while not self._reader.take("E"):
                    pack.append(self._argument())
                if any(one.pack is not None for one in pack):
                    raise NotKnown
                return Type("", pack=tuple(pack))
            if self._reader.take("L"):
                return self._literal()
            return self._type()

    def _literal(self) -> Type:
        reader = self._reader
        kind = str(self._type())
        sign = "-" if reader.take("n") else ""
        number = reader.digits()
        reader.need("E")
        if not number or kind in ("float", "double", "long double", "__float128", "..."):
            raise NotKnown
        if kind == "bool":
            if sign or number not in ("0", "1"):
                raise NotKnown
            return Type("true" if number == "1" else "false")
        if kind in LITERALS:
            return Type(f"{sign}{number}{LITERALS[kind]}")
        return Type(f"({kind}){sign}{number}")

    def _angled(self, arguments: tuple[Type, ...], before: str) -> str:
        inside = ", ".join(str(one) for one in arguments if one.pack != ())
        space = " " if inside.endswith(">") and arguments[-1].pack != () else ""
        opened = " <" if before.endswith("<") else "<"
        return self._reader.written(f"{opened}{inside}{space}>")

    def _type(self) -> Type:
        with self._reader:
            reader, used = self._reader, self._parameters_used
            first = reader.peek()
            if first in BUILTINS and first:
                reader.one()
                return Type(BUILTINS[first])
            if reader.peek(2) in _NAMED_BUILTINS:
                return Type(_NAMED_BUILTINS[reader.one() + reader.one()])
            if first == "S" and reader.peek(2) != "St":
                known = self._substitution()
                if reader.peek() != "I":
                    return known
                return self._remember(Type(self._with_arguments(str(known)).text), used)
            return self._remember(self._compound(), used)

    def _compound(self) -> Type:
        reader = self._reader
        if reader.peek() in _MARKS:
            mark = _MARKS[reader.one()]
            return self._type().pointed(mark)
        if reader.peek() in _QUALIFIERS:
            return self._qualified()
        if reader.take("Dp"):
            return self._expanded()
        if reader.take("T"):
            return self._parameter()
        if reader.take("F"):
            return self._function()
        if reader.take("A"):
            return self._array()
        if reader.peek().isdigit() or reader.peek() in ("N", "Z", "S"):
            return Type(self._name_of_type())
        raise NotKnown

    def _qualified(self) -> Type:
        words = ""
        while self._reader.peek() in _QUALIFIERS:
            words = _QUALIFIERS[self._reader.one()] + words
        return self._type().qualified(words)

    def _name_of_type(self) -> str:
        name = self._name()
        if name.suffix:
            raise NotKnown
        return name.text

    def _expanded(self) -> Type:
        if self._reader.peek() != "T":
            raise NotKnown
        pattern = self._type()
        if pattern.pack is None:
            raise NotKnown
        return pattern

    def _parameter(self) -> Type:
        number = self._reader.sequence()
        if self._arguments is None or number >= len(self._arguments):
            raise NotKnown
        if self._reader.peek() == "I":
            raise NotKnown
        self._parameters_used += 1
        return self._arguments[number]

    def _function(self) -> Type:
        self._reader.take("Y")
        result = self._type()
        if result.right:
            raise NotKnown
        parameters = self._parameters()
        self._reader.need("E")
        return Type(str(result), f"({parameters})", wraps=True)

    def _array(self) -> Type:
        length = self._reader.digits()
        self._reader.need("_")
        element = self._type()
        if not length or element.right or element.wraps:
            raise NotKnown
        return Type(str(element), f"[{length}]", wraps=True)

    def _substitution(self) -> Type:
        reader = self._reader
        reader.need("S")
        if reader.peek() in _STANDARD and reader.peek():
            return Type(_STANDARD[reader.one()])
        number = reader.sequence()
        if number >= len(self._seen):
            raise NotKnown
        known, encoding = self._seen[number]
        if encoding is not None:
            self._parameters_used += 1
            if encoding != self._encoding:
                raise NotKnown
        return known

    def _remember(self, type_: Type, used: int) -> Type:
        """Keep *type_*, in which parameters were used if there are more uses than *used*."""
        self._reader.written(str(type_))
        bound = self._encoding if self._parameters_used > used else None
        self._seen.append((type_, bound))
        return type_
