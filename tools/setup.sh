#!/usr/bin/env bash
# Make .venv ready: ROS 2 Jazzy from wheels, Merton's interfaces built into it, Merton itself installed from this checkout.
# `setup.sh` installs what experiments need, `setup.sh all` also what models, tests and lint need.
# Each step leaves a stamp that holds the hash of what it was made from, so that a second run does nothing.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
python=${PYTHON:-python3}
venv="$root/.venv"
build="$root/build"
log="$build/setup.log"
stamps="$venv/.stamps"
started=$SECONDS
mkdir -p "$build"
exec 9>"$build/setup.lock"
flock -n 9 || { echo "another set-up is running here; waiting for it" >&2; flock 9; }

# A sourced ROS or another virtual environment must not leak into this one.
unset PYTHONPATH AMENT_PREFIX_PATH CMAKE_PREFIX_PATH LD_LIBRARY_PATH _ROS_WHEELS_BOOTSTRAP_COMPLETE VIRTUAL_ENV PYTHONHOME

say() { printf '%s\n' "$*" >&2; }
fail() { # WHAT HINT
  say ""
  say "setup: $1"
  say "       $2"
  exit 1
}

hash_of() { # PATHS: a hash over the contents of all files below them
  find "$@" -type f -not -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16
}

step() { # NAME HASH TITLE HINT OPTIONS... -- COMMAND...: run COMMAND unless its stamp says it was done from the same inputs
  local name=$1 hash=$2 title=$3 hint=$4 options=()
  shift 4
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  [ "$(cat "$stamps/$name" 2>/dev/null)" = "$hash" ] && return 0
  # in a bash of its own, where `set -e` holds: in a condition it would go on after a command that failed
  if ! "$python" tools/progress.py --title "$title" --log "$log" "${options[@]}" -- bash -euo pipefail -c '"$@"' step "${@:2}"; then
    tail -n 15 "$log" | sed 's/^/    /' >&2
    fail "'$title' failed; the whole output is in ${log#"$root/"}" "$hint"
  fi
  mkdir -p "$stamps"
  printf '%s' "$hash" >"$stamps/$name"
}

check_python() {
  command -v "$python" >/dev/null || fail "no '$python' here" "install Python 3.10 to 3.13, or name one: make setup PYTHON=/usr/bin/python3.12"
  "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' ||
    fail "$("$python" --version) is not supported" "name a Python 3.10 to 3.13: make setup PYTHON=/usr/bin/python3.12"
  [ "$(uname -m)" = x86_64 ] || fail "there are no ROS 2 wheels for $(uname -m)" "on this machine install ROS 2 Jazzy and use colcon build (see README)"
}

missing_debian_packages() {
  "$python" -c 'import ensurepip' 2>/dev/null || echo python3-venv
  "$python" -c 'import sysconfig, os, sys; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || echo python3-dev
  command -v g++ >/dev/null || echo g++
  command -v cmake >/dev/null || echo cmake
  local libraries
  libraries=$(ldconfig -p 2>/dev/null || /sbin/ldconfig -p)
  grep -q 'libEGL\.so\.1' <<<"$libraries" || echo libegl1
  grep -q 'libGL\.so\.1' <<<"$libraries" || echo libgl1
  # pinocchio is linked against it
  grep -q 'libgomp\.so\.1' <<<"$libraries" || echo libgomp1
  # pyrealsense2 is linked against it
  grep -q 'libusb-1\.0\.so\.0' <<<"$libraries" || echo libusb-1.0-0
  # EGL needs a driver: Mesa's software renderer serves machines without a GPU
  grep -q 'libEGL_mesa\.so\.0\|libEGL_nvidia\.so\.0' <<<"$libraries" || echo libegl-mesa0 libgl1-mesa-dri
}

install_debian_packages() {
  local packages sudo=""
  packages=$(missing_debian_packages | tr '\n' ' ')
  [ -z "${packages// /}" ] && return 0
  if [ "$(id -u)" != 0 ]; then
    sudo="sudo"
    sudo -n true 2>/dev/null || fail "Debian packages are missing: $packages" "run: sudo apt-get install -y --no-install-recommends $packages"
  fi
  command -v apt-get >/dev/null || fail "missing: $packages" "install them with this system's package manager"
  say "installing Debian packages: $packages"
  { $sudo apt-get update && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages; } >"$log" 2>&1 ||
    { tail -n 5 "$log" >&2; fail "apt-get could not install: $packages" "run: sudo apt-get update && sudo apt-get install -y $packages"; }
}

# The first choice of two engines that shut generated code in; without it, the kernel's namespaces serve.
install_bubblewrap() {
  local sudo=""
  if command -v bwrap >/dev/null || ! command -v apt-get >/dev/null; then return 0; fi
  if [ "$(id -u)" != 0 ]; then sudo -n true 2>/dev/null || return 0; sudo=sudo; fi
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends bubblewrap >"$log" 2>&1 ||
    say "bubblewrap could not be installed; generated code is shut in without it (docs/studies/sandbox.md)"
}

