# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # duo_src, duo_build: common.sh
#
# A Debian 13 root for hosts with a libfabric that is too old: creates,
# completes and enters it. Sourced after common.sh and packages.sh.
#
# If $duo_root exists, its base system is complete, because the root is created
# under another name and then renamed. If $duo_root/etc/ofi_duo.packages contains
# the output of packages_hash, all packages are installed. If this script is killed,
# the next call continues.

duo_root_usual=/var/cache/ofi_duo/trixie
duo_root=${OFI_DUO_ROOT:-$duo_root_usual}
duo_root_stamp=etc/ofi_duo.packages
duo_root_log=$duo_root.log

root_complete()
{
	[[ -f $duo_root/$duo_root_stamp &&
	   $(<"$duo_root/$duo_root_stamp") == "$(packages_hash)" ]]
}

# root_mirror: prints the mirror of Debian that this machine's apt uses, whichever
# format its sources have; on other distributions, deb.debian.org. An archive of
# another origin may have the same release names, and only the package lists show
# which archive is Debian's. Without package lists, prints the first mirror in the
# sources.
root_mirror()
{
	local id release mirror
	id=$(. /etc/os-release && echo "${ID:-}")
	release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	if [[ -n ${OFI_DUO_MIRROR:-} || $id != debian ]]; then
		echo "${OFI_DUO_MIRROR:-http://deb.debian.org/debian}"
		return
	fi
	# shellcheck disable=SC2016 # apt expands it
	mirror=$(apt-get indextargets --format '$(REPO_URI)' "Origin: Debian" \
		"Codename: $release" "Component: main" 2>/dev/null | sed -n 's#/*$##; 1p')
	if [[ -n $mirror ]]; then
		echo "$mirror"
		return
	fi
	apt-get --print-uris update 2>/dev/null |
		sed -n "s#^'\(.*\)/dists/$release/InRelease'.*#\1#p" |
		sed -n '1p'
}

root_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

root_tools_here()
{
	command -v debootstrap >/dev/null && [[ -f $root_keyring ]]
}

