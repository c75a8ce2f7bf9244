#!/bin/sh
# Installs what is missing of the named sections of packages.txt. It looks each
# time, which takes a few milliseconds, so that a package removed later is
# noticed; when nothing is missing it does nothing and needs no rights.
#   cmake/packages.sh build test
set -eu
cd "$(dirname "$0")/.."

wanted=$(awk -v sections=" $* " '
  /^# section: / { reading = index(sections, " " $3 " "); next }
  /^#/ || NF == 0 { next }
  reading { print $1 }' packages.txt)

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  echo "This is not Debian: if the build fails, install what these packages" \
       "hold:" $wanted >&2
  exit 0
fi

# Packages that dpkg has never heard of make it complain and fail.
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted \
  2> /dev/null | sed -n 's/^installed //p' || true)
missing=
for package in $wanted; do
  echo "$installed" | grep -qxF "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

update='apt-get update'
install="apt-get install -y --no-install-recommends$missing"
as_root='env DEBIAN_FRONTEND=noninteractive'
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo > /dev/null; then
    printf '%s\n' "These packages are missing:$missing" \
      "Run this as root, then try again:" "  $update && $install" >&2
    exit 1
  fi
  as_root="sudo $as_root"
fi

printf '%s\n' "About to install these Debian packages (packages.txt) with apt-get:" \
  " $missing"
if ! { $as_root $update && $as_root $install; }; then
  printf '%s\n' "The packages could not be installed." \
    "Run this as root, then try again:" "  $update && $install" >&2
  exit 1
fi
