"""Budget of a curation: the calls of models and the money that it may take, and the clear end when they are spent."""

from __future__ import annotations

from pathlib import Path

from merton.config import Model, validated
from merton.errors import InfrastructureError, InputError, MertonError
from merton.files import whole_lines

CALLS = "calls.jsonl"
"""The file of a curation's calls, in its folder."""


class BudgetExhaustedError(MertonError):
    """The next call would be beyond the budget. An end, not a fault: everything so far is kept."""


class Call(Model):
    """One call, a line of calls.jsonl.

    Attributes:
        key: under which its answer is in the cache; with ".1" behind it after that was forgotten once, and so on.
        model: its name in the catalogue.
        prompt: name of the prompt's file.
        version: of it, 16 hexadecimal digits of its SHA-256.
        price: of the call.
    """

    key: str
    model: str
    prompt: str
    version: str
    price: float


class Budget:
    """Counts the calls of a curation and their price; one for all of its roles.

    Ours: a call counts whether it is made now or was in the cache, because then the limits hold for a curation however
    often it is killed and started again, and an end by the budget is at the same call each time. A call that is
    needed twice counts once.

    Args:
        max_calls: most calls; None for no limit.
        max_cost: most money, in the currency of the catalogue's `cost_per_1000`; None for no limit.
        file: keeps the calls, a line for each, in the order in which they were first needed; None for none.

    Raises:
        InputError: a limit that leaves room for nothing, or a file with a line that is no call.
        InfrastructureError: here or later, the file cannot be read or written.
    """

    def __init__(self, max_calls: int | None = None, max_cost: float | None = None, file: Path | None = None) -> None:
        if max_calls is not None and max_calls < 1:
            raise InputError(f"a budget needs at least one call, got --max-calls {max_calls}")
        if max_cost is not None and not max_cost > 0:
            raise InputError(f"a budget of money must be more than 0, got --max-cost {max_cost:g}")
        self.max_calls, self.max_cost = max_calls, max_cost
        self.cost = 0.0
        """Of all calls so far."""
        self._keys: set[str] = set()
        self._file = file
        for call in [] if file is None else _read(file):
            self._keys.add(call.key)
            self.cost += call.price

    @property
    def calls(self) -> int:
        """Calls so far, each different one once."""
        return len(self._keys)

    def charge(self, call: Call) -> None:
        """Count a call.

        Raises:
            BudgetExhaustedError: it would be one too many, or too dear; it is not counted.
            InfrastructureError: the file cannot be written.
        """
        if call.key in self._keys:
            return
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise self._exhausted(f"{self.max_calls} calls", "--max-calls")
        # sums of prices are rounded
        if self.max_cost is not None and self.cost + call.price > self.max_cost * (1 + 1e-9):
            raise self._exhausted(f"{self.max_cost:g}", "--max-cost")
        if self._file is not None:
            try:
                with self._file.open("ab") as file:
                    file.write(call.model_dump_json().encode() + b"\n")
            except OSError as error:
                raise InfrastructureError(f"cannot write {self._file}: {error.strerror or error}") from None
        self._keys.add(call.key)
        self.cost += call.price

    def _exhausted(self, limit: str, option: str) -> BudgetExhaustedError:
        return BudgetExhaustedError(
            f"the budget of {limit} is spent after {self.calls} calls of models (cost {self.cost:g}); every answer is "
            f"kept, and the same command with a larger {option} goes on from here"
        )


def _read(file: Path) -> list[Call]:
    """The calls in a file; half of a last line, left by a kill, is cut off."""
    return [validated(Call, line, f"{file}, line {number}") for number, line in enumerate(whole_lines(file), 1)]