# The pip that Python brings may be too old to tell how far a download is.
make_venv() {
  "$python" -m venv --clear "$venv"
  "$venv/bin/pip" install --disable-pip-version-check "$(grep '^pip==' requirements/build.txt)"
}

install_pinned() { # ARGUMENTS of pip: every package at the version in the lock, those that another one brings too
  "$venv/bin/pip" install --disable-pip-version-check --progress-bar raw --prefer-binary --no-compile -c requirements/lock.txt "$@"
}

# numpy, because the generators of messages need its headers
install_ros() { install_pinned -r requirements/ros.txt -r requirements/build.txt numpy; }

# By a path entry, not a finder: else a folder `merton` beside a script hides the library.
install_editable() { # ARGUMENTS of pip
  install_pinned --no-build-isolation --use-pep517 --config-settings editable_mode=compat "$@"
}

# Of pinocchio's 340 MB, 160 are headers of it and of Boost: nothing is compiled against them.
install_requirements() { # ARGUMENTS of pip
  install_editable "$@"
  rm -rf "$packages/cmeel.prefix/include"
}

# Byte-compiles on all cores; pip would use one. Tests of packages and rarely used models are compiled on their first
# import instead. Some packages hold files of other Python versions: their failure is none of ours.
compile_python() {
  "$venv/bin/python" -m compileall -j 0 -x '/site-packages/.*/tests?/|/transformers/models/' "$venv/lib" || true
}

