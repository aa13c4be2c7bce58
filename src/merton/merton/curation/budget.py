"""How many calls of models, and how much money, a curation may take, and the clear end when they are spent."""

from __future__ import annotations

from merton.errors import InputError, MertonError


class BudgetExhaustedError(MertonError):
    """The next call would be beyond the budget. An end, not a fault: everything so far is kept."""


class Budget:
    """Counts the calls of a curation and their price; one for all of its roles.

    Ours: a call counts whether it is made now or was in the cache, because then the limits hold for a curation however
    often it is killed and started again, and an end by the budget is at the same call each time. A call that is
    needed twice counts once.

    Args:
        max_calls: most calls; None for no limit.
        max_cost: most money, in the currency of the catalogue's `cost_per_1000`; None for no limit.

    Raises:
        InputError: a limit that leaves room for nothing.
    """

    def __init__(self, max_calls: int | None = None, max_cost: float | None = None) -> None:
        if max_calls is not None and max_calls < 1:
            raise InputError(f"a budget needs at least one call, got --max-calls {max_calls}")
        if max_cost is not None and not max_cost > 0:
            raise InputError(f"a budget of money must be more than 0, got --max-cost {max_cost:g}")
        self.max_calls, self.max_cost = max_calls, max_cost
        self.cost = 0.0
        """Of all calls so far."""
        self._keys: set[str] = set()

    @property
    def calls(self) -> int:
        """Calls so far, each different one once."""
        return len(self._keys)

    def charge(self, key: str, price: float) -> None:
        """Count a call.

        Args:
            key: under which its answer is in the cache.
            price: of it.

        Raises:
            BudgetExhaustedError: it would be one too many, or too dear; it is not counted.
        """
        if key in self._keys:
            return
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise self._exhausted(f"{self.max_calls} calls", "--max-calls")
        if self.max_cost is not None and self.cost + price > self.max_cost * (1 + 1e-9):  # sums of prices are rounded
            raise self._exhausted(f"{self.max_cost:g}", "--max-cost")
        self._keys.add(key)
        self.cost += price

    def _exhausted(self, limit: str, option: str) -> BudgetExhaustedError:
        return BudgetExhaustedError(
            f"the budget of {limit} is spent after {self.calls} calls of models (cost {self.cost:g}); every answer is "
            f"kept, and the same command with a larger {option} goes on from here"
        )
