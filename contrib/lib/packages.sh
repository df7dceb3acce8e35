# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # duo_src, duo_build: common.sh
#
# Debian packages by name: the list, what of it is missing, installing it.
# Sourced after common.sh.

. "$duo_src/contrib/lib/version.sh"

# What this command needs, by the list's headings; scripts add to it. A Debian
# root of our own gets everything but the tools for packages and debugging.
# shellcheck disable=SC2034 # platform.sh reads it
packages_for="build run ${OFI_DUO_PACKAGES:-}"
packages_for_root="build run check bench ${OFI_DUO_PACKAGES:-}"

# packages_list HEADING...: the packages below these headings.
packages_list()
{
	awk -v wanted=" $* " '
		{ sub(/#.*/, "") }
		/^\[/ { on = index(wanted, " " substr($1, 2, length($1) - 2) " ")
			next }
		on && NF { print $1 }' "$duo_src/contrib/lib/packages" |
		LC_ALL=C sort -u
}

# shellcheck disable=SC2086 # words
packages_hash()
{
	packages_list $packages_for_root | sha256sum | cut -c1-16
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

# packages_ensure HEADING...: installs what is missing below these headings.
packages_ensure()
{
	local -a wanted missing
	mapfile -t wanted < <(packages_list "$@")
	mapfile -t missing < <(packages_missing "${wanted[@]}")
	[[ ${#missing[@]} -eq 0 ]] || apt_install "${missing[@]}"
}

# packages_may_install: root, on Debian, and not as root of nothing but a user
# namespace.
packages_may_install()
{
	is_root && command -v apt-get >/dev/null && [[ -w /var/lib/dpkg ]]
}

# packages_advice: the command that installs what building needs, as this
# distribution's package manager has it.
packages_advice()
{
	if command -v apt-get >/dev/null; then
		# shellcheck disable=SC2046 # words
		echo "apt-get install" $(packages_list build)
	elif command -v zypper >/dev/null; then
		echo "zypper install autoconf automake gcc libtool make" \
			"pkgconf libfabric-devel rdma-core-devel"
	else
		echo "dnf install autoconf automake gcc libtool make" \
			"pkgconf-pkg-config libfabric-devel rdma-core-devel," \
			"or the EFA installer (libfabric below" \
			"/opt/amazon/efa)"
	fi
}

# make_tarball DIRECTORY: that of "make dist", which several may want at a time:
# each copies it before the next makes it anew. Those of other versions may lie
# beside it.
make_tarball()
{
	(
		flock 9 && make -C "$duo_build" dist &&
			cp "$duo_build/ofi_duo-$(version_here).tar.gz" "$1"
	) 9>>"$duo_build/dist.lock"
}
