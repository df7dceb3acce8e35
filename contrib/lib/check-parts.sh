# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # duo_src, duo_build: common.sh
#
# The parts of contrib/check. Each prints lines "PASS: name", "FAIL: name" and
# "SKIP: name (reason)" among its other output; contrib/check counts these lines.
# Runs in the platform (platform.sh); sourced after common.sh, platform.sh and
# build.sh.

# Longest duration of a part, s: so long that only a part that hangs reaches it.
# shellcheck disable=SC2034 # contrib/check reads it
part_limit=7200

# Name of a part, and when it runs:
# - first: before all others, one after the other;
# - lanes: in one of the two lanes, which run at the same time. A lane takes the
#   next part of the list when its part has ended;
# - last: after the lanes, because automake of other releases writes into the
#   source tree;
# - all: with --all only.
# asan uses a CPU for minutes. Therefore the next parts in the list, which run beside
# asan, are parts whose processes often wait. Parts that compute come after them. A
# part that makes a tarball holds the lock file dist.lock.
# shellcheck disable=SC2034 # contrib/check reads it
check_parts="
build		first
unit		lanes
asan		lanes
info		lanes
mpi		lanes
efa-faults	lanes
tcp-rxm		lanes
tcp		lanes
peer-shm	lanes
udp-rxd		lanes
efa-udp		lanes
near		lanes
torture		lanes
efa-shm		lanes
hook		lanes
efa-kinds	lanes
bundle		lanes
templates	lanes
rights		lanes
tsan		lanes
proofs		lanes
packages	lanes
distcheck	lanes
scripts		lanes
sockets		last	all
upstream	last	all
debian12	last	all
newest		last	all
aarch64		last	all
"

check_werror=--enable-werror
# With sanitizers gcc takes twice as long for -O1 as for -O0, and the tests take
# the same time.
check_asan="--enable-werror --enable-debug --enable-asan --enable-ubsan CFLAGS=-O0"
# Without --enable-werror: gcc warns about fences, which TSan does not support.
check_tsan="--enable-debug --enable-tsan CFLAGS=-O0"

# do_part NAME: runs a part. If a command of the part fails, part_failed is set and
# the part continues. So the part fails even if this command printed no FAIL line
# and all later commands pass.
do_part()
{
	part_failed=0
	set +e -E
	trap 'part_failed=1' ERR
	"part_${1//-/_}"
}

# result NAME COMMAND...: prints PASS or FAIL by the exit status of COMMAND
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

# in_build SUFFIX CONFIGURE-ARGUMENTS COMMAND...: runs COMMAND through
# contrib/env, with the build tree $duo_build$SUFFIX
in_build()
{
	local build=$duo_build$1 arguments=$2
	shift 2
	OFI_DUO_BUILD=$build OFI_DUO_CONFIGURE=$arguments OFI_DUO_ENV='' \
		"$duo_src/contrib/env" "$@"
}

# in_root COMMAND...: runs COMMAND through contrib/env, as in_build does, in the
# Debian root, which has the packages that only tests of packages need. If no root
# can be made, runs COMMAND on this machine, and COMMAND must skip these tests.
in_root()
{
	local suffix=-check
	root_possible || {
		in_build -check "$check_werror" "$@"
		return
	}
	[[ -n ${OFI_DUO_INSIDE:-} ]] || suffix=-root
	OFI_DUO_PLATFORM=root in_build "$suffix" "$check_werror" "$@"
}

# make_check SUFFIX CONFIGURE-ARGUMENTS [VARIABLE=VALUE]...: runs the unit
# tests. Prints the output of failed tests with " | " before each line, because
# contrib/check must not count these lines as results. With --output-sync the
# lines of programs that run at the same time do not mix.
make_check()
{
	local status=0
	# libcheck's limit of 4 s is too short with sanitizers, or on a busy
	# host.
	CK_TIMEOUT_MULTIPLIER=10 in_build "$1" "$2" make -C "$duo_build$1" \
		-j "$(nproc)" --output-sync check "${@:3}" || status=$?
	[[ $status -eq 0 || ! -f $duo_build$1/test-suite.log ]] ||
		sed 's/^/  | /' "$duo_build$1/test-suite.log"
	# libcheck has no result "skipped": a skipped test passes, and its SKIP
	# line is only in the log of its program.
	find "$duo_build$1/prov" "$duo_build$1/contrib" -name '*.log' \
		-exec grep -ah '^SKIP: ' {} + || true
	return "$status"
}

