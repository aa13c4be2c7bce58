"""Pages on which people define tasks, judge episodes and check the machines: designs, answers, statistics."""

__all__ = [
    "desk",
    "examples",
    "export",
    "invitations",
    "item",
    "judged",
    "ledger",
    "media",
    "project",
    "protocol",
    "protocols",
    "rating",
    "ratings",
    "screening",
    "serve",
    "sources",
    "statistics",
    "statistics_page",
    "study",
    "workload",
]
