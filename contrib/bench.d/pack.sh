# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2034,SC2154 # the caller's variables
#
# Makes a directory from which contrib/bench or contrib/apps runs on another host
# with --native --bin: the programs and all their libraries, including the loader.
# Sourced by contrib/bench, contrib/apps and contrib/gpu.

# pack_check DIR: makes DIR, and marks it by a file. Ends the script if DIR has other
# files but no mark, because packing would remove and change files in DIR.
pack_check()
{
	[[ -z $(ls -A "$1" 2>/dev/null) || -e $1/.packed ]] ||
		die "nothing packed" "$1 has other files" "name a new directory"
	mkdir -p "$1"
	touch "$1/.packed"
}

# pack_libs FILE...: prints the paths of the libraries that these files need,
# including the loader
pack_libs()
{
	ldd "$@" 2>/dev/null | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p
		s/^[[:space:]]*\(\/[^ ]*ld-linux[^ ]*\) .*/\1/p' | sort -u
}

# pack_mpi DIR PROGRAM: if PROGRAM uses MPI, copies prterun (the program that
# mpirun executes), Open MPI's plugins and its files with messages into one
# prefix below DIR
pack_mpi()
{
	local mpi=$1/mpi prte pmix ucx libmpi
	libmpi=$(pack_libs "$2" | grep '/libmpi\.so') || return 0
	prte=$(readlink -f "$(command -v prterun)")
	mkdir -p "$mpi/bin" "$mpi/share" "$mpi/lib/pmix" "$mpi/lib/ucx"
	cp -L "$prte" "$mpi/bin/prterun"
	cp -rL "${prte%/bin/*}"/share/{prte,openmpi} "$mpi/share"
	pmix=$(readlink -f "$(pack_libs "$libmpi" | grep '/libpmix\.so')")
	pmix=${pmix%/lib/*}
	cp -rL "$pmix/share/pmix" "$mpi/share"
	cp -L "$pmix"/lib/pmix/*.so "$mpi/lib/pmix"
	# UCX searches its modules in the directory of its own library.
	ucx=$(pack_libs "$libmpi" | grep '/libucp\.so') || return 0
	cp -L "$(dirname "$ucx")"/ucx/libuct_cma.so.0 "$mpi/lib/ucx"
}

# pack_make DIR PROGRAM...: makes the directory, and DIR.tar.gz
pack_make()
{
	local dir=$1 file
	shift
	rm -rf "${dir:?}"/{lib,mpi,duobench,mpibench,*.so}
	mkdir -p "$dir/lib"
	cp -L "$@" "$dir"
	for file in ${providers//:/ }; do
		cp -L "$file"/*-fi.so "$dir"
	done
	[[ ! -f $softefa_lib ]] || cp -L "$softefa_lib" "$dir"
	for file; do
		pack_mpi "$dir" "$file"
	done
	find "$dir" -type f \( -perm -100 -o -name '*.so*' \) -print0 |
		while IFS= read -r -d '' file; do
			pack_libs "$file"
		done | sort -u |
		while read -r file; do
			cp -L "$file" "$dir/lib"
		done
	strip -g "${@/#*\//$dir/}" "$dir"/*.so "$dir"/lib/*.so* \
		2>/dev/null || true
	# Every Debian and Ubuntu has gzip, but not xz and zstd.
	tar -C "$dir" -czf "${dir%/}.tar.gz" .
	say "$(du -sh "$dir" | cut -f1) in $dir," \
		"$(du -h "${dir%/}.tar.gz" | cut -f1) in ${dir%/}.tar.gz"
}

# pack_use: for the packed directory $bin, sets the variables providers and
# softefa_lib, and the arrays runner (starts a packed program), mpirun and mpi_vars
pack_use()
{
	[[ -n $bin ]] || die "cannot run natively" "--native needs --bin DIR" \
		"make DIR with ${0##*/} --pack DIR"
	local loader=("$bin"/lib/ld-linux*) mpi=$bin/mpi
	providers=$bin
	softefa_lib=$bin/libsoftefa.so
	runner=()
	if [[ -x ${loader[0]} ]]; then
		runner=("${loader[0]}" --library-path "$bin/lib")
	else
		export LD_LIBRARY_PATH=$bin/lib
	fi
	# The variables that mpirun would set for prterun, with the packed
	# directories.
	mpirun=("${runner[@]}" --argv0 prterun "$mpi/bin/prterun")
	mpi_vars=(OMPI_VERSION=5 PRTE_MCA_schizo_proxy=ompi
		OPAL_PREFIX="$mpi" PRTE_PREFIX="$mpi" PMIX_PREFIX="$mpi"
		PMIX_PKGDATADIR="$mpi/share/pmix"
		PMIX_MCA_mca_base_component_path="$mpi/lib/pmix"
		UCX_MODULE_DIR="$mpi/lib/ucx")
}

# Exports the variables with which Open MPI runs without contrib/env.
pack_export()
{
	export FI_PROVIDER_PATH=$providers
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
}