# fabtests ARGUMENT...: runs the multi-process tests
fabtests()
{
	local -a quick=(--quick)
	[[ -z $check_all ]] || quick=()
	in_build -check "$check_werror" "$duo_src/fabtests/run" "$@" "${quick[@]}"
}

# prints_usage SCRIPT: true if SCRIPT --help prints the script's usage, although it is
# called by a relative path and CDPATH is set
prints_usage()
{
	[[ $(cd "$duo_src" && CDPATH=. "$1" --help) == "${1##*/}"* ]]
}

# Tests contrib/lib/build.sh: contrib/env builds again after a change, also in a clone
# whose name begins with "build"
changes_are_built()
{
	local duo_src status=0
	duo_src=$(mktemp -d -t build.XXXXXX)
	mkdir "$duo_src/build"
	echo key >"$duo_src/build/.ofi_duo-built"
	build_is_current "$duo_src/build" key || status=1
	touch -d '1 hour' "$duo_src/new.c"
	! build_is_current "$duo_src/build" key || status=1
	rm -r "$duo_src"
	return "$status"
}

# Tests contrib/lib/build.sh: all scripts build with the arguments in
# OFI_DUO_CONFIGURE, except in a tree that an outer contrib/env has built. Otherwise
# contrib/env contrib/bench would build the tree twice.
# shellcheck disable=SC2317 # build_here calls it
builds_agree()
(
	OFI_DUO_ENV='' OFI_DUO_CONFIGURE="--a --b"
	build_tree() { echo "$*"; }
	[[ $(build_here) == "$duo_build --a --b" ]] || return
	OFI_DUO_ENV=$duo_build
	[[ -z $(build_here) ]] || return
	! grep -l build_tree "$duo_src"/contrib/{apps,bench,env,gpu}
)

# Tests contrib/lib/junit.sh: the XML of a log is valid, without bytes that XML
# does not permit.
junit_is_right()
{
	local want='<testsuite name="a" tests="3" failures="1" skipped="1" time="7">
<testcase classname="a" name="x &lt;1&gt;"></testcase>
<testcase classname="a" name="y"><failure message="FAIL">why &amp; how
more
</failure></testcase>
<testcase classname="a" name="z (no &quot;root&quot;)"><skipped/></testcase>
</testsuite>'
	[[ $(junit_suite a 7 <(printf '%s\n' "PASS: x <1>" $'why & \1how' \
		"FAIL: y" more 'SKIP: z (no "root")')) == "$want" ]]
}

