/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * /dev/shm fills up after shm's endpoints were enabled. smr_shm_space_check()
 * (prov/shm/src/smr_init.c) checks the space in fi_getinfo, but allocates none:
 * the first access to a page of an endpoint's region causes SIGBUS.
 */

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>
#include <sys/mount.h>

#include "repro.h"

#define MESSAGES 256

static void fill(void)
{
	static char page[4096];
	int fd = open("/dev/shm/other", O_CREAT | O_WRONLY, 0600);

	while (write(fd, page, sizeof(page)) == sizeof(page))
		;
	close(fd);
}

static void test(void)
{
	static char message[4096];
	int i;

	if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
		repro_must(-FI_EPERM, "unshare");
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/dev/shm", "tmpfs", 0, "size=256m"))
		repro_must(-FI_EPERM, "mount");
	repro_open("shm", 0, 2);
	fill();
	for (i = 0; i < MESSAGES; i++)
		repro_send(1, 0, message, sizeof(message), 0);
}

int main(void)
{
	return repro_run("shm: /dev/shm fills up after fi_enable", test);
}
