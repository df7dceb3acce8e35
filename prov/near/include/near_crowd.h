/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Is it worth to give one's processor away while one waits for others? Only if
 * one of them may need just this one. Where each can have one of its own, a
 * processor that is given away goes to strangers, for milliseconds.
 *
 * A system call for each process: for those who have nothing else to do.
 */
#ifndef NEAR_CROWD_H
#define NEAR_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * The processes that we exchange messages with, in any order, some more than
 * once perhaps, and ourselves or not; 0: one without a pid here. Are those of
 * them that can run nowhere but on the processors of this thread, and we, more
 * than these processors? pid[] is sorted afterwards.
 */
bool near_crowd(pid_t *pid, size_t count);

#endif /* NEAR_CROWD_H */
