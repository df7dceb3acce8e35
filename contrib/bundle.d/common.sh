# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=sh
#
# Functions that the bundle's scripts share. POSIX sh and coreutils only, so
# that they run on minimal systems.

efa_prefix=/opt/amazon/efa
default=''	# not empty: do not use the libfabric that the user selected
# check_bundle() reads messages of the shell and of the loader.
LC_ALL=C
export LC_ALL

say()
{
	printf '%s: %s\n' "${0##*/}" "$*"
}

# die OBJECT CAUSE REMEDY: prints the three in one line; exits with status 1
die()
{
	say "$1: $2; $3" >&2
	exit 1
}

# usage: prints the comment at the head of the script
usage()
{
	sed -n '5,/^$/s/^# \{0,1\}//p' "$0"
}

# version_of TOOL FILE: prints version and path of the library FILE. If TOOL
# cannot load FILE, prints the reason on stdout, together with warnings of the
# loader (such as those about LD_PRELOAD). Otherwise these warnings are
# discarded.
version_of()
{
	"$1" "$2" 2>/dev/null || "$1" "$2" 2>&1
}

# libfabric_found TOOLS [FILE]: prints version and path of a libfabric, as "2.1
# /path/libfabric.so.1.28.0". TOOLS: directory of libfabric-version. FILE: a library,
# its directory or its prefix. Without FILE, prints the first of these that exists:
# - the libfabric that the user selected with ofi_duo-select, unless $default is set;
# - the libfabric that the loader finds;
# - the EFA installer's libfabric.
# If there is none, prints the reason, also on stdout.
libfabric_found()
{
	tool=$1/libfabric-version
	reason=
	if [ $# -eq 1 ] && [ -z "${default:-}" ] && [ -e "$1/chosen" ]; then
		set -- "$1" "$(readlink "$1/chosen")"
	fi
	if [ $# -eq 1 ]; then
		"$tool" 2>/dev/null && return
		reason="$("$tool" 2>&1 >/dev/null || true), and "
		set -- "$1" "$efa_prefix"
	fi
	if [ -f "$2" ]; then
		# dlopen() would search for a name without a slash
		version_of "$tool" "$(readlink -f "$2")"
		return
	fi
	for file in "$2/libfabric.so.1" "$2/lib/libfabric.so.1" \
		"$2/lib64/libfabric.so.1" "$2"/lib/*/libfabric.so.1; do
		[ -e "$file" ] || continue
		version_of "$tool" "$file"
		return
	done
	echo "${reason}there is no libfabric.so.1 in $2"
	return 1
}

# group_of VERSION: prints the name of VERSION's group: libfabric versions with the
# same public structures, as in base/abi.h
group_of()
{
	case $1 in
	1.1[4-7]) echo 1.14;;
	2.[0-4]) echo 2.0;;
	2.[56]) echo 2.5;;
	*) echo "$1";;
	esac
}

# has_modules DIRECTORY: true if the directory has at least one module; another
# version of ofi_duo may have left an empty directory
has_modules()
{
	[ -e "$1/libduo-fi.so" ] || [ -e "$1/libnear-fi.so" ]
}

# modules_for DIRECTORY VERSION: prints the directory of the modules for this
# version of libfabric: those built for it, or for another version of its group.
# Exit status 1: there are none.
modules_for()
{
	exact=$1/libfabric-$2
	for dir in "$exact" "$1"/libfabric-[0-9]*; do
		if has_modules "$dir" &&
		   [ "$(group_of "${dir##*/libfabric-}")" = "$(group_of "$2")" ]; then
			echo "$dir"
			return
		fi
	done
	return 1
}

# modules_in DIRECTORY: prints the versions for which DIRECTORY has modules, as
# "2.1 2.6"
modules_in()
{
	versions=
	for dir in "$1"/libfabric-[0-9]*; do
		has_modules "$dir" && versions="$versions ${dir##*/libfabric-}"
	done
	# shellcheck disable=SC2086 # words
	echo ${versions:-none}
}
