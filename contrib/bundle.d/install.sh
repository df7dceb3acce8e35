#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
#
# install.sh [-y] [-n] [--prefix DIR] [--minimal] [--libfabric FILE] [--verify]:
# installs ofi_duo, or replaces another version of it, and selects the modules
# for the libfabric that programs load here.
#
# -y                install without a question
# -n, --no-verify   do not test the installation
# --prefix DIR      default: /opt/ofi_duo; ordinary users must name a directory
#                   that they may write to
# --minimal         provider modules and ofi_duo-select only: no programs,
#                   manual pages, modulefile, nor files below /etc
# --libfabric FILE  select the modules for this libfabric (a library, its
#                   directory or prefix), and configure the loader to use
#                   this libfabric, by a file in /etc/ld.so.conf.d
# --verify          do not install: check the installed files, and test them
#
# PREFIX/uninstall.sh removes all installed files.

set -eu

here=$(dirname "$(readlink -f "$0")")
# shellcheck source=common.sh
. "$here/files/lib/ofi_duo/common.sh"

# True if the prefix has ofi_duo's manifest; other software has files of that name, too.
installed()
{
	grep -qs '^file [0-9a-f]*  /' "$prefix/manifest"
}

# Checks that no file has changed since the installation, that the matching
# modules are selected, and that a message arrives.
verify()
{
	installed || die "cannot verify" "nothing is installed in $prefix" \
		"name its --prefix, or install"
	sed -n 's/^file //p' "$prefix/manifest" >"$stage/sums"
	sha256sum --quiet --check "$stage/sums" >&2 || die "$prefix" \
		"files named above are not as installed" "install again"
	"$prefix/bin/ofi_duo-select" --check
	say "$prefix: all files are in place"
	[ -x "$prefix/bin/duo_test.sh" ] || return 0
	"$prefix/bin/duo_test.sh" || [ $? -eq 77 ]
}

