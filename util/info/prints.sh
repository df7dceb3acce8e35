# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2034,SC2154
#
# Setup of the tests of fi_duo_info, and the function "prints". Source it after
# common.sh, in contrib/env, which has the program in PATH.

info=$(command -v fi_duo_info) || die "cannot test fi_duo_info" \
	"it is not in PATH" "run the test by contrib/env"
module=$duo_build/prov/.libs/libduo-fi.so
failed=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset FI_PROVIDER FI_HOOK FI_OFI_DUO_LOCAL FI_OFI_DUO_REGISTRY_DIR
export info module dir

# prints NAME STATUS PATTERN COMMAND...: passes if COMMAND exits with STATUS (-:
# any), and a line of its output matches PATTERN, an extended regular expression
prints()
{
	local name=info:\ $1 want=$2 pattern=$3 status=0
	shift 3
	timeout "$hang_s" "$@" >"$dir/out" 2>&1 </dev/null || status=$?
	if [[ $want == - || $status -eq $want ]] &&
	   grep -qE -- "$pattern" "$dir/out"; then
		echo "PASS: $name"
		return
	fi
	sed 's/^/  | /' "$dir/out"
	echo "  exit status $status, wanted $want and: $pattern"
	echo "FAIL: $name"
	failed=1
}
