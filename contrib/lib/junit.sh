# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash
#
# Results as JUnit XML, which forges and CI servers read. Sourced by
# contrib/check.

# junit_suite NAME SECONDS LOG: prints a test suite with a test for each line "PASS:
# name", "FAIL: name" (also ERROR, XPASS) and "SKIP: name (reason)" of LOG. A failed
# test has the output before and after its line.
junit_suite()
{
	tr -cd '\11\12\40-\176' <"$3" |
		awk -v part="$1" -v seconds="$2" '
	function text(s) {
		gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s)
		gsub(/>/, "\\&gt;", s); gsub(/"/, "\\&quot;", s)
		return s
	}
	function tail(s) {
		return length(s) > 4000 ? substr(s, length(s) - 3999) : s
	}
	/^(PASS|FAIL|ERROR|XPASS|SKIP): / {
		kind[++n] = substr($1, 1, length($1) - 1)
		name[n] = substr($0, length($1) + 2)
		count[kind[n]]++
		next
	}
	{ said[n] = tail(said[n] $0 "\n") }
	END {
		printf "<testsuite name=\"%s\" tests=\"%d\" failures=\"%d\" " \
			"skipped=\"%d\" time=\"%d\">\n", text(part), n,
			count["FAIL"] + count["ERROR"] + count["XPASS"],
			count["SKIP"], seconds
		for (i = 1; i <= n; i++) {
			printf "<testcase classname=\"%s\" name=\"%s\">",
				text(part), text(name[i])
			if (kind[i] == "SKIP")
				printf "<skipped/>"
			else if (kind[i] != "PASS")
				printf "<failure message=\"%s\">%s%s</failure>",
					kind[i], text(said[i - 1]), text(said[i])
			print "</testcase>"
		}
		print "</testsuite>"
	}'
}

# junit_write FILE: reads suites from stdin and writes them as one document
junit_write()
{
	{
		echo '<?xml version="1.0" encoding="UTF-8"?>'
		echo '<testsuites name="ofi_duo">'
		cat
		echo '</testsuites>'
	} >"$1"
}
