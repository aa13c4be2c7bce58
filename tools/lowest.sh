#!/usr/bin/env bash
# Installs the loop with the lowest versions that pyproject.toml promises and runs its quick tests in two environments:
# build/lowest/plain without the simulator, which allows NumPy 1, for the wings that need none, and build/lowest/sim with it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset PYTHONPATH AMENT_PREFIX_PATH LD_LIBRARY_PATH VIRTUAL_ENV
python=${PYTHON:-python3}

# tests of the nodes and of ROS 2's interfaces; of torch, the hub or the studies; of what Pillow writes since 11
not_here=(recording/test_recording.py simulation/test_{description,gazebo,gazebo_props,lockstep}.py decision/test_openvla.py models/test_catalogue.py
  perception/test_learned_metrics.py perception/test_images.py)
# tests of the simulator or of served pages in wings that need neither
not_plain=(cognition/test_final_answer.py pages/test_pages.py world/test_arms.py)

lowest() { # NAME EXTRAS FOLDERS...: an environment with these extras, and the tests of these folders in it
  local environment=build/lowest/$1 extras=$2 pip
  shift 2
  rm -rf "$environment"
  "$python" -m venv "$environment"
  pip="$environment/bin/pip --disable-pip-version-check -q"
  $pip install "$(grep '^pip==' requirements/build.txt)"
  $pip install -c requirements/lock.txt uv hypothesis pytest pytest-timeout pytest-xdist
  # second opinions of the tests, which bound nothing: the lowest that fit
  printf '%s\n' 'sacrebleu>=2.5' 'scikit-image>=0.25' 'scikit-learn>=1.5' |
    "$environment/bin/uv" pip compile -q --resolution lowest-direct --python "$environment/bin/python" pyproject.toml - \
      ${extras//,/ --extra } -o "$environment/lowest.txt"
  $pip install -r "$environment/lowest.txt"
  $pip install --no-deps -e .
  (cd tests/unit && "../../$environment/bin/pytest" -n "${WORKERS:-2}" --dist loadgroup \
    -m "not (graph or browser or render or slow)" "$@" "${not_here[@]/#/--ignore=}")
}

lowest plain ,dataset,quality,recording,remote \
  calibration cognition foundations pages perception rating recording results statistics world \
  "${not_plain[@]/#/--ignore=}"
lowest sim ,dataset,quality,recording,remote,serve,sim \
  calibration cognition decision execution experiment foundations leaderboard models monitor pages perception rating recording \
  results simulation statistics study web world
