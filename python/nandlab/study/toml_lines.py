"""Where the keys of a TOML text stand: `tomllib` reads the values but keeps no positions.

The text must be valid TOML already; this only follows its shape.
"""

from __future__ import annotations

#: A key's way from the root: names, and indices of array elements.
Path = tuple[str | int, ...]


def key_lines(text: str) -> dict[Path, int]:
    """The line, from 1, on which each key (and each element of an array) is first written."""
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.at = 0
        self.lines: dict[Path, int] = {}
        self.last: dict[Path, int] = {}

    def scan(self) -> dict[Path, int]:
        table: Path = ()
        self.skip(newlines=True)
        while self.at < len(self.text):
            if self.text.startswith("[[", self.at):
                table = self.header(2)
            elif self.text[self.at] == "[":
                table = self.header(1)
            else:
                self.pair(table)
            self.skip(newlines=True)
        return self.lines

    def skip(self, *, newlines: bool) -> None:
        """Past blanks and comments."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char in " \t" or (newlines and char == "\n"):
                self.at += 1
            else:
                return

    def note(self, path: Path) -> None:
        self.lines.setdefault(path, self.text.count("\n", 0, self.at) + 1)

    def header(self, brackets: int) -> Path:
        self.at += brackets
        parts = self.key()
        path: Path = ()
        for index, part in enumerate(parts):
            path += (part,)
            if index == len(parts) - 1 and brackets == 2:
                self.note(path)
                self.last[path] = self.last.get(path, -1) + 1
            if path in self.last:
                path += (self.last[path],)
            self.note(path)
        self.skip(newlines=False)
        self.at += brackets
        return path

    def key(self) -> list[str]:
        """A dotted key."""
        parts = []
        while True:
            self.skip(newlines=False)
            quote = self.text[self.at]
            begin = self.at
            if quote in "\"'":
                self.string()
                parts.append(self.text[begin + 1 : self.at - 1])
            else:
                while self.at < len(self.text) and (self.text[self.at].isalnum() or self.text[self.at] in "_-"):
                    self.at += 1
                parts.append(self.text[begin : self.at])
                if self.at == begin:  # not TOML: go on rather than stand still
                    self.at += 1
            self.skip(newlines=False)
            if not self.text.startswith(".", self.at):
                return parts
            self.at += 1

    def pair(self, table: Path) -> None:
        begin = self.at
        path = table
        end_of_keys = self.at
        for part in self.key():
            path += (part,)
            end_of_keys, self.at = self.at, begin
            self.note(path)
            self.at = end_of_keys
        self.skip(newlines=False)
        self.at += 1  # the equals sign
        self.value(path)

    def value(self, path: Path) -> None:
        self.skip(newlines=True)
        char = self.text[self.at : self.at + 1]
        if char in ("'", '"'):
            self.string()
        elif char == "[":
            self.at += 1
            index = 0
            while self.inside("]"):
                self.note((*path, index))
                self.value((*path, index))
                index += 1
        elif char == "{":
            self.at += 1
            while self.inside("}"):
                self.pair(path)
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}\n#":
                self.at += 1

    def inside(self, closing: str) -> bool:
        """Whether another element follows; past the closing bracket when not."""
        self.skip(newlines=True)
        while self.text.startswith(",", self.at):
            self.at += 1
            self.skip(newlines=True)
        if self.at >= len(self.text) or self.text[self.at] == closing:
            self.at += 1
            return False
        return True

    def string(self) -> None:
        quote = self.text[self.at]
        triple = quote * 3
        closing = triple if self.text.startswith(triple, self.at) else quote
        self.at += len(closing)
        while self.at < len(self.text) and not self.text.startswith(closing, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(closing)
        while len(closing) == 3 and self.text.startswith(quote, self.at):  # """" ends with a quote of its own
            self.at += 1
