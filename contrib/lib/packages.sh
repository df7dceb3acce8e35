# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # duo_src, duo_build: common.sh
#
# Debian packages by name: the list, what of it is missing, installing it.
# Sourced after common.sh.

packages_list()
{
	sed 's/#.*//; /^[[:space:]]*$/d' "$duo_src/contrib/lib/packages"
}

packages_hash()
{
	packages_list | LC_ALL=C sort | sha256sum | cut -c1-16
}

# packages_missing PACKAGE...: those that dpkg does not know as installed.
packages_missing()
{
	local have
	have=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" \
		2>/dev/null | sed -n 's/^installed //p') || true
	comm -23 <(printf '%s\n' "$@" | LC_ALL=C sort -u) \
		<(LC_ALL=C sort -u <<<"$have")
}

# apt_get ARGUMENT...: never asks, waits for another apt, retries downloads,
# does not fsync every file.
apt_get()
{
	DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -y -q \
		-o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 \
		-o Dpkg::Options::=--force-unsafe-io \
		-o Dpkg::Options::=--force-confold "$@"
}

# apt_install PACKAGE...: refreshes the package lists only when the ones that
# are here do not do.
apt_install()
{
	apt_get install --no-install-recommends "$@" && return
	dpkg --configure -a
	apt_get update && apt_get install --no-install-recommends "$@"
}
