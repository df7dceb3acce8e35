# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash
#
# Functions of the scripts "run" of this directory and those below it. The comment at
# the head of a model, harness or test has lines of the form "WORD: TEXT".

sources=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../../prov/src")

# head_lines FILE WORD: prints the lines of the head that begin with WORD, without this
# word. A line that ends with a backslash continues in the next line.
head_lines()
{
	sed -n -e '/^ \* .*\\$/{:a' -e 'N;s/\\\n \* *//;/\\$/ba' -e '}' \
		-e "s/^ \* $2:\{0,1\} //p" "$1"
}

# try_names NAME FILE: reports functions that the lines "C: FILE FUNCTION..." name and
# that FILE of prov/src does not have
try_names()
{
	local file names name missing=''
	while read -r file names; do
		for name in $names; do
			grep -Eq "^([^[:space:]].*)?\\b$name\\(" "$sources/$file" ||
				missing+=" $name"
		done
	done < <(head_lines "$2" C)
	[[ -z $missing ]] || echo "FAIL: $1: functions not in their files:$missing"
}

# edit FILE SED: changes a file; false: SED changes nothing. A newline in SED is \n.
edit()
{
	cp "$1" "$1.before"
	sed -z -E -i "$2" "$1" || return
	! cmp -s "$1.before" "$1" || {
		echo "  | no match in ${1##*/}: $2"
		return 1
	}
}
