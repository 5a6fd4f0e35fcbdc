"""From the text of a module as Triton prints it to one that MLIR reads with our dialects."""

import contextlib

from proton.base.chips.chip import WARP_SIZE
from proton.base.words import did_you_mean
from proton.compat.triton.text import (
    accesses,
    encodings,
    shared_memory,
    tensor_maps,
    tiles,
    tma,
    warp_groups,
)
from proton.compat.triton.text.cursor import Cursor, Token
from proton.compat.triton.text.encodings import Encoding
from proton.compat.triton.text.functions import FunctionReader
from proton.compat.triton.text.made import Context, Made, Rule
from proton.compat.triton.text.syntax import OpReader, ParsedOp
from proton.compat.triton.text.translation import Piece, Translation
from proton.compat.triton.text.types import TypeReader
from proton.dialect.attributes import (
    CONSTANCY,
    CONTIGUITY,
    DIVISIBILITY,
    NUM_WARPS,
    THREADS_PER_WARP,
)

FORMS: dict[str, tuple[str, Rule]] = {
    **tiles.FORMS,
    **accesses.FORMS,
    **shared_memory.FORMS,
    **tma.FORMS,
    **tensor_maps.FORMS,
    **warp_groups.FORMS,
}
RENAMED = {"tt.call": "func.call", "tt.return": "func.return"}
_OURS = ("tt.", "ttg.", "ttng.")
_HINTS = (DIVISIBILITY, CONTIGUITY, CONSTANCY)


def translated(text: str, file: str, level: str) -> Translation:
    """The text as our dialects are written; `level` is "ttir" or "ttgir". Raises CompilationError
    with the place of what does not parse, UnsupportedLanguageConstruct for what we have not."""
    return _Translator(text, file, level).run()


