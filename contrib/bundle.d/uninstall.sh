#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
#
# uninstall.sh [--prefix DIR]: removes the files that install.sh has installed in
# DIR (default: the directory of this script if ofi_duo is there, otherwise
# /opt/ofi_duo).

set -eu

die()
{
	echo "uninstall.sh: $1: $2; $3" >&2
	exit 1
}

here=$(dirname "$(readlink -f "$0")")
prefix=/opt/ofi_duo
[ ! -d "$here/lib/ofi_duo" ] || prefix=$here
case ${1:-} in
'') ;;
--prefix) prefix=${2:?--prefix needs a directory};;
-h|--help) sed -n '5,/^$/s/^# \{0,1\}//p' "$0"; exit;;
*) die "nothing removed" "'$1' is no option" "see $0 --help";;
esac
manifest=$prefix/manifest
[ -f "$manifest" ] || die "nothing removed" "there is no $manifest" \
	"give the --prefix of the installation"
grep -q '^file [0-9a-f]*  /' "$manifest" || die "nothing removed" \
	"$manifest is not ofi_duo's" "give the --prefix of the installation"
[ -w "$prefix" ] || die "nothing removed" "$prefix is not yours to write" \
	"run it as its owner"

lines=$(cat "$manifest")
# The prefix for which install.sh was called. Files below /etc contain this
# prefix; if they do not, an installation in another prefix has replaced them.
installed=$(echo "$lines" |
	sed -n 's,^link \(.*\)/lib/ofi_duo/selected$,\1,p' | head -n 1)
echo "$lines" | sed -n 's/^file [^ ]*  //p; s/^link //p' |
	while read -r file; do
		rm -f "$file.ofi_duo-new"
		case $file in
		"$installed"/*) rm -f "$file";;
		*) ! grep -qsF "$installed/" "$file" || rm -f "$file";;
		esac
	done
rm -f "$manifest" "$manifest.new"
# The deepest directories first. Directories with foreign files stay.
echo "$lines" | sed -n 's/^dir //p' | sort -ru |
	while read -r dir; do
		rmdir "$dir" 2>/dev/null || [ ! -d "$dir" ] ||
			echo "uninstall.sh: $dir is not empty and stays"
	done
PATH=$PATH:/usr/sbin:/sbin	# for ldconfig: after su, PATH may lack these
case $lines in
*" /etc/ld.so.conf.d/"*) ldconfig;;
esac
echo "uninstall.sh: ofi_duo is removed from $prefix"
