# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # duo_src, duo_build: common.sh
#
# Debian packages: their list, finding missing ones, installing them. Sourced
# after common.sh.

. "$duo_src/contrib/lib/version.sh"

# True if the EFA installer's libfabric is installed. The Debian root does not
# have it.
efa_prefix=/opt/amazon/efa
efa_installed()
{
	compgen -G "$efa_prefix/lib*/libfabric.so.1" >/dev/null
}

# Headings of the packages that this command needs; scripts add to them. A
# Debian root gets all packages except tools for packaging and debugging.
packages_for="build run ${OFI_DUO_PACKAGES:-}"
efa_installed || packages_for+=" fabric"
packages_for_root="build fabric run check proofs bench ${OFI_DUO_PACKAGES:-}"

# packages_list HEADING...: prints the packages below these headings
packages_list()
{
	awk -v wanted=" $* " '
		{ sub(/#.*/, "") }
		/^\[/ { on = index(wanted, " " substr($1, 2, length($1) - 2) " ")
			next }
		on && NF { print $1 }' "$duo_src/contrib/lib/packages" |
		sort -u
}

# shellcheck disable=SC2086 # words
packages_hash()
{
	packages_list $packages_for_root | sha256sum | cut -c1-16
}

# packages_missing PACKAGE...: prints the packages that are not installed,
# according to dpkg
packages_missing()
{
	local have
	have=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" \
		2>/dev/null | sed -n 's/^installed //p') || true
	comm -23 <(printf '%s\n' "$@" | sort -u) \
		<(sort -u <<<"$have")
}

# install_agreed LINE...: returns if this machine may be changed as the LINEs
# describe: --install was given, or the user agrees at the terminal, or this is a
# Debian root. Otherwise ends the script. Child processes do not ask again.
install_agreed()
{
	local answer=''
	[[ ${OFI_DUO_INSTALL:-} != 1 && -z ${OFI_DUO_INSIDE:-} ]] || return 0
	say "packages are missing; this machine needs these changes:"
	printf '  %s\n' "$@" >&2
	[[ -t 0 && -t 2 ]] || die "nothing installed" \
		"there is no terminal" \
		"use --install, or make these changes as root"
	read -r -p "Do it? [y/N] " answer
	[[ $answer == [yY]* ]] || die "nothing installed" "the answer was no" \
		"make these changes as root, or answer yes"
	export OFI_DUO_INSTALL=1
}

# apt_get ARGUMENT...: runs apt-get without questions. Waits while another apt
# runs, and repeats failed downloads.
apt_get()
{
	DEBIAN_FRONTEND=noninteractive apt-get -y -q \
		-o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"
}

# apt_line PACKAGE...: prints the command by which a user installs the packages
apt_line()
{
	echo "apt-get install --no-install-recommends $*"
}

# apt_install PACKAGE...: installs the packages. Updates the package lists only
# if the present ones do not suffice. Fails if the EFA installer's libfabric is
# installed and a package depends on the distribution's libfabric, so that no second
# libfabric is installed.
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

# packages_ensure HEADING...: installs the missing packages below these
# headings, in a Debian root or in a throwaway copy of it, never on the machine
# itself
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

# packages_may_install: true if this is Debian, and this process is the machine's
# root, not only root of a user namespace
packages_may_install()
{
	is_root && command -v apt-get >/dev/null && [[ -w /var/lib/dpkg ]]
}

# packages_advice: prints the command that installs the packages for building,
# for the package manager of this distribution
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

# make_tarball DIRECTORY: copies the tarball of "make dist" to DIRECTORY.
# Several processes may call it at a time: the tarball is copied before another
# process makes it anew. There may be tarballs of other versions.
make_tarball()
{
	(
		flock 9 && make -C "$duo_build" dist &&
			cp "$duo_build/ofi_duo-$(version_here).tar.gz" "$1"
	) 9>>"$duo_build/dist.lock"
}
