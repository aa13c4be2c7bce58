"""The operator's screen as a local web page: what the arm sees and does, a stop button, and a verdict.

hub         the newest of everything, handed from ROS threads to browsers; nothing is ever queued
scene       the arm as lines in space, from the capsules that the safety layer checks
pictures    images as JPEG
presses     who pressed what and when, kept on disk
session     one browser's WebSocket
app         the pages, the buttons, and who may use them
server      a port and a thread
page/       the static page
"""
