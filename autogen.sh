#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# Makes ./configure from configure.ac.
set -e
cd "$(dirname "$0")"
mkdir -p config
exec autoreconf --install --force "$@"
