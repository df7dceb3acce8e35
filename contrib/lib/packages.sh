# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # duo_src, duo_build: common.sh
#
# Debian packages by name: the list, what of it is missing, installing it.
# Sourced after common.sh.

. "$duo_src/contrib/lib/version.sh"

# The EFA installer's libfabric is here. The root does not show it.
efa_prefix=/opt/amazon/efa
efa_installed()
{
	compgen -G "$efa_prefix/lib*/libfabric.so.1" >/dev/null
}

# What this command needs, by the list's headings; scripts add to it. A Debian
# root of our own gets everything but the tools for packages and debugging.
packages_for="build run ${OFI_DUO_PACKAGES:-}"
efa_installed || packages_for+=" fabric"
packages_for_root="build fabric run check bench ${OFI_DUO_PACKAGES:-}"

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

# install_agreed LINE...: true if this machine may be changed as the LINEs say:
# --install was given, or the user of the terminal says yes, which holds for the
# children too. Otherwise ends the script. In a root of our own nothing is asked.
install_agreed()
{
	local answer=''
	[[ ${OFI_DUO_INSTALL:-} != 1 && -z ${OFI_DUO_INSIDE:-} ]] || return 0
	say "not all that this needs is here; to be done on this machine:"
	printf '  %s\n' "$@" >&2
	[[ -t 0 && -t 2 ]] || die "nothing installed" \
		"there is no terminal to ask at" \
		"say --install, or run as root what is listed above"
	read -r -p "Do it? [y/N] " answer
	[[ $answer == [yY]* ]] || die "nothing installed" "the answer was no" \
		"run as root what is listed above, or say yes"
	export OFI_DUO_INSTALL=1
}

# apt_get ARGUMENT...: never asks, waits for another apt, retries downloads.
apt_get()
{
	DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -y -q \
		-o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"
}

# apt_line PACKAGE...: how a user would install them.
apt_line()
{
	echo "apt-get install --no-install-recommends $*"
}

# apt_install PACKAGE...: refreshes the package lists only when the ones that
# are here do not do. Beside the EFA installer's libfabric the distribution's
# does not come in as a dependency either: apt then refuses.
apt_install()
{
	local -a install=(install --no-install-recommends "$@")
	install_agreed "$(apt_line "$@")"
	if efa_installed && [[ -n $(packages_missing libfabric1) ]]; then
		install+=(libfabric1-)
	fi
	apt_get "${install[@]}" && return
	apt_get update && apt_get "${install[@]}"
}

# packages_ensure HEADING...: installs what is missing below these headings, in
# a Debian root of our own or in a throwaway copy, never on the machine itself.
packages_ensure()
{
	local -a wanted missing
	mapfile -t wanted < <(packages_list "$@")
	mapfile -t missing < <(packages_missing "${wanted[@]}")
	[[ ${#missing[@]} -gt 0 ]] || return 0
	[[ -n ${OFI_DUO_INSIDE:-} ]] || die "${missing[*]} not installed" \
		"only tests of packages need them" \
		"run this in the Debian root: OFI_DUO_PLATFORM=root contrib/env"
	apt_install "${missing[@]}"
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
		apt_line $(packages_list build fabric)
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
