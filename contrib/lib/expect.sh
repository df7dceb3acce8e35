# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # prefix, work: the script that sources this
#
# Assertions about the files that are installed below $prefix. An assertion that does
# not hold ends the script. Sourced after common.sh.

# wanted TEXT COMMAND...: COMMAND must succeed and print TEXT
wanted()
{
	local text=$1 out status=0
	shift
	out=$("$@" 2>&1 </dev/null) || status=$?
	echo "$out"
	[[ $status -eq 0 && $out == *"$text"* ]] ||
		die "$*" "exit status $status" "'$text' was expected"
}

# refused TEXT COMMAND...: COMMAND must fail and print TEXT
refused()
{
	local text=$1 out
	shift
	if out=$("$@" 2>&1 </dev/null); then
		die "$*" "succeeds: $out" "it must not"
	fi
	[[ $out == *"$text"* ]] ||
		die "$*" "prints: $out" "'$text' was expected"
}

# in_login_shell SCRIPT: runs SCRIPT in a new login shell of root. TMPDIR is
# $work, because the names of mpirun's files contain mpirun's pid, which another
# mpirun, in another pid namespace, may have, too.
in_login_shell()
{
	env -i PATH="$PATH" HOME=/root TMPDIR="$work" OMPI_ALLOW_RUN_AS_ROOT=1 \
		OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 bash -lc "$1"
}

# login: prints "path=" and the provider path of a new login shell, and the path of the
# command duo_test.sh there
login()
{
	# shellcheck disable=SC2016 # the login shell expands it
	in_login_shell 'echo "path=$FI_PROVIDER_PATH"; command -v duo_test.sh'
}

# mpi_job: runs the third command of README in a new login shell: mpirun starts
# fi_duo_info as an MPI job. All messages within the host must use shared memory.
mpi_job()
{
	wanted "2 messages within a host; 2 took shared memory, 0 took" \
		in_login_shell \
		'mpirun --host localhost:2 --bind-to none -n 2 fi_duo_info --mpi'
}

# selected VERSION: ofi_duo-select must have selected the modules for libfabric VERSION
selected()
{
	wanted "libfabric-$1" readlink "$prefix/lib/ofi_duo/selected"
}
