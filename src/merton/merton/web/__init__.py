"""Shared by all servers of Merton: guards of requests, places of connections, the listener before an application."""

__all__ = ["acceptor", "access", "hall", "places", "requests", "serving"]
