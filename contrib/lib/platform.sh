# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # duo_src, duo_build: common.sh
#
# The platform: this machine if its libfabric is new enough (or can be
# installed), otherwise the Debian 13 root of root.sh. Sourced after common.sh.

# libfabric 1.17 and newer work. The tests and measurements require 2.0: its
# providers have fewer defects, and its shm can be the local transport.
platform_oldest=${OFI_DUO_OLDEST:-2.0}

. "$duo_src/contrib/lib/packages.sh"
. "$duo_src/contrib/lib/root.sh"

# True if the libfabric of this machine is new enough. Adds the EFA installer's
# libfabric to PKG_CONFIG_PATH; it has precedence over the system's, as in
# configure.
platform_libfabric_here()
{
	PKG_CONFIG_PATH+=${PKG_CONFIG_PATH:+:}
	PKG_CONFIG_PATH+=$efa_prefix/lib/pkgconfig:$efa_prefix/lib64/pkgconfig
	export PKG_CONFIG_PATH
	command -v pkg-config >/dev/null &&
		pkg-config --atleast-version="$platform_oldest" libfabric
}

# platform_candidate OPTION...: prints the version of libfabric that apt would
# install
platform_candidate()
{
	apt-cache "$@" policy libfabric-dev |
		awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'
}

# True if the distribution of this machine has a libfabric that is new enough, and no
# other libfabric is installed. If the machine has no package lists, apt downloads
# them into a temporary directory, because the user has not agreed to changes yet.
platform_libfabric_offered()
{
	is_root && command -v apt-cache >/dev/null && ! efa_installed || return
	local version lists
	version=$(platform_candidate)
	if [[ -z $version ]]; then
		lists=$(mktemp -d -t ofi_duo-lists.XXXXXX)
		chmod 755 "$lists"	# apt downloads as a user without rights
		local -a options=(-o Dir::State::Lists="$lists"
			-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
		! apt_get "${options[@]}" update >/dev/null 2>&1 ||
			version=$(platform_candidate "${options[@]}")
		rm -rf "$lists"
	fi
	dpkg --compare-versions "${version:-0}" ge "$platform_oldest"
}

# Prints the missing packages of the list; nothing if there is no dpkg.
platform_missing()
{
	local -a packages
	command -v dpkg-query >/dev/null || return 0
	# shellcheck disable=SC2086 # words
	mapfile -t packages < <(packages_list $packages_for)
	packages_missing "${packages[@]}"
}

# If the user agrees, installs the missing packages on this machine and, if
# $platform_wants_root is set, makes a Debian root. Only root can do so: for other
# users at least the build tools must already be installed.
platform_wants_root=''
platform_complete_here()
{
	local -a missing plan=()
	local log tool
	mapfile -t missing < <(platform_missing)
	if is_root; then
		[[ ${#missing[@]} -eq 0 ]] || plan+=("$(apt_line "${missing[@]}")")
		[[ -z $platform_wants_root || -d $duo_root ]] ||
			! root_possible ||
			mapfile -t -O ${#plan[@]} plan < <(root_plan)
	fi
	[[ ${#plan[@]} -eq 0 ]] || install_agreed "${plan[@]}"
	if [[ ${#missing[@]} -gt 0 ]] && is_root; then
		log=$(mktemp -t ofi_duo-packages.XXXXXX)
		say "installing ${missing[*]}"
		logged "installing packages" "$log" \
			"check the network, then try again" \
			apt_install "${missing[@]}" || return
		rm -f "$log"
	fi
	for tool in autoreconf automake libtoolize make gcc pkg-config; do
		command -v "$tool" >/dev/null || die "cannot build ofi_duo" \
			"$tool is missing" "install it: $(packages_advice)"
	done
}

# True if this machine is the platform. With OFI_DUO_PLATFORM=root it is not.
platform_is_here()
{
	[[ ${OFI_DUO_PLATFORM:-} != root ]] || return
	platform_libfabric_here ||
		{ ! root_complete && platform_libfabric_offered; }
}

# platform_enter SCRIPT ARGUMENT...: if this machine is the platform, returns.
# Otherwise replaces this shell by SCRIPT in the root.
platform_enter()
{
	[[ -z ${OFI_DUO_INSIDE:-} ]] || return 0
	if platform_is_here; then
		platform_complete_here
		return
	fi
	root_ensure || exit 1
	mkdir -p "$duo_build" 2>/dev/null || true	# build_tree reports a failure
	root_exec "$@"
}

# Prints an id. Two hosts have the same id only if each can use the build of the
# other. The id of a host without Check differs, because its build has no unit tests.
platform_id()
{
	local release
	release=$(. /etc/os-release && echo "${ID:-unknown}${VERSION_ID:-}")
	echo "$release-$(uname -m)-libfabric-$(pkg-config --modversion \
		libfabric)-gcc-$(gcc -dumpfullversion)$(! pkg-config --exists check ||
		echo -check)"
}
