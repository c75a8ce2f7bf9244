#!/bin/sh
# Installs the missing packages of the named sections of packages.txt, after
# listing them. If none is missing, it takes a few milliseconds and needs no
# privileges.
#   cmake/packages.sh build test
set -eu
cd "$(dirname "$0")/.."

wanted=$(awk -v sections=" $* " '
  /^# section: / { reading = index(sections, " " $3 " "); next }
  /^#/ || NF == 0 { next }
  reading { print $1 }' packages.txt)

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  echo "This is not Debian: if the build fails, install the equivalents of" \
       "these packages:" $wanted >&2
  exit 0
fi

# dpkg-query fails if one of the packages is unknown to it.
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
