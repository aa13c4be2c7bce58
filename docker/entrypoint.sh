#!/usr/bin/env bash
# Runs a command in the built workspace.
set -e
source /merton/install/setup.bash
exec "$@"
