# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # duo_src, duo_build: common.sh
#
# A Debian 13 root for machines whose own libfabric is too old: making it,
# keeping it complete, entering it. Sourced after common.sh and packages.sh.
#
# $duo_root is there => its base system is whole (it is made aside and renamed).
# $duo_root/etc/ofi_duo.packages holds packages_hash => all packages are in.
# Whatever is killed in between is taken up again by the next call.

duo_root=${OFI_DUO_ROOT:-/var/cache/ofi_duo/trixie}
duo_root_stamp=etc/ofi_duo.packages
duo_root_log=$duo_root.log

root_complete()
{
	[[ -f $duo_root/$duo_root_stamp &&
	   $(<"$duo_root/$duo_root_stamp") == "$(packages_hash)" ]]
}

# The mirror that this machine's own apt uses (any format of its sources).
root_mirror()
{
	local release
	release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	apt-get --print-uris update 2>/dev/null |
		sed -n "s#^'\(.*\)/dists/$release/InRelease'.*#\1#p" |
		sed -n '1p'
}

# debootstrap and the root's apt take apt's proxy, if there is one.
root_export_proxy()
{
	local proxy=
	eval "$(apt-config shell proxy Acquire::http::Proxy)"
	if [[ -n $proxy && $proxy != DIRECT ]]; then
		export http_proxy=$proxy https_proxy=${https_proxy:-$proxy}
	fi
}

root_bootstrap()
{
	local mirror
	if ! command -v debootstrap >/dev/null; then
		logged "installing debootstrap" "$duo_root_log" \
			"install it by hand (apt-get install debootstrap)" \
			apt_install debootstrap || return
	fi
	mirror=$(root_mirror)
	[[ -n $mirror ]] || {
		say "no Debian mirror: apt's sources name none for this" \
			"release; add one to /etc/apt/sources.list"
		return 1
	}
	rm -rf --one-file-system "$duo_root.new"
	# In a mount namespace: what debootstrap mounts goes away with it.
	logged "making a Debian 13 root" "$duo_root_log" \
		"check the network and the mirror $mirror, then try again" \
		unshare -m -- debootstrap --variant=minbase \
		--include=ca-certificates trixie "$duo_root.new" "$mirror" ||
		return
	mv "$duo_root.new" "$duo_root"
}

root_fill()
{
	logged "installing packages into $duo_root" "$duo_root_log" \
		"check the network, then try again" \
		unshare -m -- bash "$duo_src/contrib/lib/root-enter" "$duo_root" \
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
		root_bootstrap || return
	else
		say "installing what is new in $duo_root"
	fi
	root_fill
}

# Leaves a complete root at $duo_root, one setup at a time.
root_ensure()
{
	root_complete && return
	is_root || die "no libfabric >= 2.0 here" \
		"only root can prepare a Debian 13 root to work in" \
		"run as root, or install libfabric-dev >= 2.0"
	mkdir -p "$(dirname "$duo_root")"
	# Children inherit the lock: killed or not, none works on unlocked.
	(
		flock -n 9 || {
			say "waiting for another setup of $duo_root"
			flock 9
		}
		root_make
	) 9>>"$duo_root.lock"
}

# root_exec COMMAND...: replaces this shell by COMMAND in the root.
root_exec()
{
	exec unshare -m -- bash "$duo_src/contrib/lib/root-enter" "$duo_root" "$@"
}
