#!/usr/bin/env bash
# Installs the loop with the lowest versions that pyproject.toml promises and runs its quick tests in two environments:
# build/lowest/plain without the simulator, which allows NumPy 1, for the wings that need none, and build/lowest/sim with it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset PYTHONPATH AMENT_PREFIX_PATH LD_LIBRARY_PATH VIRTUAL_ENV
python=${PYTHON:-python3}

lowest() { # NAME EXTRAS FOLDERS...: an environment with these extras, and the tests of these folders in it
  local environment=build/lowest/$1 extras=$2 pip
  shift 2
  rm -rf "$environment"
  "$python" -m venv "$environment"
  pip="$environment/bin/pip --disable-pip-version-check -q"
  $pip install "$(grep '^pip==' requirements/build.txt)"
  $pip install -c requirements/lock.txt uv hypothesis packaging pytest pytest-timeout pytest-xdist
  # second opinions of the tests, which bound nothing: the lowest that fit
  printf '%s\n' 'sacrebleu>=2.5' 'scikit-image>=0.25' 'scikit-learn>=1.5' |
    "$environment/bin/uv" pip compile -q --resolution lowest-direct --python "$environment/bin/python" pyproject.toml - \
      ${extras//,/ --extra } -o "$environment/lowest.txt"
  $pip install -r "$environment/lowest.txt"
  $pip install --no-deps -e .
  "$environment/bin/pytest" -n "${WORKERS:-2}" --dist loadgroup -m "not (graph or browser or render or slow)" "${@/#/tests/unit/}"
}

lowest plain ,dataset,quality,recording,remote \
  calibration cognition foundations pages perception rating recording results statistics world
lowest sim ,dataset,quality,recording,remote,serve,sim \
  calibration cognition decision execution experiment foundations leaderboard models monitor pages perception rating recording \
  results simulation statistics study web world