# Tests contrib/lib/skips.sh: an unexpected skip fails. A line of the list that
# names this part fails if it matches no skip.
skips_are_judged()
{
	local skips_list log status=0
	skips_list=$(mktemp) log=$(mktemp)
	printf '%s\n' '# always a ^c' 'always a ^b .*why' 'always a ^d' 'since:99 a ^e' \
		'always * ^f' 'always g ^c' 'always+since:99 a ^h' \
		'has:bash+has:sh a ^i' 'provider:none a ^j' >"$skips_list"
	printf '%s\n' 'PASS: b' 'SKIP: b (for why)' 'SKIP: c (none)' >"$log"
	[[ $(skips_judged a "$log") == "FAIL: skip not expected: c (none)
FAIL: skip expected, nothing skipped: ^d
FAIL: skip expected, nothing skipped: ^i" ]] || status=1
	rm "$skips_list" "$log"
	return "$status"
}

# Tests the condition other-libfabric of the list: the package of the EFA
# installer's libfabric has another name than the distribution's.
# shellcheck disable=SC2317 # skips_hold calls it
skips_know_libfabric()
(
	dpkg() { echo "$package: /x/libfabric.so"; }
	package=libfabric-aws-dev
	skips_hold other-libfabric || exit
	package=libfabric-dev:amd64
	! skips_hold other-libfabric && skips_hold provider:tcp
)

# Tests do_part: a part fails if any of its commands fails, not only if the last
# one does. The test runs in a shell of its own: its caller is a condition, and
# there bash does not execute an ERR trap.
# shellcheck disable=SC2016 # that shell expands it
parts_notice_failures()
{
	bash -c '. "$0"
		fails() { ! true; false; }
		part_later() { fails; echo "PASS: b"; }
		part_none() { fails || echo "SKIP: a"; [[ -z "" ]] || return; }
		do_part later
		[[ $part_failed -eq 1 ]] || exit 1
		do_part none
		exit "$part_failed"' "$duo_src/contrib/lib/check-parts.sh" >/dev/null
}

# is_refused TEXT COMMAND...: true if COMMAND fails and prints TEXT
is_refused()
{
	local text=$1 said
	shift
	if said=$("$@" 2>&1); then
		return 1
	fi
	[[ $said == *"$text"* ]]
}

# contrib/release must reject a repository that git rejects, for example because another
# user owns it.
release_needs_git()
{
	local dir status=0
	dir=$(mktemp -d)
	mkdir "$dir/out"
	ln -s "$(type -P false)" "$dir/git"
	PATH=$dir:$PATH is_refused "git cannot read" \
		"$duo_src/contrib/release" --out "$dir/out" || status=1
	rm -r "$dir"
	return "$status"
}

# contrib/lib/installcheck must accept libraries of other packages.
installcheck_accepts_others()
{
	local dir status=0
	dir=$(mktemp -d)
	touch "$dir/libother.so" "$dir/libother.la"
	"$duo_src/contrib/lib/installcheck" "$dir" "$dir" "$dir" "$dir" "$dir" \
		"" "" "" || status=1
	rm -r "$dir"
	return "$status"
}

# ofi_duo.pc must accept the oldest libfabric for which ofi_duo can be built.
pc_accepts_oldest()
{
	local dir status=0
	dir=$(mktemp -d)
	printf '%s\n' 'Name: libfabric' 'Description: no files' 'Version: 1.17.0' \
		>"$dir/libfabric.pc"
	sed 's,@[A-Za-z_]*@,/0,' "$duo_src/ofi_duo.pc.in" >"$dir/ofi_duo.pc"
	PKG_CONFIG_PATH=$dir pkg-config --cflags ofi_duo || status=1
	rm -r "$dir"
	return "$status"
}

# orders SEED: prints the order of the configurations in four rounds of
# contrib/bench
# shellcheck disable=SC2034 # in_order uses it
orders()
(
	. "$duo_src/contrib/bench.d/run.sh"
	configs=a,b,d,e,f,g,h random=1 RANDOM=$1
	for round in 1 2 3 4; do
		in_order "" a b c d e f g h
		echo "${ordered[*]}"
	done
)

# Tests contrib/bench --random: equal seeds must give equal orders, different seeds
# different orders. Each round must have all configurations of --configs once.
# At least two rounds must have different orders.
bench_order_is_random()
{
	local line
	[[ $(orders 7) == "$(orders 7)" && $(orders 7) != "$(orders 8)" &&
	   $(orders 7 | sort -u | wc -l) -gt 1 ]] || return
	while read -r line; do
		[[ $(tr ' ' '\n' <<<"$line" | sort | tr -d '\n') == abdefgh ]] ||
			return
	done < <(orders 7)
}

# Prints the source files without a line that names their license or their authors.
# True if there are none. (The exit status of grep -L depends on its version.)
licenses_are_named()
{
	local line files=
	cd "$duo_src" || return
	for line in 'SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only' \
		'SPDX-FileCopyrightText: The ofi_duo authors'; do
		files+=$(grep -rL "$line" .ci contrib debian fabtests include prov util \
			--include='*.[ch]' --include='*.py' --include='*.sh' \
			--include='*.inc' || true)
	done
	echo "$files"
	[[ -z $files ]]
}

# An interrupted --pack leaves some files in its directory. The next --pack must accept
# this directory.
pack_continues()
{
	local dir
	dir=$(mktemp -d)
	. "$duo_src/contrib/bench.d/pack.sh"
	(pack_check "$dir") && touch "$dir/file" && (pack_check "$dir") &&
		rm -r "$dir"
}

part_scripts()
{
	local script
	for script in contrib/{apps,bench,bundle,check,demo,env,gpu,hosts,proofs/run,proofs/{litmus,safety}/run,release,torture} \
		fabtests/run; do
		result "$script --help" prints_usage "$script"
	done
	result "env: a change is built" changes_are_built
	result "env, bench, gpu: equal arguments of configure" builds_agree
	result "junit: the results of a log" junit_is_right
	result "skips: compared with the list" skips_are_judged
	result "skips: another libfabric" skips_know_libfabric
	result "check: a failure without a result" parts_notice_failures
	result "release: a missing directory is rejected" \
		is_refused "/nonexistent" "$duo_src/contrib/release" --out /nonexistent
	result "release: no git repository is rejected" release_needs_git
	result "ofi_duo.pc: libfabric 1.17" pc_accepts_oldest
	result "installcheck: other libraries" installcheck_accepts_others
	result "spack: the recipe" python3 -B "$duo_src/contrib/spack/test.py"
	result "bench: an unknown suite is rejected" \
		is_refused "no suite 'maim'" "$duo_src/contrib/bench" --only main,maim
	result "bench: an unknown configuration is rejected" \
		is_refused "no configuration 'dua'" "$duo_src/contrib/bench" --configs near,dua
	result "bench: --pack keeps other files" \
		is_refused "has other files" "$duo_src/contrib/bench" --pack "$duo_src"
	result "bench: --pack continues after an interruption" pack_continues
	result "apps: a wrong number is rejected" \
		is_refused "'x' is no number" "$duo_src/contrib/apps" --rounds x
	result "demo: an unknown option is rejected" \
		is_refused "'--wrong' is no option" "$duo_src/contrib/demo" --wrong
	result "bench: random order" bench_order_is_random
	result "bench: arithmetic of the report" \
		python3 -B "$duo_src/contrib/bench.d/report_test.py"
	check_prose
	bash "$duo_src/contrib/lib/check-docs-test"
	result "docs: names, links, parameters and messages" \
		"$duo_src/contrib/lib/check-docs"
	result "docs: license in each source file" licenses_are_named
	command -v shellcheck >/dev/null || {
		echo "SKIP: scripts (no shellcheck)"
		return
	}
	check_scripts
}

# Checks for expressions that CONTRIBUTING.md (English) replaces.
check_prose()
{
	bash "$duo_src/contrib/lib/check-prose-test"
	result "prose: no file is worse" "$duo_src/contrib/lib/check-prose"
	if git -C "$duo_src" rev-parse >/dev/null 2>&1; then
		result "prose: subjects of commits" \
			"$duo_src/contrib/lib/check-prose" --subjects
	else
		echo "SKIP: prose: subjects of commits (not a git repository)"
	fi
}

# Checks all files that bash or sh runs, also libraries.
# shellcheck disable=SC2016 # a shell for each file expands it
check_scripts()
{
	cd "$duo_src" || return
	export -f result
	grep -rlE '^#!/bin/(ba)?sh|^# shellcheck shell=' \
		autogen.sh .ci contrib debian fabtests util --exclude='*.[ch]' |
		xargs -P "$(nproc)" -n 1 bash -c '
			text=$(result "$0" shellcheck -x -P SCRIPTDIR -P contrib/lib \
				"$0") || true
			echo "$text"'
}

# Compiles the reproducers of contrib/upstream, for libfabric's maintainers. The
# reproducers do not use ofi_duo.
reproducers()
{
	local out status=0
	out=$(mktemp -d)
	make -s -C "$duo_src/contrib/upstream" OUT="$out" \
		CFLAGS="-O1 -Wall -Wextra -Wno-unused-parameter -Werror" ||
		status=$?
	rm -r "$out"
	return "$status"
}

part_build()
{
	result build in_build -check "$check_werror" true
	result "build: contrib/upstream" reproducers
}

part_unit()
{
	pkg-config --exists "check >= 0.15" ||
		echo "SKIP: unit tests (Check is not installed)"
	make_check -check "$check_werror" || return
	in_build -check "$check_werror" "$duo_src/contrib/lib/check-layers-test"
	result layers in_build -check "$check_werror" \
		"$duo_src/contrib/lib/check-layers" "$duo_src/prov/src" \
		"$duo_build-check/prov/src"
}

# Checks the models of near's protocols, and proofs of memory safety.
part_proofs()
{
	in_build -check "$check_werror" "$duo_src/contrib/proofs/run" ${check_all:+--all}
}

# The short form of contrib/torture. The long one is started by hand.
part_torture()
{
	in_build -check "$check_werror" "$duo_src/contrib/torture" --short
}

part_info()
{
	in_build -check "$check_werror" "$duo_src/util/info/check"
	in_build -check "$check_werror" "$duo_src/util/info/check-mpi"
	in_build -check "$check_werror" "$duo_src/contrib/lib/check-offer"
	in_build -check "$check_werror" "$duo_src/contrib/lib/check-pingpong"
}

part_rights()
{
	in_build -check "$check_werror" "$duo_src/contrib/lib/check-rights"
	in_build -check "$check_werror" "$duo_src/contrib/lib/check-install"
}

part_efa_shm() { fabtests --core efa --wire shm; }

# Without --all, leaves out the layouts that the part efa-faults runs over the same
# wire. The parts efa-shm and hook run the programs without faults.
part_efa_udp()
{
	local -a but=(--but local --but remote --but mixed --but plain
		--but plain_send --but plain_recv --but plain_recv_mixed)
	[[ -z $check_all ]] || but=()
	fabtests --core efa --wire udp "${but[@]}"
}

part_tcp() { fabtests --core tcp; }
part_sockets() { fabtests --core sockets; }

# Tests that the parts tcp-rxm and udp-rxd leave out without --all
one_host=(--but rdm_tagged_pingpong/local --but cancel_race/local --but wait/local)

# Without --all, leaves out the layouts of three and four ranks, which the parts tcp
# and efa-faults run. Also leaves out tests on one host, if the program also runs on
# two hosts.
part_tcp_rxm()
{
	local -a but=(--but mixed --but plain --but plain_recv_mixed "${one_host[@]}"
		--but any_source/local --but match_model/local)
	[[ -z $check_all ]] || but=()
	fabtests --core 'tcp;ofi_rxm' "${but[@]}"
}

part_udp_rxd()
{
	local -a but=("${one_host[@]}")
	[[ -z $check_all ]] || but=()
	fabtests --core 'udp;ofi_rxd' "${but[@]}"
}

# FI_HOOK=duo, with the provider name of the core.
part_hook()
{
	local test
	local -a only=()
	for test in any_source atomics cntr ep_life match_model mr_modes own_fids \
		peer_death promised rdm_tagged_pingpong rma threads \
		transfers wait; do
		only+=(--only "$test/local")
	done
	for test in plain_send plain_recv wrap_send wrap_recv noshm_send; do
		only+=(--only "rdm_tagged_pingpong/$test")
	done
	for test in any_source match_model soak; do
		only+=(--only "$test/kinds")
	done
	only+=(--only promised/remote --only transfers/remote --only auto_progress)
	fabtests --hook --core tcp "${only[@]}" --only order/local
	fabtests --hook --core efa --wire shm "${only[@]}"
	fabtests --hook --core efa --wire udp --only transfers/remote
	in_build -check "$check_werror" "$duo_src/contrib/lib/check-pingpong" hook
	in_build -check "$check_werror" "$duo_src/contrib/lib/check-mpi" hook
}

# The wire loses, repeats and reorders packets, and receivers are not ready.
part_efa_faults()
{
	local -a but=()
	[[ -n $check_all ]] || but=(--but noshm_recv --but noshm_send)
	SOFTEFA_LOSS=0.02 SOFTEFA_REORDER=0.05 SOFTEFA_DUP=0.02 \
		SOFTEFA_RNR=0.01 fabtests --core efa --wire udp --but pods --but local \
		"${but[@]}"
}

# Other kinds of devices: without RDMA, with reads only, several devices, and
# the shm wire with faults.
part_efa_kinds()
{
	local -a few=(--core efa --wire shm --only rdm_tagged_pingpong/noshm_recv
		--only rdm_tagged_pingpong/plain_recv --only rdm_pingpong/noshm_send)
	in_build -check "$check_werror" "$duo_src/contrib/lib/check-device"
	SOFTEFA_RDMA=0 fabtests "${few[@]}"
	SOFTEFA_RDMA=0 fabtests --core efa --wire udp --only transfers/remote
	SOFTEFA_RDMA=read FI_EFA_USE_DEVICE_RDMA=1 fabtests "${few[@]}"
	SOFTEFA_NDEV=2 fabtests "${few[@]}"
	SOFTEFA_LOSS=0.02 SOFTEFA_REORDER=0.05 SOFTEFA_DUP=0.02 \
		SOFTEFA_RNR=0.01 fabtests "${few[@]}"
}

# The provider near, without ofi_duo.
part_near()
{
	fabtests --core near
	in_build -check "$check_werror" "$duo_src/contrib/lib/check-pages"
	in_build -check "$check_werror" "$duo_src/contrib/lib/check-mpi" near
	in_build -check "$check_werror" "$duo_src/contrib/gpu" --quick --stand-in
}

# ofi_duo with libfabric's shm as its local transport: tests of receives over
# both paths, and those that depend on efa.
part_peer_shm()
{
	local -a receives=(--peer shm --only rdm_tagged_pingpong --only match_model)
	local -a more=(--only multi_recv --only cancel_race --only soak)
	if [[ -n $check_all ]]; then
		fabtests --core tcp --peer shm
	else
		fabtests --core tcp "${receives[@]}" "${more[@]}" --only any_source \
			--only unexpected --only peek_claim --only directed_recv \
			--only start
	fi
	fabtests --core efa --wire shm "${receives[@]}" ${check_all:+"${more[@]}"}
}

part_mpi()
{
	in_build -check "$check_werror" "$duo_src/contrib/lib/check-mpi"
	# contrib/apps with the applications takes too long here, so only its
	# self-test runs.
	command -v mpirun >/dev/null || return 0
	result "apps: self-test" in_build -check "$check_werror" \
		"$duo_src/contrib/apps" --self-test
}

# libfabric's own fabtests.
part_upstream()
{
	in_build -check "$check_werror" "$duo_src/contrib/lib/check-fabtests"
	in_build -check "$check_werror" "$duo_src/contrib/lib/check-fabtests" hook
}

export_sanitizers()
{
	export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
	export TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1"
}

# Tests that run with ASan over tcp if --all is not given: each program once, in the
# layout with the most kinds of receives and buffers. All other tests with ASan run over
# near.
asan_tcp=(--only rdm_tagged_pingpong/remote --only rdm_tagged_pingpong/room_full
	--only cq/remote --only cntr/mixed --only cq_errors/remote
	--only any_source/plain_recv_mixed --only match_model/plain
	--only unexpected/remote --only wait/mixed --only cancel_race/plain_send
	--only peek_claim/plain --only directed_recv/plain --only multi_ep/remote
	--only multi_recv/plain --only shared_av/mixed --only ep_life/local
	--only av_life/remote --only rma/remote --only order/remote
	--only own_fids/remote --only threads/remote --only soak/plain
	--only start/local --only same_addr)

# Runs tests with ASan and UBSan. ASan's check of the order of libraries is off:
# programs without sanitizers (shells, mpirun) load the software EFA device, which is
# built with sanitizers. Leaks are detected only in the unit tests, because these run
# no code of other projects.
part_asan()
{
	local -a run=("$duo_src/fabtests/run" --quick)
	[[ -z $check_all ]] || asan_tcp=()
	export_sanitizers
	result "asan: build" in_build -asan "$check_asan" \
		make -C "$duo_build-asan" -j "$(nproc)" test-programs || return
	make_check -asan "$check_asan"
	export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
	in_build -asan "$check_asan" "${run[@]}" --core near
	in_build -asan "$check_asan" "${run[@]}" --core tcp "${asan_tcp[@]}"
	# Tests of pid namespaces test near, which does not depend on the core.
	[[ -z $check_all ]] || in_build -asan "$check_asan" "${run[@]}" --core efa \
		--wire shm --but spaces --but outside --but outside_noshm
}

# threaded_tests: prints the unit tests that use threads, those of the software EFA
# device only with --all
threaded_tests()
{
	local -a sources
	cd "$duo_src" || return
	mapfile -t sources < <(grep -rlE --include='*.c' \
		'(pthread_create|unit_thread|unit_waiter)\(' \
		prov/test ${check_all:+contrib/softefa/test})
	sed -e ':join' -e '/\\$/{N; s/\\\n/ /; b join' -e '}' \
		prov/test/Makefile.inc prov/test/near/Makefile.inc \
		contrib/softefa/Makefile.inc |
		awk -v sources="${sources[*]}" '
		function canonical(name)
		{
			gsub(/[^A-Za-z0-9_]/, "_", name)
			return name
		}
		BEGIN {
			n = split(sources, list)
			for (i = 1; i <= n; i++)
				has[list[i]] = 1
		}
		{
			for (i = 1; i <= NF; i++) {
				if ($1 ~ /_SOURCES$/ && $i in has)
					threaded[$1] = 1
				words[$i] = 1
			}
		}
		END {
			for (word in words) {
				# suite.c, in two libraries, defines unit_thread()
				if (word !~ /\.la$/ &&
				    canonical(word) "_SOURCES" in threaded)
					print word
			}
		}'
}

# Runs the unit tests with threads. Other tests use several processes, between which
# TSan detects no races.
part_tsan()
{
	export_sanitizers
	result "tsan: build" in_build -tsan "$check_tsan" \
		make -C "$duo_build-tsan" -j "$(nproc)" test-programs || return
	local -a programs
	mapfile -t programs < <(threaded_tests)
	[[ ${#programs[@]} -gt 0 ]] || result "tsan: unit tests with threads" false
	make_check -tsan "$check_tsan" TESTS="${programs[*]}" \
		check_PROGRAMS="${programs[*]}"
	in_build -tsan "$check_tsan" "$duo_src/fabtests/run" --quick --core tcp \
		--only threads ${check_all:+--only cq --only multi_ep}
}

# Runs "make distcheck" without the test programs, which other parts build and
# run; tarball_is_whole checks that the tarball has their sources.
distcheck()
{
	in_build -check "$check_werror" \
		flock "$duo_build-check/dist.lock" make -C "$duo_build-check" \
		-j "$(nproc)" distcheck TESTS= check_PROGRAMS= \
		check_LTLIBRARIES= mpi_test_programs= \
		DISTCHECK_CONFIGURE_FLAGS=CFLAGS=-O0
}

# not_in_tarball: prints the files of the repository that "make dist" omits
not_in_tarball()
{
	comm -23 <(git -C "$duo_src" ls-files | grep -vE "^(.gitignore$|debian/)" |
			sort) \
		<(flock "$duo_build-check/dist.lock" tar -tzf \
			"$duo_build-check/ofi_duo-$(version_here).tar.gz" |
			sed 's,^[^/]*/,,' | sort)
}

tarball_is_whole()
{
	local missing
	missing=$(not_in_tarball) || return
	[[ -z $missing ]] && return
	echo "not in the tarball (EXTRA_DIST in a Makefile.inc):" "$missing"
	return 1
}

part_distcheck()
{
	result distcheck distcheck || return
	if git -C "$duo_src" rev-parse >/dev/null 2>&1; then
		result "distcheck: tarball" tarball_is_whole
	else
		echo "SKIP: distcheck: tarball (not a git repository)"
	fi
}

part_packages()
{
	in_root "$duo_src/contrib/lib/check-packages"
}

part_bundle()
{
	in_root "$duo_src/contrib/lib/check-bundle"
}

# Tests on the oldest and the newest supported Debian release, without packages of
# other releases. The platform, where all other parts run, is the release between
# them.
part_debian12()
{
	in_root "$duo_src/contrib/lib/check-release" bookworm
}

part_newest()
{
	in_root "$duo_src/contrib/lib/check-release" forky
}

part_aarch64()
{
	in_root "$duo_src/contrib/lib/check-aarch64"
}

# Without --all the part leaves out tests whose packages take long to install:
# see check-templates.
part_templates()
{
	in_build -check "$check_werror" "$duo_src/contrib/lib/check-templates"
}