check_prefix()
{
	case $prefix in
	''|*[!A-Za-z0-9/._+-]*|[!/]*)
		die "cannot install" "--prefix ${prefix:-/}" \
			"name an absolute path, not /, of letters, digits and ._+-";;
	"$efa_prefix"|"$efa_prefix"/*)
		die "cannot install" "$prefix is the EFA installer's, which \
refuses files that it does not know" "choose another --prefix";;
	esac
	if ! installed && [ -n "$(ls -A "$prefix" 2>/dev/null)" ]; then
		die "cannot install" "$prefix is not empty, nor ofi_duo's" \
			"choose another --prefix"
	fi
}

# True if programs can run in the directory. Some systems mount directories that
# users can write to without permission to run programs in them.
runs_programs()
{
	probe=$(mktemp "$1/.ofi_duo.XXXXXX") || die "cannot install" \
		"$1 is not yours to write" "choose another --prefix"
	printf '#!/bin/sh\n' >"$probe"
	chmod 755 "$probe"
	"$probe" 2>/dev/null && ran=1 || ran=
	rm -f "$probe"
	[ -n "$ran" ]
}

check_prefix_runs()
{
	dir=$prefix
	while [ ! -d "$dir" ]; do
		dir=${dir%/*}
		dir=${dir:-/}
	done
	runs_programs "$dir" || die "cannot install" "no program may run in \
$dir, nor a module be loaded (mount option noexec?)" "choose another --prefix"
}

# For --libfabric. The script configures the loader only as root and without
# --minimal. Otherwise checks that programs already load this libfabric, unless
# --no-verify is given.
check_loader()
{
	[ -n "$libfabric" ] || return 0
	[ -z "$minimal" ] && [ "$(id -u)" -eq 0 ] && return
	loads=$(libfabric_found "$tools") || true
	[ "$loads" = "$found" ] || [ -n "$no_verify" ] ||
		die "cannot install" "programs load $loads, not $found" \
			"set LD_LIBRARY_PATH to its directory, or use -n"
}

# Checks, before any file is written, that the bundle is complete and has
# modules for this libfabric.
check_bundle()
{
	(cd "$here" && sha256sum --quiet --check manifest) >&2 ||
		die "cannot install" "the bundle is damaged" "unpack it again"
	error=$("$tools/libfabric-version" "$tools/libfabric-version" \
		2>&1 >/dev/null) || true
	case $error in
	*[Pp]"ermission denied"*)
		die "cannot install" "no program may run in $here (mount \
option noexec?)" "unpack the bundle elsewhere";;
	*"Exec format"*|*"cannot execute"*|*GLIBC*|*"not found"*)
		die "cannot install" "this bundle is for $distro: $error" \
			"take one for this system";;
	esac
	if ! found=$(libfabric_found "$tools" ${libfabric:+"$libfabric"})
	then
		[ -n "$no_verify" ] || die "cannot install" "$found" \
			"install libfabric first, or -n, and run \
ofi_duo-select when it is there"
		found=
		return
	fi
	check_loader
	modules_for "$tools" "${found%% *}" >/dev/null || [ -n "$no_verify" ] ||
		die "cannot install" "modules are for libfabric \
$(modules_in "$tools"), and here is $found" \
			"take a bundle that has this version"
}

ask()
{
	[ -z "$yes" ] || return 0
	[ -t 0 ] || die "not installed" "there is no terminal" "use -y"
	printf 'Install ofi_duo %s in %s, for libfabric %s? [y/N] ' \
		"$version" "$prefix" "${found:-that is to come}"
	read -r answer
	case $answer in
	[yY]*) ;;
	*) die "not installed" "the answer was no" "answer y, or use -y";;
	esac
}

# staged DESTINATION SOURCE: copies SOURCE into the staging area, with the
# installation's prefix in place of @prefix@
staged()
{
	mkdir -p "$stage/root${1%/*}"
	sed "s,@prefix@,$prefix,g" "$2" >"$stage/root$1"
}

# Stages configuration files for login shells, the loader and the package
# manager.
stage_system()
{
	staged "/etc/profile.d/ofi_duo.sh" "$here/system/profile.sh"
	if [ -d /etc/apt/apt.conf.d ]; then
		staged /etc/apt/apt.conf.d/90ofi_duo "$here/system/apt.conf"
	elif [ -d /etc/dnf/plugins/post-transaction-actions.d ]; then
		staged /etc/dnf/plugins/post-transaction-actions.d/ofi_duo.action \
			"$here/system/dnf.action"
	fi
	[ -n "$libfabric" ] || return 0
	dir=${found#* }
	mkdir -p "$stage/root/etc/ld.so.conf.d"
	# The comment names the installation, as the other files do; see replaced().
	printf '# %s/\n%s\n' "$prefix" "${dir%/*}" \
		>"$stage/root/etc/ld.so.conf.d/ofi_duo.conf"
}

stage_files()
{
	mkdir -p "$stage/root$prefix"
	cp -R "$here/files/." "$stage/root$prefix"
	cp "$here/uninstall.sh" "$stage/root$prefix"
	if [ -n "$minimal" ]; then
		(cd "$stage/root$prefix" && rm -rf include share)
		find "$stage/root$prefix/bin" -type f ! -name ofi_duo-select \
			-exec rm {} +
		return
	fi
	modulefile=share/modulefiles/ofi_duo/$version
	staged "$prefix/$modulefile" "$here/files/$modulefile"
	if [ "$(id -u)" -eq 0 ]; then
		stage_system
	else
		say "not root: nothing below /etc is installed"
	fi
}

# missing_dirs FILE: prints the directories above FILE that do not exist
missing_dirs()
{
	dir=${1%/*}
	while [ -n "$dir" ] && [ ! -d "$dir" ]; do
		echo "$dir"
		dir=${dir%/*}
	done
}

# Writes the list of files that uninstall.sh removes, before the first file is
# installed. The lines of the list are "file HASH PATH", "link PATH" and "dir PATH".
# The list includes the files of the previous version.
write_manifest()
{
	(cd "$stage/root" && find . -type f | sed 's/^\.//') >"$stage/list"
	while read -r file; do
		missing_dirs "$file"
	done <"$stage/list" | sort -u | sed 's/^/dir /' >"$stage/manifest"
	{
		! installed || sed -n '/^dir /p' "$prefix/manifest"
		while read -r file; do
			sha256sum "$stage/root$file" |
				sed "s,  .*,  $file,; s/^/file /"
		done <"$stage/list"
		for link in selected own libfabric.so chosen; do
			echo "link $prefix/lib/ofi_duo/$link"
		done
	} >>"$stage/manifest"
	mkdir -p "$prefix"
	cp "$stage/manifest" "$stage/both"
	! installed || sed -n '/^file /p' "$prefix/manifest" >>"$stage/both"
	if ! cp "$stage/both" "$prefix/manifest.new"; then
		rm -f "$prefix/manifest.new"
		rmdir "$prefix" 2>/dev/null || true	# if it is new
		die "cannot install" "$prefix cannot be written to, see above" \
			"free space there, or choose another --prefix"
	fi
	mv "$prefix/manifest.new" "$prefix/manifest"
}

# Copies the files. A file is replaced by rename, not overwritten, because a running
# program may have mapped the old file.
copy_files()
{
	while read -r file; do
		mkdir -p "${file%/*}"
		cp "$stage/root$file" "$file.ofi_duo-new"
		chmod "$(mode_of "$stage/root$file")" "$file.ofi_duo-new"
		mv -f "$file.ofi_duo-new" "$file"
	done <"$stage/list"
}

mode_of()
{
	if [ -x "$1" ]; then
		echo 755
	else
		echo 644
	fi
}

# replaced FILE: true if FILE is below /etc, and an installation in another prefix has
# replaced it
replaced()
{
	case $1 in
	"$prefix"/*) return 1;;
	esac
	! grep -qsF "$prefix/" "$1"
}

# Removes files that only the previous version has, then directories, the
# deepest first. Directories with foreign files stay.
remove_old()
{
	sed -n 's/^file [^ ]*  //p' "$prefix/manifest" | sort -u |
		while read -r file; do
			grep -qFx "$file" "$stage/list" || replaced "$file" ||
				rm -f "$file"
		done
	sed -n 's/^dir //p' "$prefix/manifest" | sort -ru |
		while read -r dir; do
			[ -d "$stage/root$dir" ] || rmdir "$dir" 2>/dev/null ||
				true
		done
	cp "$stage/manifest" "$prefix/manifest.new"
	mv "$prefix/manifest.new" "$prefix/manifest"
}

yes='' no_verify='' prefix=/opt/ofi_duo minimal='' libfabric='' only_verify=''
while [ $# -gt 0 ]; do
	case $1 in
	-y|--yes) yes=1;;
	-n|--no-verify) no_verify=1;;
	--prefix) prefix=${2:?--prefix needs a directory}; shift;;
	--minimal) minimal=1;;
	--libfabric) libfabric=${2:?--libfabric needs a file}; shift;;
	--verify) only_verify=1;;
	-h|--help) usage; exit;;
	*) die "nothing installed" "'$1' is no option" "see $0 --help";;
	esac
	shift
done
case $prefix in
/*) prefix=$(realpath -ms "$prefix");;	# without //, /./ and /../
esac
prefix=${prefix%/}
tools=$here/files/lib/ofi_duo
read -r version distro <"$here/version"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
# After a signal, dash runs the EXIT trap only if a trap for the signal calls
# exit.
trap 'exit 1' HUP INT TERM
umask 022
PATH=$PATH:/usr/sbin:/sbin	# for ldconfig: after su, PATH may lack these
if [ -n "$only_verify" ]; then
	verify
	exit
fi
check_prefix
check_bundle
check_prefix_runs
ask
told=
if installed && grep -q ' /etc/ld.so.conf.d/ofi_duo.conf$' "$prefix/manifest"
then
	told=1	# the loader's configuration names a libfabric that the user chose earlier
fi
stage_files
write_manifest
copy_files
remove_old
if [ -n "$told" ] || [ -f "$stage/root/etc/ld.so.conf.d/ofi_duo.conf" ]; then
	ldconfig
fi
if [ -n "$libfabric" ]; then
	set -- --libfabric "$libfabric"
else
	set -- ${told:+--default}
fi
"$prefix/bin/ofi_duo-select" "$@" || [ -n "$no_verify" ]
say "ofi_duo $version is in $prefix; $prefix/uninstall.sh removes it"
[ -n "$no_verify" ] || verify
if [ -e "$stage/root/etc/profile.d/ofi_duo.sh" ]; then
	say "log in again, or: . /etc/profile.d/ofi_duo.sh"
	say "then, for the paths of an MPI job: mpirun -n 2 fi_duo_info --mpi"
	say "on several hosts: mpirun -x FI_PROVIDER_PATH"
else
	path=$prefix/lib/ofi_duo/selected:$prefix/lib/ofi_duo/own
	say "to use it: export FI_PROVIDER_PATH=$path"
fi