class _Translator:
    def __init__(self, text: str, file: str, level: str) -> None:
        self.cursor = Cursor(text, file)
        self.encodings: dict[str, Encoding] = {}
        self.types = TypeReader(self.cursor, self.encodings, has_maps=level != "ttir")
        self.reader = OpReader(self.cursor, self.types)
        self.context = Context(self.cursor, level)
        self.functions = FunctionReader(self.reader, self.types)
        self.pieces: list[Piece] = []
        self.copied = 0  # the text up to here is among the pieces
        self.all_warps, self.has_groups = 0, False

    def run(self) -> Translation:
        """Goes over the whole text."""
        if self.context.level == "ttir":
            self._find_paddings()
        self._region()
        end = self.cursor.peek()
        if end.kind != "end":
            self.cursor.refuse(f"expected the end of the module, got {end.text!r}", end)
        self._copy_to(len(self.cursor.text))
        return Translation(self.cursor.text, tuple(self.pieces))

    def _find_paddings(self) -> None:
        """A descriptor's type says here what lies outside of its tensor, and in Triton's text the
        op that makes it does: it is looked for ahead of all types. Of several for blocks of one
        shape it is the first one's, and what others make is known where it is used; only a loop, a
        branch or a call that takes one of those would be refused."""
        ahead = Cursor(self.cursor.text, self.cursor.file)
        types = TypeReader(ahead, self.encodings)
        reader = OpReader(ahead, types)
        form, _ = FORMS["tt.make_tensor_descriptor"]
        while (token := ahead.next()).kind != "end":
            if token.text == "tt.make_tensor_descriptor":
                op = ParsedOp(token.text, [], token)
                reader.read(op, form)
                with contextlib.suppress(KeyError, ValueError):  # which the op's own turn refuses
                    self.types.paddings.setdefault(
                        op.type_of("result").text, accesses.padding_of(op)
                    )

    # Pieces

    def _copy_to(self, place: int) -> None:
        """The text up to a place as it is."""
        if place > self.copied:
            self.pieces.append(Piece(self.cursor.text[self.copied : place], self.copied, True))
        self.copied = max(self.copied, place)

    def _put(self, text: str, token: Token) -> None:
        """Text in the place of what was read, which began with a token."""
        self._copy_to(token.start)
        self.pieces.append(Piece(text, token.start))
        self.copied = self.cursor.place

    # What comes next

    def _region(self) -> None:
        """All up to the brace that closes what was open, or to the end."""
        depth = 0
        while True:
            token = self.cursor.peek()
            if token.kind == "end" or (token.text == "}" and not depth):
                return
            depth += (token.text == "{") - (token.text == "}")
            self._one()

    def _one(self) -> None:
        token = self.cursor.peek()
        match token.kind:
            case "word":
                self._word(token)
            case "value":
                self._value(token)
            case "string":
                self._string(token, [], token)
            case "alias":
                self._alias(token)
            case _:
                self.cursor.next()

    def _word(self, token: Token) -> None:
        if token.text in FORMS:
            self._op(token, [], token)
        elif self.types.begins(token):
            self._type(token)
        elif token.text == "module":
            self._module()
        elif token.text == "ttg.warp_specialize":
            self._groups(token)
        elif token.text == "tt.func":
            self.cursor.next()
            self.context.begin_function()
            self.types.laid_out, self.has_groups = None, False
            self._put(self.functions.read(token), token)
            self._region()
            self._check_around_groups()
            self.cursor.expect("}")
        else:
            self.cursor.next()
            if token.text in RENAMED:
                if self.context.in_group:
                    warp_groups.check(self.cursor, token)
                self._put(RENAMED[token.text], token)
            elif token.text in _HINTS and self.cursor.accept("="):
                self._hint(token)
            elif token.text.startswith(_OURS) and not self.cursor.at("=", ",", "}"):
                self._unknown(token)

    def _type(self, token: Token) -> None:
        if token.text == "tensor":
            self.cursor.next()
            is_type = self.cursor.at("<")
            self.cursor.back_to(token)
            if not is_type:
                self.cursor.next()
                return
        self._put(self.types.read().text, token)

    def _hint(self, token: Token) -> None:
        """`tt.divisibility = dense<16> : tensor<1xi32>`: one number for each dimension."""
        start = self.cursor.peek().start
        while not self.cursor.at(",", "}"):
            is_open = self.cursor.at("<", "[", "(", "{")
            _ = self.cursor.balanced() if is_open else self.cursor.next()
        numbers = self.reader.integers(self.cursor.text[start : self.cursor.place], token)
        self._put(f"{token.text} = array<i64: {', '.join(map(str, numbers))}>", token)

    def _alias(self, token: Token) -> None:
        """A layout that gets a name is kept for where it is used."""
        if self.types.begins(token):
            self._type(token)
            return
        self.cursor.next()
        if token.text.startswith("#") and self.cursor.at("="):
            self.cursor.next()
            if self.cursor.peek().text.startswith(("#ttg.", "#ttng.")):
                self.encodings[token.text] = encodings.parse(self.cursor, self.encodings)
                self._put("", token)

    def _module(self) -> None:
        token = self.cursor.next()
        if not self.cursor.accept("attributes"):
            return
        attributes = self.reader.attributes()
        for name, wanted in ((THREADS_PER_WARP, WARP_SIZE), ("ttg.num-ctas", 1)):
            said = attributes.get(name, f"{wanted}")
            if self.reader.integers(said, token) != [wanted]:
                self.cursor.unsupported(
                    f"modules with {name} = {attributes[name]} are not supported",
                    token,
                    f"compile the kernel for {wanted}",
                )
        if NUM_WARPS in attributes:
            self.types.warps = self.reader.integers(attributes[NUM_WARPS], token)[0]
            self.all_warps = warp_groups.program_warps(self.cursor.text, self.types.warps)
            self.context.warps = self.all_warps
            self._put(f'module attributes {{"{NUM_WARPS}" = {self.all_warps} : i32}}', token)
        else:
            self._put("module", token)

    # Groups of warps

    def _groups(self, token: Token) -> None:
        """`ttg.warp_specialize(...)`, up to its types."""
        if self.has_groups or self.context.in_group:
            self.cursor.unsupported(
                "a second ttg.warp_specialize is not supported",
                token,
                "compile the .ttir of the kernel, which has no groups",
            )
        if not self.types.warps:
            self.cursor.unsupported(
                "groups of warps are not supported in a module that does not say how many warps "
                "the first one has",
                token,
                f'write module attributes {{"{NUM_WARPS}" = 4 : i32}}, in a file .ttgir',
            )
        self.has_groups = True
        self._check_around_groups()
        self._copy_to(token.start)
        self.cursor.next()
        self.cursor.expect("(")
        operands = self.cursor.values()
        self.cursor.expect(")")
        if self.cursor.accept("attributes"):
            self.reader.attributes()
        self.cursor.expect("default")
        groups = [self._group(self.types.warps)]
        while self.cursor.peek().text.startswith("partition"):
            groups.append(self._partition(operands))
        self.cursor.expect(":")
        self.types.signature()
        self.reader.location()
        self.copied = self.cursor.place
        self.types.laid_out = None
        for part in warp_groups.nested(groups, self.all_warps):
            assert isinstance(part, str | Piece)
            self.pieces.append(part if isinstance(part, Piece) else Piece(part, token.start))

    def _partition(self, operands: list[str]) -> warp_groups.WarpPartition:
        """`partition0(...) num_warps(4) {...}`, whose arguments are these operands."""
        token = self.cursor.next()
        names = self._parameters()
        if len(names) != len(operands):
            self.cursor.refuse(
                f"{token.text} takes {len(names)} values, and is given {len(operands)}", token
            )
        self.cursor.expect("num_warps")
        self.cursor.expect("(")
        warps = int(self.cursor.of_kind("number", "a number of warps"))
        self.cursor.expect(")")
        with self.context.region():
            known = [self.context.aliases.get(name, name) for name in operands]
            self.context.aliases.update(zip(names, known, strict=True))
            return self._group(warps)

    def _group(self, warps: int) -> warp_groups.WarpPartition:
        """A region that so many warps run."""
        outer = self.pieces, self.types.warps
        opening = self.cursor.expect("{")
        self.pieces, self.copied = [], opening.start
        self.types.warps = self.context.warps = warps
        self.context.in_group = True
        with self.context.region():
            self._region()
        self._copy_to(self.cursor.expect("}").end)
        region = list[object](self.pieces)
        self.pieces, self.types.warps = outer
        self.context.warps, self.context.in_group = self.all_warps, False
        return warp_groups.WarpPartition(warps, region)

    def _parameters(self) -> list[str]:
        """The names of `(%a: type, ...)`, each of which stands for an operand."""
        names: list[str] = []
        self.cursor.expect("(")
        while not self.cursor.accept(")"):
            names.append(self.cursor.of_kind("value", "an argument"))
            self.cursor.expect(":")
            self.types.read()
            self.reader.location()
            self.cursor.accept(",")
        return names

    def _check_around_groups(self) -> None:
        """What is around groups is run by all of them, and layouts are for one; so are those of
        other functions."""
        if self.all_warps != self.types.warps and self.types.laid_out is not None:
            self.cursor.unsupported(
                "tensors outside of the groups of ttg.warp_specialize are not supported",
                self.types.laid_out,
                "compile the .ttir of the kernel, which has no groups",
            )

    # Ops

    def _value(self, token: Token) -> None:
        """The results of an op of Triton's, or a value by itself."""
        results, name = self._results()
        if name.text in FORMS:
            self._op(name, results, token)
        elif name.kind == "string" and results:
            self._string(name, results, token)
        else:
            end = self.cursor.text.find("\n", name.end)
            for result, _ in results:
                self.context.define(result, name.text, self.cursor.text[name.end : end])
            self.cursor.back_to(token)
            self.cursor.next()
            if token.text in self.context.aliases:
                self._put(self.context.aliases[token.text], token)

    def _results(self) -> tuple[list[tuple[str, int]], Token]:
        """`%a, %b:2 =`, and the token behind it; nothing where that is not what comes next."""
        found: list[tuple[str, int]] = []
        while self.cursor.peek().kind == "value":
            name, count = self.cursor.next().text, 1
            if self.cursor.accept(":"):
                number = self.cursor.peek()
                if number.kind != "number":
                    return [], number
                count = int(self.cursor.next().text)
            found.append((name, count))
            if self.cursor.accept("="):
                return found, self.cursor.peek()
            if not self.cursor.accept(","):
                break
        return [], self.cursor.peek()

    def _op(self, name: Token, results: list[tuple[str, int]], first: Token) -> None:
        """An op that is written by a form."""
        self.cursor.back_to(name)
        self.cursor.next()
        form, rule = FORMS[name.text]
        op = ParsedOp(name.text, results, name)
        if form:
            self.reader.read(op, form)
        self._make(op, rule, first)

    def _string(self, name: Token, results: list[tuple[str, int]], first: Token) -> None:
        """An op in MLIR's generic form; a string by itself."""
        self.cursor.back_to(name)
        self.cursor.next()
        plain = name.text.strip('"')
        if not self.cursor.at("("):
            return
        if plain not in tiles.GENERIC:
            if plain.startswith(_OURS):
                self.cursor.unsupported(
                    f"{plain} in MLIR's generic form is not supported",
                    name,
                    "print the module as Triton does, without --mlir-print-op-generic",
                )
            return
        self._copy_to(first.start)
        op = ParsedOp(plain, results, name)
        self.cursor.next()
        op.values["operands"] = self.cursor.values()
        self.cursor.expect(")")
        if self.cursor.accept("<"):
            op.attributes = self.reader.attributes()
            self.cursor.expect(">")
        op.regions = self._regions()
        if self.cursor.at("{"):
            op.attributes |= self.reader.attributes()
        self.cursor.expect(":")
        op.types["operands"], op.types["results"] = self.types.signature()
        op.location = self.reader.location()
        self._make(op, tiles.GENERIC[plain], first)

    def _regions(self) -> list[object]:
        """Those of `({...}, {...})`, each as its pieces."""
        found: list[object] = []
        self.cursor.expect("(")
        outer = self.pieces
        while not self.cursor.accept(")"):
            opening = self.cursor.expect("{")
            self.pieces, self.copied = [], opening.start
            self._region()
            closing = self.cursor.expect("}")
            self._copy_to(closing.end)
            found.append(self.pieces)
            self.cursor.accept(",")
        self.pieces = outer
        return found

    def _make(self, op: ParsedOp, rule: Rule, first: Token) -> None:
        """Puts what a rule makes of an op in its place."""
        if self.context.in_group:
            warp_groups.check(self.cursor, op.place)
        for name, values in op.values.items():
            op.values[name] = [self.context.aliases.get(value, value) for value in values]
        try:
            made = rule(self.context, op)
        except (KeyError, ValueError, IndexError) as problem:
            said = (
                f"lacks {problem}" if isinstance(problem, KeyError) else f"is not right: {problem}"
            )
            self.cursor.refuse(f"{op.name} {said}", op.place)
        self._put("", first)
        for step in made:
            name, one = step if isinstance(step, tuple) else (_named(op.results), step)
            self._write(one, f"{name} = " if name else "", op)

    def _write(self, made: Made, results: str, op: ParsedOp) -> None:
        self.pieces.append(Piece(results + made.head(), op.place.start))
        for number, region in enumerate(made.regions):
            self.pieces.append(Piece(", " if number else " (", op.place.start))
            assert isinstance(region, list)
            self.pieces.extend(region)
        closing = ")" if made.regions else ""
        self.pieces.append(Piece(f"{closing}{made.tail()}{op.location}\n", op.place.start))

    def _unknown(self, token: Token) -> None:
        self.cursor.unsupported(
            f"{token.text} is not supported{did_you_mean(token.text, FORMS)}",
            token,
            "compile the kernel from Python, or the IR of an earlier level, .ttir",
        )


def _named(results: list[tuple[str, int]]) -> str:
    return ", ".join(name if count == 1 else f"{name}:{count}" for name, count in results)
