dnl SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
dnl SPDX-FileCopyrightText: The ofi_duo authors

dnl Warnings, --enable-werror (CI), --enable-{asan,ubsan,tsan}, --enable-debug.
AC_DEFUN([DUO_COMPILER_FLAGS], [
	DUO_CFLAGS="-std=gnu11 -Wall -Wextra -Wshadow -Wmissing-prototypes"
	DUO_CFLAGS="$DUO_CFLAGS -Wno-unused-parameter"
	AC_ARG_ENABLE([werror],
		[AS_HELP_STRING([--enable-werror], [treat warnings as errors (CI)])])
	AS_IF([test "x$enable_werror" = xyes],
		[DUO_CFLAGS="$DUO_CFLAGS -Werror"])
	AC_ARG_ENABLE([debug],
		[AS_HELP_STRING([--enable-debug],
			[keep assertions (default: no)])])
	AS_IF([test "x$enable_debug" != xyes],
		[DUO_CFLAGS="$DUO_CFLAGS -DNDEBUG"])

	DUO_SANITIZE=
	AC_ARG_ENABLE([asan],
		[AS_HELP_STRING([--enable-asan], [AddressSanitizer])],
		[AS_IF([test "x$enableval" = xyes],
			[DUO_SANITIZE="$DUO_SANITIZE -fsanitize=address"])])
	AC_ARG_ENABLE([ubsan],
		[AS_HELP_STRING([--enable-ubsan],
			[UndefinedBehaviorSanitizer])],
		[AS_IF([test "x$enableval" = xyes],
			[DUO_SANITIZE="$DUO_SANITIZE -fsanitize=undefined"])])
	AC_ARG_ENABLE([tsan],
		[AS_HELP_STRING([--enable-tsan], [ThreadSanitizer])],
		[AS_IF([test "x$enableval" = xyes],
			[DUO_SANITIZE="$DUO_SANITIZE -fsanitize=thread"])])
	AS_IF([test -n "$DUO_SANITIZE"],
		[DUO_CFLAGS="$DUO_CFLAGS $DUO_SANITIZE -g"
		 DUO_CFLAGS="$DUO_CFLAGS -fno-omit-frame-pointer"])
	AC_SUBST([DUO_CFLAGS])
	AM_CONDITIONAL([HAVE_SANITIZER], [test -n "$DUO_SANITIZE"])

	dnl A vector load of two words that were stored separately waits for the
	dnl store buffer, which takes longer than the rest of a message.
	DUO_HOT_CFLAGS=-fno-tree-slp-vectorize
	duo_save_CFLAGS=$CFLAGS
	CFLAGS="$CFLAGS -Werror $DUO_HOT_CFLAGS"
	AC_MSG_CHECKING([whether $CC accepts $DUO_HOT_CFLAGS])
	AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
		[AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		 DUO_HOT_CFLAGS=])
	CFLAGS=$duo_save_CFLAGS
	AC_SUBST([DUO_HOT_CFLAGS])
	AC_SUBST([DUO_LDFLAGS], ["$DUO_SANITIZE"])
])