# root_plan [ROOT RELEASE SIZE]: prints, for install_agreed, the changes of this
# machine that are necessary to make this root (default: $duo_root)
root_plan()
{
	[[ $# -gt 0 ]] || set -- "$duo_root" 13 "1.5 GB"
	if ! root_tools_here && command -v apt-get >/dev/null; then
		# shellcheck disable=SC2046 # words
		apt_line $(packages_list bootstrap)
	fi
	echo "make a Debian $2 root in $1, of $3"
}

# Installs the tools that make the root, on Debian and Ubuntu. They include
# Debian's keyring, to verify the packages.
root_tools()
{
	root_tools_here && return
	if command -v apt-get >/dev/null; then
		local -a tools
		mapfile -t tools < <(packages_list bootstrap)
		logged "installing debootstrap" "$duo_root_log" \
			"install ${tools[*]}" apt_install "${tools[@]}"
		return
	fi
	say "no Debian root: debootstrap or $root_keyring is missing;" \
		"install debootstrap and debian-keyring (of EPEL)," \
		"or libfabric 2.0 or newer: $(packages_advice)"
	return 1
}

# debootstrap and the root's apt use the same proxy as this machine's apt.
root_export_proxy()
{
	local proxy=
	command -v apt-config >/dev/null || return 0
	eval "$(apt-config shell proxy Acquire::http::Proxy)"
	if [[ -n $proxy && $proxy != DIRECT ]]; then
		export http_proxy=$proxy https_proxy=${https_proxy:-$proxy}
	fi
}

# If the default root exists, makes $duo_root as a copy of it.
root_copy()
{
	[[ $duo_root != "$duo_root_usual" && -f $duo_root_usual/$duo_root_stamp ]] ||
		return
	rm -rf --one-file-system "$duo_root.new"
	logged "copying $duo_root_usual" "$duo_root_log" \
		"free space on the file system of $duo_root" \
		cp -ax --reflink=auto "$duo_root_usual" "$duo_root.new" || return
	rm -f "$duo_root.new/$duo_root_stamp"
	mv "$duo_root.new" "$duo_root"
}

# root_bootstrap ROOT SUITE PACKAGE,...: makes a minimal Debian root at ROOT
root_bootstrap()
{
	local root=$1 suite=$2 packages=$3 mirror script=$2
	root_tools || return
	# Old versions of debootstrap have no script for this release; sid's
	# works.
	[[ -e /usr/share/debootstrap/scripts/$script ]] || script=sid
	mirror=$(root_mirror)
	[[ -n $mirror ]] || {
		say "no Debian mirror: apt's sources name none for this" \
			"release; add one to /etc/apt/sources.list"
		return 1
	}
	rm -rf --one-file-system "$root.new"
	# debootstrap's mounts are in this mount namespace and end with it.
	logged "making a Debian root ($suite)" "$duo_root_log" \
		"check the network and the mirror $mirror, then try again" \
		unshare -m -- debootstrap --variant=minbase \
		--keyring="$root_keyring" --include="$packages" \
		"$suite" "$root.new" "$mirror" "$script" || return
	# apt must accept a mirror's Release file that is past its date, as
	# debootstrap does. Debian's signature is required in any case.
	echo 'Acquire::Check-Valid-Until "false";' \
		>"$root.new/etc/apt/apt.conf.d/ofi_duo"
	mv "$root.new" "$root"
}

# root_needed ROOT SUITE SIZE PACKAGE,...: makes this root if it does not exist
root_needed()
{
	[[ ! -d $1 ]] || return 0
	local -a plan
	mapfile -t plan < <(root_plan "$1" "$2" "$3")
	install_agreed "${plan[@]}"
	mkdir -p "${1%/*}"
	root_export_proxy
	root_bootstrap "$1" "$2" "$4"
}

# Makes a Debian 12 root, once; tests use throwaway copies of it. This takes a
# minute and half a GB.
# shellcheck disable=SC2034 # the callers use it
debian12=/var/cache/ofi_duo/bookworm-mpi

debian12_root()
{
	root_needed "$debian12" bookworm "0.5 GB" \
		gcc,libc6-dev,libfabric-bin,libfabric-dev,make,openmpi-bin,pkgconf
}

root_fill()
{
	logged "installing packages into $duo_root" "$duo_root_log" \
		"check the network, then try again" \
		bash "$duo_src/contrib/lib/root-enter" "$duo_root" \
		bash "$duo_src/contrib/lib/root-fill" || return
	packages_hash >"$duo_root/$duo_root_stamp.new"
	mv "$duo_root/$duo_root_stamp.new" "$duo_root/$duo_root_stamp"
}

root_make()
{
	root_complete && return
	: >"$duo_root_log"
	root_export_proxy
	if [[ ! -d $duo_root ]]; then
		say "preparing a Debian 13 root in $duo_root (a few minutes," \
			"once; log: $duo_root_log)"
		root_copy ||
			root_bootstrap "$duo_root" trixie ca-certificates ||
			return
	else
		say "installing new packages in $duo_root"
	fi
	root_fill
}

# True if this process is in a root, or if a root exists or can be made.
root_possible()
{
	[[ -z ${OFI_DUO_INSIDE:-} ]] || return 0
	is_root && unshare -m true 2>/dev/null && { root_complete ||
		root_tools_here || command -v apt-get >/dev/null; }
}

# Makes or completes the root at $duo_root. Only one process at a time does so.
root_ensure()
{
	root_complete && return
	# An ordinary user cannot complete the root, and uses it as it is. If a
	# package is missing, an error follows later.
	if [[ -f $duo_root/$duo_root_stamp ]] && ! is_root; then
		return
	fi
	if ! is_root || ! unshare -m true 2>/dev/null; then
		die "no libfabric >= 2.0 here" "only root, with \
CAP_SYS_ADMIN, can prepare a Debian 13 root to work in" "run as such, or \
install libfabric 2.0 or newer: $(packages_advice)"
	fi
	if [[ ! -d $duo_root ]]; then
		local -a plan
		mapfile -t plan < <(root_plan)
		install_agreed "${plan[@]}"
	fi
	mkdir -p "$(dirname "$duo_root")"
	# Child processes inherit the lock, so that the lock stays taken while a
	# child still changes the root after this process was killed.
	(
		flock -n 9 || {
			say "waiting for another setup of $duo_root"
			flock 9
		}
		root_make
	) 9>>"$duo_root.lock"
}

# root_exec COMMAND...: replaces this shell by COMMAND in the root
root_exec()
{
	exec bash "$duo_src/contrib/lib/root-enter" "$duo_root" "$@"
}
