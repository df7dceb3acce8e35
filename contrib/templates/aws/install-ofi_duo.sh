#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# The nodes of aws/parallelcluster.yaml run this script. Put the script and the
# bundle into the bucket that parallelcluster.yaml names.

set -eu
bucket=s3://BUCKET
name=ofi_duo-VERSION-DISTRO-ARCH

cd "$(mktemp -d)"
aws s3 cp "$bucket/$name.tar.gz" .
tar -xzf "$name.tar.gz"
"./$name/install.sh" -y
