dnl SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
dnl SPDX-FileCopyrightText: The ofi_duo authors

dnl libfabric >= 2.0, for the provider, its tests and fabtests.
dnl --disable-provider builds only what does not need it (softefa).
AC_DEFUN([DUO_CHECK_LIBFABRIC], [
	AC_ARG_ENABLE([provider],
		[AS_HELP_STRING([--disable-provider],
			[build without libfabric >= 2.0: softefa only])])
	AS_IF([test "x$enable_provider" != xno], [
		PKG_CHECK_MODULES([LIBFABRIC], [libfabric >= 2.0], [],
			[AC_MSG_ERROR([libfabric >= 2.0 is needed: \
$LIBFABRIC_PKG_ERRORS. Set PKG_CONFIG_PATH to the right one, use contrib/env \
which prepares one, or give --disable-provider to build softefa alone.])])
		AC_CHECK_MEMBER([struct fi_ops_srx_owner.get_msg], [],
			[AC_MSG_ERROR([libfabric's Peer API is needed, \
rdma/providers/fi_peer.h])],
			[#include <rdma/fabric.h>
			 #include <rdma/providers/fi_peer.h>])
		providerdir='${libdir}/libfabric'
	])
	AC_SUBST([providerdir])
	AM_CONDITIONAL([HAVE_LIBFABRIC], [test "x$enable_provider" != xno])
])

dnl rdma-core headers, for the software EFA device.
AC_DEFUN([DUO_CHECK_VERBS], [
	have_verbs=yes
	AC_CHECK_HEADERS([infiniband/verbs.h infiniband/efadv.h], [],
		[have_verbs=no])
	AM_CONDITIONAL([HAVE_VERBS], [test "x$have_verbs" = xyes])
])

dnl Check, for unit tests.
AC_DEFUN([DUO_CHECK_CHECK], [
	PKG_CHECK_MODULES([CHECK], [check >= 0.15], [have_check=yes],
		[have_check=no])
	AM_CONDITIONAL([HAVE_CHECK], [test "x$have_check" = xyes])
])

dnl An MPI compiler, for the MPI test programs of fabtests/.
AC_DEFUN([DUO_CHECK_MPI], [
	AC_CHECK_PROGS([MPICC], [mpicc.openmpi mpicc])
	AM_CONDITIONAL([HAVE_MPI], [test -n "$MPICC"])
])

dnl pandoc, for the man pages.
AC_DEFUN([DUO_CHECK_PANDOC], [
	AC_CHECK_PROGS([PANDOC], [pandoc])
	AS_IF([test -z "$PANDOC"],
		[AC_MSG_WARN([no pandoc: manual pages are not made])])
	AM_CONDITIONAL([HAVE_PANDOC], [test -n "$PANDOC"])
])

dnl DUO_SAY_PART(NAME, CONDITIONAL, WHAT IS MISSING): a line of the summary.
AC_DEFUN([DUO_SAY_PART], [
	AM_COND_IF([$2], [AC_MSG_NOTICE([  $1: yes])],
		[AC_MSG_NOTICE([  $1: no, $3])])
])

dnl What is built and installed, and what is left out for want of something.
AC_DEFUN([DUO_SUMMARY], [
	AC_MSG_NOTICE([ofi_duo $PACKAGE_VERSION:])
	DUO_SAY_PART([provider], [HAVE_LIBFABRIC], [--disable-provider])
	DUO_SAY_PART([softefa], [HAVE_VERBS], [no infiniband/efadv.h])
	DUO_SAY_PART([unit tests], [HAVE_CHECK], [no check >= 0.15])
	DUO_SAY_PART([MPI tests], [HAVE_MPI], [no mpicc])
	DUO_SAY_PART([manual pages], [HAVE_PANDOC], [no pandoc])
])