# The virtual environment is an ament prefix: packages are found in it without sourcing anything.
make_ament_prefix() {
  local site index="$venv/share/ament_index/resource_index/packages" name
  site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo 'import os, sys; os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)' >"$site/ament_prefix.pth"
  mkdir -p "$index"
  for name in merton merton_studies merton_nodes merton_bringup merton_description; do
    mkdir -p "$venv/share/$name"
    touch "$index/$name"
    ln -sfn "$root/src/$name/package.xml" "$venv/share/$name/package.xml"
  done
  # as colcon build --symlink-install does: edits in the checkout take effect at once
  ln -sfn "$root/urdf" "$venv/share/merton_description/urdf"
  rm -rf "$venv/share/merton_bringup/launch" && mkdir "$venv/share/merton_bringup/launch" # ros2 launch follows no linked folder
  ln -sfn "$root"/launch/*.launch.py "$venv/share/merton_bringup/launch/"
  ln -sfn "$root/config" "$venv/share/merton_bringup/config"
}

build_interfaces() {
  AMENT_PREFIX_PATH="$venv" cmake -S src/merton_interfaces -B "$build/merton_interfaces" \
    -DCMAKE_PREFIX_PATH="$venv" -DCMAKE_INSTALL_PREFIX="$venv" -DPython3_EXECUTABLE="$venv/bin/python" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE="-O1 -DNDEBUG" -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" -DBUILD_TESTING=OFF -DCMAKE_PROJECT_INCLUDE="$root/tools/wheel_includes.cmake" &&
    AMENT_PREFIX_PATH="$venv" cmake --build "$build/merton_interfaces" -j "$(nproc)" &&
    cmake --install "$build/merton_interfaces" &&
    "$venv/bin/python" -c 'import merton_interfaces.msg, merton_interfaces.srv, merton_interfaces.action'
}

install_merton() {
  install_editable --no-deps -e . -e src/merton_studies -e src/merton_nodes &&
    for package in merton merton_nodes; do
      "$venv/bin/python" - "$package" "$venv" <<'PYTHON' || return 1
# where `ros2 run` and `ros2 launch` look for a package's programs
import sys
from importlib.metadata import distribution
from pathlib import Path

package, prefix = sys.argv[1], Path(sys.argv[2])
folder = prefix / "lib" / package
folder.mkdir(parents=True, exist_ok=True)
for entry in distribution(package).entry_points.select(group="console_scripts"):
    assert (prefix / "bin" / entry.name).exists(), f"pip did not install {entry.name}"
    link = folder / entry.name
    link.unlink(missing_ok=True)
    link.symlink_to(f"../../bin/{entry.name}")
PYTHON
    done
}

# numba compiles on first use and keeps the result beside the source: better here than in nine nodes at once
compile_kernels() {
  "$venv/bin/python" -c '
import numpy as np
from merton.cognition.text import bleu
from merton.execution.kinematics import ROBOTS
from merton.perception.distortion.compiled import compile_all
from merton.rating import agi_elo
from merton.simulation import imaging, sensor
from merton.world.observation import Intrinsics
print("1/5 distortions")
compile_all()
print("2/5 kinematics")
q = np.array([0.1, -1.7, 1.7, -1.5, -1.5, 0.0])
arm = next(iter(ROBOTS.values()))  # its lengths are arguments of the kernels: what is compiled serves all
arm.solve(arm.forward(q), q), arm.inverse(arm.forward([q])), arm.jacobian(q), arm.link_frames(q)
print("3/5 ratings")
agi_elo.rate([("a", "b", 0.5)], 0)
print("4/5 text scores")
bleu("a", "a b")
print("5/5 camera")
light, lens = np.zeros((2, 2, 3), np.float32), Intrinsics(2, 2, 2.0, 2.0, 1.0, 1.0)
imaging.exposed(sensor.D455, light, lens, sensor.AS_RENDERED, np.random.default_rng(0))
'
}

interfaces_step() {
  step interfaces "$version $(hash_of src/merton_interfaces tools/wheel_includes.cmake requirements/ros.txt)" \
    "[3/5] merton_interfaces" "remove build/merton_interfaces and try again" "$@" -- build_interfaces
}

kernels_step() {
  step kernels "$version $root $(hash_of src/merton/merton/execution/kinematics/closed_form.py src/merton/merton/execution/kinematics/universal_robot.py src/merton/merton/rating/glicko.py src/merton/merton/cognition/ngrams.py src/merton/merton/perception/distortion/compiled.py src/merton/merton/simulation/imaging.py requirements/lock.txt)" \
    "[5/5] numeric kernels" "the output above is a fault in Merton: please report it" "$@" -- compile_kernels
}

requirements_step() { # NAME TITLE MB ARGUMENTS...: install what pip is told and all that it needs, of pinned versions
  local name=$1 title=$2 mb=$3
  shift 3
  local required # the tables before those of tools, whose settings install nothing
  required=$(sed -s '/^\[tool\./,$d' pyproject.toml src/merton_studies/pyproject.toml | sha256sum | cut -c1-16)
  step "$name" "$version $* $required $(hash_of requirements/lock.txt)" "$title" "$network" \
    --about-mb "$mb" --packages "$packages" --beside "$status" -- install_requirements "$@"
}

# Compiling keeps the cores busy and downloading waits for the network: beside each other they take as long as the longer.
beside() { # STEP COMMAND...: run the step, which a file tells the progress of, beside the command
  local background=$1
  shift
  set -m # a process group of its own, so that Ctrl-C and a failure end all of it
  (log="$build/compile.log" && "$background" --status "$status") 2>"$build/compile.said" &
  local compiling=$!
  set +m
  trap "kill -- -$compiling 2>/dev/null; wait" EXIT
  "$@"
  wait_for "$compiling"
  local code=0
  wait "$compiling" || code=$?
  trap - EXIT
  cat "$build/compile.said" >&2
  return "$code"
}

wait_for() { # PROCESS: show its progress until it ends
  local before="" after=$'\n'
  [ ! -t 2 ] || before=$'\r\e[K' after=""
  while [ -d "/proc/$1" ]; do
    [ ! -s "$status" ] || printf '%s%s%s' "$before" "$(cat "$status")" "$after" >&2
    sleep 3
  done
  printf '%s' "$before" >&2
}

bytecode_step() { # NAME TITLE
  step "$1" "$version $(hash_of requirements)" "$2" "remove .venv and try again" \
    --about-files "$(find "$venv/lib" -name '*.py' | wc -l)" -- compile_python
}

everything() {
  requirements_step other_requirements "requirements of models and tests" 575 --group dev \
    -e '.[dataset,frame,gym,iqa,lab,mlflow,models,postgres,quality,recording,remote,serve,sim,tensorboard,wandb]' -e 'src/merton_studies[curation,people]'
}

version=$("$python" --version 2>&1 || true)
check_python
install_debian_packages
[ "${1:-}" != all ] || install_bubblewrap
status="$build/compile.status"
packages="$venv/lib/python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')/site-packages"
network="check the network, then try again: what was downloaded is kept"
export python venv build root packages
export -f make_venv install_pinned install_editable install_requirements install_ros compile_python make_ament_prefix build_interfaces install_merton compile_kernels
rm -f "$status"
step venv "$version $root $(grep '^pip==' requirements/build.txt)" "[1/5] virtual environment" "remove .venv and try again" -- make_venv
step ros "$version $(hash_of requirements/ros.txt requirements/build.txt requirements/lock.txt)" "[2/5] ROS 2 Jazzy" "$network" --about-mb 65 --packages "$packages" -- install_ros
beside interfaces_step requirements_step requirements "[3/5] Merton's requirements" 352 -e '.[recording,remote,serve,sim]' -e src/merton_studies
step prefix "$version $root $(hash_of tools/setup.sh) $(ls launch | tr '\n' ' ')" "[4/5] ament prefix" "remove .venv and try again" -- make_ament_prefix
step merton "$version $root $(hash_of pyproject.toml src/merton_studies/pyproject.toml src/merton_nodes/setup.cfg tools/setup.sh)" "[4/5] merton" "remove .venv and try again" -- install_merton
if [ "${1:-}" = all ]; then
  beside kernels_step everything
  bytecode_step all_bytecode "byte code"
else
  bytecode_step bytecode "[5/5] byte code"
  kernels_step
fi
[ $((SECONDS - started)) -lt 5 ] || say "ready after $((SECONDS - started)) s"
