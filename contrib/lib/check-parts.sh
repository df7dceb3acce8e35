# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # duo_src, duo_build: common.sh
#
# The parts of contrib/check. Each prints "PASS: name", "FAIL: name" and
# "SKIP: name (reason)" lines among whatever else it says; contrib/check counts
# them. Run in the platform; sourced after common.sh, platform.sh and build.sh.

# Name, time limit in seconds.
# shellcheck disable=SC2034 # contrib/check reads it
check_parts="
scripts		60
build		600
unit		300
efa-shm		900
efa-udp		1200
efa-faults	1200
tcp		1200
sockets		1200
tcp-rxm		1200
udp-rxd		1200
mpi		900
asan		1200
tsan		1200
distcheck	900
"

check_werror=--enable-werror
check_asan="--enable-werror --enable-debug --enable-asan --enable-ubsan"
check_tsan="--enable-werror --enable-debug --enable-tsan"

# result NAME COMMAND...: PASS or FAIL by COMMAND's exit status.
result()
{
	local name=$1
	shift
	if "$@"; then
		echo "PASS: $name"
	else
		echo "FAIL: $name"
		return 1
	fi
}

# in_build SUFFIX CONFIGURE-ARGUMENTS COMMAND...: COMMAND, through contrib/env,
# with the build tree of that name.
in_build()
{
	local build=$duo_build$1 arguments=$2
	shift 2
	OFI_DUO_BUILD=$build OFI_DUO_CONFIGURE=$arguments OFI_DUO_ENV='' \
		"$duo_src/contrib/env" "$@"
}

# make_check SUFFIX CONFIGURE-ARGUMENTS: the unit tests; what failed in full,
# indented, since its lines are no results.
make_check()
{
	# Sanitized or on a busy machine, Check's 4 s are little.
	CK_TIMEOUT_MULTIPLIER=10 in_build "$1" "$2" \
		make -C "$duo_build$1" -j "$(nproc)" check && return
	[[ ! -f $duo_build$1/test-suite.log ]] ||
		sed 's/^/  /' "$duo_build$1/test-suite.log"
	return 1
}

# The multi-process suite over one core.
fabtests()
{
	in_build -check "$check_werror" "$duo_src/fabtests/run" "$@" \
		${check_quick:+--quick}
}

# prints_usage SCRIPT: asked for it, it says how it is called.
prints_usage()
{
	[[ $("$1" --help) == "${1##*/}"* ]]
}

part_scripts()
{
	local script
	for script in contrib/{bench,check,demo,env,hosts} fabtests/run; do
		result "$script --help" prints_usage "$duo_src/$script"
	done
	command -v shellcheck >/dev/null || {
		echo "SKIP: scripts (no shellcheck)"
		return
	}
	cd "$duo_src" || return
	# Every file that bash or sh runs, libraries included.
	grep -rlE '^#!/bin/(ba)?sh|^# shellcheck shell=' \
		autogen.sh .ci contrib fabtests --exclude='*.[ch]' |
	while read -r script; do
		result "$script" \
			shellcheck -x -P SCRIPTDIR -P contrib/lib "$script"
	done
}

part_build()
{
	result build in_build -check "$check_werror" true
}

part_unit()
{
	make_check -check "$check_werror"
}

part_efa_shm() { fabtests --core efa --wire shm; }
part_efa_udp() { fabtests --core efa --wire udp; }
part_tcp() { fabtests --core tcp; }
part_sockets() { fabtests --core sockets; }
part_tcp_rxm() { fabtests --core 'tcp;ofi_rxm'; }
part_udp_rxd() { fabtests --core 'udp;ofi_rxd'; }

# A wire that loses, repeats and reorders, and receivers that are not ready.
part_efa_faults()
{
	SOFTEFA_LOSS=0.02 SOFTEFA_REORDER=0.05 SOFTEFA_DUP=0.02 \
		SOFTEFA_RNR=0.01 fabtests --core efa --wire udp
}

part_mpi()
{
	in_build -check "$check_werror" "$duo_src/contrib/lib/check-mpi"
}

# The sanitized device under unsanitized programs (shells, mpirun) is meant;
# leaks are looked for in the unit tests, which run no code of others.
part_asan()
{
	local core
	export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
	result "asan: build" in_build -asan "$check_asan" true || return
	make_check -asan "$check_asan"
	export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
	for core in tcp efa; do
		in_build -asan "$check_asan" "$duo_src/fabtests/run" --quick \
			--core "$core" --wire shm
	done
}

part_tsan()
{
	export TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1"
	if [[ -f $duo_src/fabtests/tsan.supp ]]; then
		TSAN_OPTIONS+=" suppressions=$duo_src/fabtests/tsan.supp"
	fi
	result "tsan: build" in_build -tsan "$check_tsan" true || return
	make_check -tsan "$check_tsan"
	in_build -tsan "$check_tsan" "$duo_src/fabtests/run" --quick \
		--core tcp --only threads --only cq --only multi_ep
}

# The inner run's results are not counted a second time.
distcheck()
{
	in_build -check "$check_werror" make -C "$duo_build-check" \
		-j "$(nproc)" distcheck 2>&1 | sed 's/^\([A-Z]*:\)/  \1/'
}

part_distcheck()
{
	result distcheck distcheck
}
