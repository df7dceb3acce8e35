# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # duo_src, duo_build: common.sh
#
# The platform: this machine itself where its libfabric is new enough (or can
# be installed), otherwise the Debian 13 root of root.sh. Sourced after
# common.sh.

# 1.14 and newer work; the tests and figures are of 2.0 and newer, whose
# providers have fewer defects, and which libfabric's shm needs as a peer.
platform_oldest=${OFI_DUO_OLDEST:-2.0}

. "$duo_src/contrib/lib/packages.sh"
. "$duo_src/contrib/lib/root.sh"

# The EFA installer's, below /opt/amazon/efa, goes before the system's, as in
# configure.
platform_libfabric_here()
{
	local efa=/opt/amazon/efa
	PKG_CONFIG_PATH+=${PKG_CONFIG_PATH:+:}
	export PKG_CONFIG_PATH+=$efa/lib/pkgconfig:$efa/lib64/pkgconfig
	command -v pkg-config >/dev/null &&
		pkg-config --atleast-version="$platform_oldest" libfabric
}

# Does this machine's distribution offer a libfabric that will do?
platform_libfabric_offered()
{
	is_root && command -v apt-cache >/dev/null || return
	local version
	version=$(apt-cache policy libfabric-dev |
		awk '$1 == "Candidate:" { print $2 }')
	if [[ -z $version ]]; then
		apt_get update >/dev/null 2>&1 || return
		version=$(apt-cache policy libfabric-dev |
			awk '$1 == "Candidate:" { print $2 }')
	fi
	dpkg --compare-versions "${version:-0}" ge "$platform_oldest"
}

# What else this machine lacks. Only root can install; others need at least
# the build tools.
platform_complete_here()
{
	local -a packages missing=()
	if command -v dpkg-query >/dev/null; then
		# shellcheck disable=SC2086 # words
		mapfile -t packages < <(packages_list $packages_for)
		mapfile -t missing < <(packages_missing "${packages[@]}")
	fi
	if [[ ${#missing[@]} -gt 0 ]] && is_root; then
		local log
		log=$(mktemp -t ofi_duo-packages.XXXXXX)
		say "installing ${missing[*]}"
		logged "installing packages" "$log" \
			"check the network, then try again" \
			apt_install "${missing[@]}" || return
		rm -f "$log"
	fi
	local tool
	for tool in autoreconf automake libtoolize make gcc pkg-config; do
		command -v "$tool" >/dev/null || die "cannot build ofi_duo" \
			"$tool is missing" "install it: $(packages_advice)"
	done
}

# platform_enter SCRIPT ARGUMENT...: returns where the platform is this
# machine; otherwise runs SCRIPT anew in the root, in place of this shell.
platform_enter()
{
	[[ -z ${OFI_DUO_INSIDE:-} ]] || return 0
	if platform_libfabric_here ||
	   { ! root_complete && platform_libfabric_offered; }; then
		platform_complete_here
		return
	fi
	root_ensure || exit 1
	mkdir -p "$duo_build"
	root_exec "$@"
}

# One word that two builds share only if one can use what the other built.
platform_id()
{
	local release
	release=$(. /etc/os-release && echo "${ID:-unknown}${VERSION_ID:-}")
	echo "$release-$(uname -m)-libfabric-$(pkg-config --modversion \
		libfabric)-gcc-$(gcc -dumpfullversion)"
}
