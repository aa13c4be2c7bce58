"""`merton rate`: how ratings settle, their long tail, and where a newcomer stands, as tables and one page."""

__all__ = ["examples", "finding", "newcomers", "page", "tail"]
