/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Stores findings, and prints them in their order as text or JSON. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"

struct info_finding {
	const char *check;
	enum info_status status;
	char text[512];
	char remedy[512];
};

/* all findings, in order; info_remedy() changes the last one */
static struct info_finding *info_findings;
static int info_count;

static const char *const info_words[] = {
	[INFO_OK] = "ok",
	[INFO_NOTE] = "note",
	[INFO_WARNING] = "warning",
	[INFO_ERROR] = "error",
};

void info_found(const char *check, enum info_status status, const char *fmt,
		...)
{
	struct info_finding *finding;
	va_list args;

	finding = reallocarray(info_findings, (size_t) info_count + 1,
			       sizeof(*finding));
	if (!finding) {
		fprintf(stderr, "fi_duo_info: no memory for findings\n");
		exit(INFO_EXIT_ERROR);
	}
	info_findings = finding;
	finding += info_count++;
	memset(finding, 0, sizeof(*finding));
	finding->check = check;
	finding->status = status;
	va_start(args, fmt);
	vsnprintf(finding->text, sizeof(finding->text), fmt, args);
	va_end(args);
}

void info_remedy(const char *fmt, ...)
{
	struct info_finding *finding = &info_findings[info_count - 1];
	va_list args;

	va_start(args, fmt);
	vsnprintf(finding->remedy, sizeof(finding->remedy), fmt, args);
	va_end(args);
}

static enum info_status info_worst(void)
{
	enum info_status worst = INFO_OK;
	int i;

	for (i = 0; i < info_count; i++)
		if (info_findings[i].status > worst)
			worst = info_findings[i].status;
	return worst;
}

int info_exit_status(void)
{
	switch (info_worst()) {
	case INFO_ERROR:
		return INFO_EXIT_ERROR;
	case INFO_WARNING:
		return INFO_EXIT_WARNING;
	default:
		return 0;
	}
}

void info_print_text(void)
{
	const struct info_finding *finding = info_findings;
	int i;

	for (i = 0; i < info_count; i++, finding++) {
		printf("%-8s %-11s %s\n", info_words[finding->status],
		       finding->check, finding->text);
		if (finding->remedy[0])
			printf("%21s-> %s\n", "", finding->remedy);
	}
}

/*
 * Returns the length of the character of UTF-8 at TEXT, or 0 if its bytes are
 * no such character; 0 for ASCII, too.
 */
static int info_utf8(const unsigned char *text)
{
	int len = *text >= 0xc2 && *text < 0xe0 ? 2 :
		  *text >= 0xe0 && *text < 0xf0 ? 3 :
		  *text >= 0xf0 && *text < 0xf5 ? 4 : 0, i;

	for (i = 1; i < len; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

void info_print_string(const char *text)
{
	const unsigned char *c;
	int len;

	putchar('"');
	for (c = (const unsigned char *) text; *c; c++) {
		len = info_utf8(c);
		if (len) {
			fwrite(c, 1, (size_t) len, stdout);
			c += len - 1;
		} else if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else if (*c < 0x20 || *c >= 0x7f)
			printf("\\u%04x", *c);
		else
			putchar(*c);
	}
	putchar('"');
}

static void info_print_member(const char *name, const char *value,
			      const char *end)
{
	info_print_string(name);
	printf(": ");
	info_print_string(value);
	printf("%s", end);
}

void info_print_json(void)
{
	const struct info_finding *finding = info_findings;
	int i;

	info_print_member("status", info_words[info_worst()], ",\n");
	printf("\"findings\": [\n");
	for (i = 0; i < info_count; i++, finding++) {
		printf("  { ");
		info_print_member("check", finding->check, ", ");
		info_print_member("status", info_words[finding->status], ", ");
		info_print_member("found", finding->text, ", ");
		info_print_member("remedy", finding->remedy, " }");
		printf("%s\n", i + 1 < info_count ? "," : "");
	}
	printf("]");
}

bool info_read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool read;

	if (!file)
		return false;
	read = fgets(line, (int) size, file) != NULL;
	fclose(file);
	if (read)
		line[strcspn(line, "\n")] = '\0';
	return read;
}

bool info_read_number(const char *path, long long *number)
{
	char line[64], *end;

	if (!info_read_line(path, line, sizeof(line)))
		return false;
	*number = strtoll(line, &end, 10);
	return end != line;
}
