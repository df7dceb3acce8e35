# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # variables of contrib/bench
#
# A directory that contrib/bench --native --bin runs from on another machine:
# programs, and all libraries down to the loader. Sourced by contrib/bench.

# pack_libs FILE...: paths of what they are linked with, the loader too.
pack_libs()
{
	ldd "$@" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p
		s/^[[:space:]]*\(\/[^ ]*ld-linux[^ ]*\) .*/\1/p' | sort -u
}

bench_pack()
{
	local dir=$1 file
	mkdir -p "$dir/lib"
	cp -L "$duobench" "$duo_dir/libduo-fi.so" "$dir"
	[[ ! -f $softefa_lib ]] || cp -L "$softefa_lib" "$dir"
	for file in $(pack_libs "$dir/duobench" "$dir"/*.so); do
		cp -L "$file" "$dir/lib"
	done
	strip -g "$dir"/lib/*.so* 2>/dev/null || true
	say "$(du -sh "$dir" | cut -f1) in $dir"
}
