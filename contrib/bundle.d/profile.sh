# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=sh
#
# Sets FI_PROVIDER_PATH and PATH in login shells, for ofi_duo's provider modules and
# programs.

case :$PATH: in
*:@prefix@/bin:*) ;;
*) PATH=$PATH:@prefix@/bin;;
esac
if [ -z "${FI_PROVIDER_PATH:-}" ]; then
	if [ -e @prefix@/lib/ofi_duo/libfabric.so ]; then
		FI_PROVIDER_PATH=@prefix@/lib/ofi_duo/selected:@prefix@/lib/ofi_duo/own
	else
		# libfabric was replaced, and ofi_duo-select has not run since,
		# so the selected modules may be for another libfabric.
		FI_PROVIDER_PATH=$(@prefix@/bin/ofi_duo-select --print 2>/dev/null) ||
			FI_PROVIDER_PATH=
	fi
	if [ -n "$FI_PROVIDER_PATH" ]; then
		export FI_PROVIDER_PATH
	else
		unset FI_PROVIDER_PATH
	fi
fi
