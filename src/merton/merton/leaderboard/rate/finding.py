"""The first sentence of the page of `merton rate`: the leader, the cases beyond it, and when the order settles."""

from __future__ import annotations

from collections.abc import Sequence

from merton.leaderboard.rate.newcomers import Placed
from merton.leaderboard.rate.tail import Beyond, LongTail
from merton.pages.words import interval_words, number, percent
from merton.rating.convergence import Convergence
from merton.results.text import counted, printable

NOTHING = "Nothing was found to rate: more agents or more test cases are needed."


def rate_finding(
    tails: Sequence[LongTail] = (), followed: Sequence[Convergence] = (), placed: Sequence[Placed] = ()
) -> str:
    """One sentence of what was asked for: newcomers, the long tail, and how the ratings settle.

    Args:
        tails, followed: the first method counts.
        placed: newcomers, in their order.
    """
    parts = [_place(item) for item in placed]
    parts += [_leader(tails[0])] if tails else []
    parts += [settled] if followed and (settled := _settled(followed[0])) else []
    return f"{'; '.join(part for part in parts if part)}." if any(parts) else NOTHING


def _place(item: Placed) -> str:
    best, worst = item.places
    place = f"place {item.standing.rank} of {item.of}" + (f" ({best} to {worst} are possible)" if best != worst else "")
    return f"{printable(item.id, 40)} takes {place}, by {counted(item.matches, 'case')}"


def _leader(tail: LongTail) -> str:
    """The best rated agent, those not told apart from it, and the share of the cases that are beyond it."""
    agents = [item for item in tail.beyond if item.to_hardest]
    if not agents:
        return ""
    first, cases = agents[0], len(tail.case_ratings)
    text = f"{printable(first.name, 40)} is rated best, {_rating(first)}"
    if rivals := [item for item in agents[1:] if _overlap(first, item)]:
        others = f" and {counted(len(rivals) - 1, 'other')}" if len(rivals) > 1 else ""
        text += f", not told apart from {printable(rivals[0].name, 40)}{others}"
    return f"{text}; {percent(first.shares[0])}\u00a0% of {counted(cases, 'case')} are harder than it is strong"


def _rating(item: Beyond) -> str:
    bound = {"only wins": "at least ", "only losses": "at most "}.get(item.flag, "")
    interval = f" {interval_words(item.interval, 0)}" if item.interval else ""
    return f"{bound}{number(item.rating, 0)}{interval}"


def _overlap(first: Beyond, other: Beyond) -> bool:
    """Whether two agents have the same rating, or intervals with a point in common."""
    if first.interval is None or other.interval is None:
        return first.rating == other.rating
    return first.interval[0] <= other.interval[1]


def _settled(item: Convergence) -> str:
    """The share of the matches from which on the agents stand, on average, in their final order."""
    if len(item.agents_by_share) < 2:
        return ""
    orders = [_order(item, place) for place in range(len(item.shares))]
    first = next(place for place in range(len(orders)) if all(order == orders[-1] for order in orders[place:]))
    share = percent(item.shares[first])
    if first == len(orders) - 1:
        return "the order of the agents still changes with the last matches: more of them would settle it"
    return f"the order of the agents is the final one from {share}\u00a0% of the matches on"


def _order(item: Convergence, place: int) -> list[str]:
    known = {name: points[place] for name, points in item.agents_by_share.items()}
    means = {name: spread.mean for name, spread in known.items() if spread is not None}
    return sorted(means, key=lambda name: (-means[name], name))
