# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # variables of contrib/bench
#
# Makes a directory from which contrib/bench --native --bin runs on another
# host. It contains the programs and all their libraries, including the loader.
# Sourced by contrib/bench.

# pack_libs FILE...: prints the paths of the libraries that these files need,
# including the loader
pack_libs()
{
	ldd "$@" 2>/dev/null | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p
		s/^[[:space:]]*\(\/[^ ]*ld-linux[^ ]*\) .*/\1/p' | sort -u
}

# pack_mpi DIR: copies mpirun's program, its plugins and messages, and mpibench
# into one prefix
pack_mpi()
{
	local mpi=$1/mpi prte pmix ucx libmpi
	prte=$(readlink -f "$(command -v prterun)")
	mkdir -p "$mpi/bin" "$mpi/share" "$mpi/lib/pmix" "$mpi/lib/ucx"
	cp -L "$mpibench" "$1"
	cp -L "$prte" "$mpi/bin/prterun"
	cp -rL "${prte%/bin/*}"/share/{prte,openmpi} "$mpi/share"
	libmpi=$(pack_libs "$mpibench" | grep '/libmpi\.so')
	pmix=$(readlink -f "$(pack_libs "$libmpi" | grep '/libpmix\.so')")
	pmix=${pmix%/lib/*}
	cp -rL "$pmix/share/pmix" "$mpi/share"
	cp -L "$pmix"/lib/pmix/*.so "$mpi/lib/pmix"
	# UCX searches its modules in the directory of its own library.
	ucx=$(pack_libs "$libmpi" | grep '/libucp\.so') || return 0
	cp -L "$(dirname "$ucx")"/ucx/libuct_cma.so.0 "$mpi/lib/ucx"
}

bench_pack()
{
	local dir=$1 file
	rm -rf "${dir:?}"/{lib,mpi,duobench,mpibench,*.so}
	mkdir -p "$dir/lib"
	cp -L "$duobench" "$dir"
	for file in ${providers//:/ }; do
		cp -L "$file"/*-fi.so "$dir"
	done
	[[ ! -f $softefa_lib ]] || cp -L "$softefa_lib" "$dir"
	[[ -z $mpibench ]] || pack_mpi "$dir"
	find "$dir" -type f \( -perm -100 -o -name '*.so*' \) -print0 |
		while IFS= read -r -d '' file; do
			pack_libs "$file"
		done | sort -u |
		while read -r file; do
			cp -L "$file" "$dir/lib"
		done
	strip -g "$dir"/{duobench,mpibench} "$dir"/*.so "$dir"/lib/*.so* \
		2>/dev/null || true
	# Every Debian and Ubuntu has gzip, but not xz and zstd.
	tar -C "$dir" -czf "${dir%/}.tar.gz" .
	say "$(du -sh "$dir" | cut -f1) in $dir," \
		"$(du -h "${dir%/}.tar.gz" | cut -f1) in ${dir%/}.tar.gz"
}
