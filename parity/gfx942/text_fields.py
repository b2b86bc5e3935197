# SPDX-License-Identifier: Apache-2.0
"""The fields of an instruction on their way into its text: what no part of the text has taken at the end has no text."""

from __future__ import annotations

from parity.gfx942.decode import Instruction
from parity.gfx942.faults import Unsupported


class Fields:
    """An instruction's fields, from which the parts of the text take what they express."""

    def __init__(self, instruction: Instruction, words: list[str]) -> None:
        self.instruction, self.name, self.format = instruction, instruction.name, instruction.format
        self.words = words  # the operands' layout
        self._scalars: set[str] = set()
        self._left = dict(instruction.fields)
        self.literal = self._left.pop("literal", None)

    def peek(self, field: str) -> int:
        """The field's value in the instruction, whether taken or not."""
        return self.instruction.fields[field]

    def has(self, field: str) -> bool:
        return field in self._left

    def take(self, field: str) -> int:
        return self._left.pop(field)

    def take_bit(self, field: str, index: int) -> int:
        """Bit `index` of a field, 0 where the format has no such field; the other bits stay."""
        if field not in self._left:
            return 0
        bit = self._left[field] >> index & 1
        self._left[field] &= ~(1 << index)
        return bit

    def expect(self, **values: int) -> None:
        """Take fields for which the assembler always writes these values."""
        for field, value in values.items():
            actual = self._left.pop(field)
            if actual != value:
                raise Unsupported(f"{field}={actual}, where the assembler writes {value}")

    def reads_scalar(self, text: str) -> None:
        """A vector instruction reads this scalar register or literal; gfx9 has one bus for all of them."""
        self._scalars.add(text)
        if len(self._scalars) > 1:
            raise Unsupported(f"{' and '.join(sorted(self._scalars))} are two scalar sources")

    def finish(self) -> None:
        """Raise Unsupported if a field is left that is not zero."""
        for field, value in self._left.items():
            if value:
                raise Unsupported(f"{field}={value}")
