# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # duo_src: common.sh
#
# The version number: prints the one in configure.ac, and checks that the other files
# have the same. Sourced after common.sh.

version_here()
{
	sed -n 's/^AC_INIT(\[ofi_duo\], \[\([^]]*\)\].*/\1/p' \
		"$duo_src/configure.ac"
}

# version_everywhere VERSION: fails if one of the files has another version
version_everywhere()
{
	local version=$1
	grep -q "^## $version " "$duo_src/NEWS.md" || die "NEWS.md" \
		"no heading of version $version" "describe the changes"
	head -1 "$duo_src/debian/changelog" | grep -qF "($version-" ||
		die "debian/changelog" "does not begin with $version" \
			"add an entry"
	grep -q -- "- $version-1\$" "$duo_src/ofi-duo.spec.in" ||
		die "ofi-duo.spec.in" "no entry of $version in its changelog" \
			"add one"
}

# version_released VERSION: fails if the files for users lack the release date
version_released()
{
	grep -qE "^## $1 \([0-9]{4}-[0-9]{2}-[0-9]{2}\)$" "$duo_src/NEWS.md" ||
		die "NEWS.md" "version $1 has no date" \
			"write '## $1 ($(date +%F))'"
	! head -1 "$duo_src/debian/changelog" | grep -q UNRELEASED ||
		die "debian/changelog" "version $1 is UNRELEASED" \
			"name the distribution"
}
