dnl SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
dnl SPDX-FileCopyrightText: The ofi_duo authors

dnl Only configure.ac has the version number. The providers report
dnl DUO_VERSION_MAJOR and DUO_VERSION_MINOR to libfabric.
AC_DEFUN([DUO_VERSION], [
	AC_DEFINE_UNQUOTED([DUO_VERSION_MAJOR],
		[`echo "$PACKAGE_VERSION" | cut -d. -f1`],
		[Major version number])
	AC_DEFINE_UNQUOTED([DUO_VERSION_MINOR],
		[`echo "$PACKAGE_VERSION" | cut -d. -f2`],
		[Minor version number])
])

dnl Directories of the EFA installer's libfabric, which pkg-config does not search.
AC_DEFUN([DUO_EFA_PKG_CONFIG_PATH],
	[/opt/amazon/efa/lib/pkgconfig:/opt/amazon/efa/lib64/pkgconfig])

dnl libfabric >= 1.17, for the provider and fabtests; >= 2.0 for its shm as a
dnl peer and for the provider's unit tests, which have a fake of that. The
dnl directories of PKG_CONFIG_PATH come first, then the EFA installer's, whose
dnl libfabric the programs of its hosts load, then the system's.
dnl --disable-provider builds only softefa, which needs no libfabric.
AC_DEFUN([DUO_CHECK_LIBFABRIC], [
	AC_ARG_ENABLE([provider],
		[AS_HELP_STRING([--disable-provider],
			[build without libfabric: softefa only])])
	AC_ARG_WITH([providerdir],
		[AS_HELP_STRING([--with-providerdir=DIR],
			[directory of provider modules
			 (default: LIBDIR/libfabric)])],
		[], [with_providerdir='${libdir}/libfabric'])
	AS_CASE(["$with_providerdir"],
		[yes|no|''],
		[AC_MSG_ERROR([--with-providerdir needs a directory])])
	AS_IF([test "x$enable_provider" != xno], [
		PKG_CONFIG_PATH="${PKG_CONFIG_PATH:+$PKG_CONFIG_PATH:}DUO_EFA_PKG_CONFIG_PATH"
		export PKG_CONFIG_PATH
		PKG_CHECK_MODULES([LIBFABRIC], [libfabric >= 1.17], [],
			[AC_MSG_ERROR([libfabric >= 1.17 is needed: \
$LIBFABRIC_PKG_ERRORS. Set PKG_CONFIG_PATH to its directory, use contrib/env \
which prepares one, or use --disable-provider to build softefa only.])])
		AS_IF([$PKG_CONFIG --atleast-version=2.0 libfabric],
			[have_peers=yes
			 duo_save_CPPFLAGS=$CPPFLAGS
			 CPPFLAGS="$LIBFABRIC_CFLAGS $CPPFLAGS"
			 AC_CHECK_MEMBER([struct fi_ops_srx_owner.get_msg], [],
				[AC_MSG_ERROR([libfabric's Peer API is needed, \
rdma/providers/fi_peer.h])],
				[#include <rdma/fabric.h>
				 #include <rdma/providers/fi_peer.h>])
			 CPPFLAGS=$duo_save_CPPFLAGS])
		duo_libfabric_version=`$PKG_CONFIG --modversion libfabric`
		duo_libfabric_libdir=`$PKG_CONFIG --variable=libdir libfabric`
	])
	AC_SUBST([providerdir], [$with_providerdir])
	dnl contrib/bundle reads it in the Makefile.
	AC_SUBST([duo_libfabric_version])
	AM_CONDITIONAL([HAVE_LIBFABRIC], [test "x$enable_provider" != xno])
	AM_CONDITIONAL([HAVE_PEERS], [test "x$have_peers" = xyes])
])

dnl The provider near: a second module made of the same objects.
AC_DEFUN([DUO_CHECK_NEAR], [
	AC_ARG_ENABLE([near],
		[AS_HELP_STRING([--disable-near],
			[omit the shared memory provider near
			 (default: as --enable-provider)])],
		[], [enable_near=yes])
	AS_IF([test "x$enable_provider" = xno], [enable_near=no])
	AM_CONDITIONAL([HAVE_NEAR], [test "x$enable_near" != xno])
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

dnl An MPI compiler, for the MPI test programs of fabtests/. Debian's openmpi-bin
dnl has the command, libopenmpi-dev the headers and libraries.
AC_DEFUN([DUO_CHECK_MPI], [
	AC_CHECK_PROGS([MPICC], [mpicc.openmpi mpicc])
	AS_IF([test -n "$MPICC"], [
		AC_MSG_CHECKING([whether $MPICC compiles])
		echo "#include <mpi.h>" >conftest.c
		AS_IF([$MPICC -c -o conftest.o conftest.c \
			>&AS_MESSAGE_LOG_FD 2>&1],
			[AC_MSG_RESULT([yes])],
			[AC_MSG_RESULT([no])
			 MPICC=])
		rm -f conftest.c conftest.o])
	AM_CONDITIONAL([HAVE_MPI], [test -n "$MPICC"])
])

dnl pandoc, for the manual pages; the tarball of a release contains them.
AC_DEFUN([DUO_CHECK_PANDOC], [
	AC_CHECK_PROGS([PANDOC], [pandoc])
	have_man=yes
	AS_IF([test -z "$PANDOC" && test ! -f "$srcdir/man/fi_duo.7"],
		[AC_MSG_WARN([no pandoc: manual pages are not made])
		 have_man=no])
	AM_CONDITIONAL([HAVE_PANDOC], [test -n "$PANDOC"])
	AM_CONDITIONAL([HAVE_MAN], [test "x$have_man" = xyes])
])

dnl DUO_SAY_PART(NAME, CONDITIONAL, REASON): prints a line of the summary.
AC_DEFUN([DUO_SAY_PART], [
	AM_COND_IF([$2], [AC_MSG_NOTICE([  $1: yes])],
		[AC_MSG_NOTICE([  $1: no, $3])])
])

dnl Prints a notice if libfabric will not find the modules without a setting.
AC_DEFUN([DUO_SAY_PROVIDERDIR], [
	AS_IF([test "x$enable_provider" != xno], [
		dnl After AC_OUTPUT prefix is set, and the others refer to it.
		eval "duo_dir=\"$providerdir\""
		eval "duo_dir=\"$duo_dir\""
		eval "duo_dir=\"$duo_dir\""
		AC_MSG_NOTICE([  libfabric: $duo_libfabric_version in \
$duo_libfabric_libdir])
		AC_MSG_NOTICE([  provider modules go to $duo_dir])
		AS_IF([test "$duo_dir" != "$duo_libfabric_libdir/libfabric"],
			[AC_MSG_NOTICE([  this libfabric searches \
$duo_libfabric_libdir/libfabric: set FI_PROVIDER_PATH, or configure \
--with-providerdir])])
	])
])

dnl Prints the parts that are built and installed, and those that are omitted.
AC_DEFUN([DUO_SUMMARY], [
	AC_MSG_NOTICE([ofi_duo $PACKAGE_VERSION:])
	DUO_SAY_PART([provider], [HAVE_LIBFABRIC], [--disable-provider])
	DUO_SAY_PART([near], [HAVE_NEAR], [--disable-near])
	DUO_SAY_PART([softefa], [HAVE_VERBS], [no infiniband/efadv.h])
	DUO_SAY_PART([unit tests], [HAVE_CHECK], [no check >= 0.15])
	DUO_SAY_PART([MPI tests], [HAVE_MPI], [no mpicc that compiles])
	DUO_SAY_PART([manual pages], [HAVE_MAN], [no pandoc])
	DUO_SAY_PROVIDERDIR
])
