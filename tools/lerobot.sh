#!/usr/bin/env bash
# Installs Merton with its extra lerobot into build/lerobot, and tests the adapter with LeRobot's own classes there:
# 0.4.4 on Python 3.11, 0.6 on 3.12. Some 6 GB, most of them torch.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset PYTHONPATH AMENT_PREFIX_PATH LD_LIBRARY_PATH VIRTUAL_ENV
environment=build/lerobot

rm -rf "$environment"
"${PYTHON:-python3}" -m venv "$environment"
pip="$environment/bin/pip --disable-pip-version-check -q"
$pip install "$(grep '^pip==' requirements/build.txt)"
$pip install -e '.[lerobot,dataset]' 'pytest>=8.3,<8.4' hypothesis msgpack pytest-timeout pytest-xdist
$pip check
$pip list 2>/dev/null | grep -iE '^(lerobot|torch|torchvision|numpy|opencv[a-z-]*|merton) '
(cd tests/unit && "../../$environment/bin/pytest" -n0 decision/test_lerobot_policies.py decision/test_convention{s,_entry}.py)
