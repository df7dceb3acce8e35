# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # duo_lib: common.sh
#
# Compares skips with the list of expected ones, contrib/lib/skips. Sourced by
# contrib/check after common.sh and platform.sh, in the platform.

skips_list=$duo_lib/skips

# skips_as_user COMMAND...: runs COMMAND as an ordinary user if this process can become
# one, because root has other rights
skips_as_user()
{
	if may_be_nobody; then
		as_nobody "$@"
	else
		"$@"
	fi
}

# skips_provider NAME: true if this libfabric has the provider NAME
skips_provider()
{
	local bin
	bin=$(pkg-config --variable=prefix libfabric)/bin
	[[ $'\n'$(PATH=$PATH:$bin fi_info -l 2>/dev/null) == *$'\n'"$1:"* ]]
}

# skips_hold CONDITION+...: true if all these conditions hold here
skips_hold()
{
	local condition
	for condition in ${1//+/ }; do
		skips_holds "$condition" || return
	done
}

# skips_holds CONDITION: true if the condition holds here
skips_holds()
{
	case $1 in
	always)		true;;
	all)		[[ -n ${check_all:-} ]];;
	not-root)	! may_be_nobody;;
	namespaces)	may_unshare || may_unshare_as_user;;
	no-namespaces)	! may_unshare && ! may_unshare_as_user;;
	no-userns)	! skips_as_user unshare --map-root-user true 2>/dev/null;;
	no-mounts)	! is_root || ! unshare -m true 2>/dev/null;;
	no-install)	! packages_may_install;;
	no-git)		! git -C "$duo_src" rev-parse 2>/dev/null >&2;;
	no-types)	[[ ! -d ${OFI_DUO_NODE_MODULES:-}/typescript ]];;
	other-libfabric) [[ $(dpkg -S "$(pkg-config --variable=libdir libfabric)/libfabric.so" \
				2>/dev/null) != libfabric-dev* ]];;
	roots)		root_possible && { [[ -z ${OFI_DUO_INSIDE:-} ]] || packages_may_install; };;
	provider:*)	skips_provider "${1#*:}";;
	has:*)		command -v "${1#*:}" >/dev/null;;
	lacks:*)	! command -v "${1#*:}" >/dev/null;;
	unpackaged:*)	! pkg-config --exists "${1#*:}";;
	since:*)	pkg-config --atleast-version="${1#*:}" libfabric;;
	*)		die "contrib/lib/skips" "'$1' is no condition" \
				"see skips_hold in contrib/lib/skips.sh";;
	esac
}

# skips_judged PART LOG: prints a line "FAIL: ..." for each unexpected skip in LOG. If
# no test of PART failed, prints such a line also for each line of the list that names
# PART and matches no skip.
skips_judged()
{
	local part=$1 log=$2 condition of regex skip used
	local -a skips known=() idle=()
	mapfile -t skips < <(sed -n 's/^SKIP: //p' "$log")
	while read -r condition of regex; do
		# shellcheck disable=SC2053 # a pattern
		if [[ -z $condition || $condition == '#'* || $part != $of ]] ||
			! skips_hold "$condition"; then
			continue
		fi
		used=''
		for skip in "${!skips[@]}"; do
			[[ ! ${skips[$skip]} =~ $regex ]] || known[skip]=1 used=1
		done
		# A line for any part ("*") may match no skip of this part.
		[[ -n $used || $of != "$part" ]] || idle+=("$regex")
	done <"$skips_list"
	for skip in "${!skips[@]}"; do
		[[ -n ${known[$skip]:-} ]] ||
			echo "FAIL: skip not expected: ${skips[$skip]}"
	done
	! grep -aqE '^(FAIL|ERROR|XPASS): ' "$log" || return 0
	for regex in "${idle[@]}"; do
		echo "FAIL: skip expected, nothing skipped: $regex"
	done
}
