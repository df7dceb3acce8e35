# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # duo_src, duo_build: common.sh
#
# Builds outside of the source tree, in $duo_build, if a file is newer than the
# last successful build. The functions must be called in the platform
# (platform.sh). Sourced after common.sh and platform.sh.

# build_is_current BUILD KEY: true if BUILD was built for KEY, and no source is newer.
# KEY: the id of the platform, and the arguments of configure.
build_is_current()
{
	local stamp=$1/.ofi_duo-built
	[[ -f $stamp && $(<"$stamp") == "$2" ]] || return
	[[ -z $(find "$duo_src" -mindepth 1 \
		\( -name .git -o -name 'build*' -o -name autom4te.cache \) \
		-prune -o -newer "$stamp" -type f \( -name '*.[chS]' \
		-o -name '*.map' -o -name '*.ac' -o -name '*.m4' \
		-o -name 'Makefile.am' -o -name '*.inc' \
		-o -path '*/man/*.md' \) -print -quit) ]]
}

# True if this machine's automake made "configure" from the present sources.
build_configure_is_current()
{
	local version
	version=$(automake --version | sed -n '1s/.* \([0-9]*\.[0-9]*\).*/\1/p')
	[[ -f $duo_src/Makefile.in && -f $duo_src/configure ]] &&
		grep -q "^am__api_version='$version'" "$duo_src/configure" &&
		[[ -z $(find "$duo_src/configure.ac" "$duo_src/config" \
			-name '*.[am][c4]' -newer "$duo_src/configure") ]]
}

# Configures the build tree. Removes it first if it was configured for another
# platform or with other arguments.
build_configure()
{
	local build=$1 key=$2
	shift 2
	if [[ -f $build/config.status && -f $build/.ofi_duo-key &&
	      $(<"$build/.ofi_duo-key") == "$key" ]]; then
		return
	fi
	if [[ -f $build/.ofi_duo-key ]]; then
		find "$build" -mindepth 1 -maxdepth 1 ! -name '*.log' \
			-exec rm -rf {} +
	fi
	cd "$build" || return
	"$duo_src/configure" --enable-silent-rules "$@"
	echo "$key" >"$build/.ofi_duo-key"
}

# build_tree BUILD CONFIGURE-ARGUMENT...: configures and builds in BUILD, if this is
# necessary
build_tree()
{
	local build=$1 key log=$1/ofi_duo-build.log
	shift
	key="$(platform_id) $*"
	build_is_current "$build" "$key" && return
	{ mkdir -p "$build" && [[ -w $build ]]; } || die "cannot build ofi_duo" \
		"$build is not yours to write" \
		"set OFI_DUO_BUILD to a directory of yours"
	# One lock for all build trees, because autogen writes into the source
	# tree.
	(
		flock 9
		build_is_current "$build" "$key" && exit
		say "building in $build"
		: >"$log"
		logged "building ofi_duo" "$log" "fix the first error there" \
			bash "$duo_src/contrib/lib/build-steps" \
			"$build" "$key" "$@"
	) 9<"$duo_src/contrib"
}

# build_here: builds in $duo_build, with the arguments of configure in
# OFI_DUO_CONFIGURE. If OFI_DUO_ENV is this build tree, an outer contrib/env has built
# in it.
build_here()
{
	local -a arguments
	[[ ${OFI_DUO_ENV:-} != "$duo_build" ]] || return 0
	read -ra arguments <<<"${OFI_DUO_CONFIGURE:-}"
	build_tree "$duo_build" "${arguments[@]}"
}
