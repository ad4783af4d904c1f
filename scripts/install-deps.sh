#!/usr/bin/env bash
# Installs what building and testing need on Debian 12 and is missing: packages by apt, Python packages into
# build/venv. Says first what that is; does nothing, quickly, when nothing is missing.
#
#   scripts/install-deps.sh [--dry-run] [--fuzz]
#
# --fuzz: also Clang and its sanitizers, which scripts/fuzz.sh builds with.
#
# CUDA is not installed: with nvcc at hand emitted code is compiled for GPUs too, without it that is left out.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

packages=(
  ca-certificates git cmake ninja-build g++ ccache lld-22
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools clang-format-22
  libgtest-dev libbenchmark-dev
  python3 python3-venv chromium fonts-dejavu-core
)
dry_run=
for option in "$@"; do
  case $option in
    --dry-run) dry_run=yes ;;
    --fuzz) packages+=(clang-22 libclang-rt-22-dev) ;;
    *) die "unknown option $option; --dry-run and --fuzz are accepted" ;;
  esac
done

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else die "need to be root, or to have sudo, for: $*"
  fi
}

# LLVM 22 reached Debian 12 through its security archive.
check_llvm_source() {
  local candidate
  candidate=$(apt-cache policy libmlir-22-dev | sed -n 's/ *Candidate: //p')
  [ -n "$candidate" ] && [ "$candidate" != "(none)" ] ||
    die "no apt source has libmlir-22-dev; enable Debian's security archive (suite bookworm-security, component main)"
}

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
stamp=$venv/requirements.installed
requirements=("$root/python/requirements.txt" "$root/python/model-packages.txt")
venv_is_current() { cat "${requirements[@]}" | cmp -s - "$stamp" && "$venv/bin/python" -c '' 2>/dev/null; }

if [ ${#missing[@]} -gt 0 ]; then
  say "will install by apt: ${missing[*]}"
fi
if ! venv_is_current; then
  say "will install into build/venv: $(grep -hv '^#' "${requirements[@]}" | xargs)"
fi
[ -z "$dry_run" ] || exit 0

if [ ${#missing[@]} -gt 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  as_root apt-get update
  check_llvm_source
  as_root apt-get install -y --no-install-recommends "${missing[@]}"
fi
if ! venv_is_current; then
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --disable-pip-version-check -r "${requirements[0]}"
  "$venv/bin/python" -m pip install --disable-pip-version-check --no-deps -r "${requirements[1]}"
  cat "${requirements[@]}" > "$stamp"
fi
