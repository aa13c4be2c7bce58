"""The operator's screen as a local web page: images, arm, a stop button, and verdicts.

hub         the newest of everything, handed from ROS threads to browsers; nothing is ever queued
scene       the arm as lines in space, from the capsules that the safety layer checks
pictures    images as JPEG
presses     the log of presses on disk
session     one browser's WebSocket
app         the pages, the buttons, and the right to use them
server      a port and a thread
page/       the static page
"""

__all__ = ["buttons", "hub", "pictures", "scene", "server"]
