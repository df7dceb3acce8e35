/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Draws the matrix of paths, with a square for each pair of ranks. */

#include <stdio.h>

#include "mpi.h"

#define SVG_CELL 14
#define SVG_LEFT 170
#define SVG_TOP 60

/* Color and text of each kind of square. Viewers show the text as a title. */
static const struct {
	const char *fill, *text;
} svg_kinds[] = {
	{ "#e0e0e0", "itself" },
	{ "#2a9d3a", "shared memory" },
	{ "#4a7fc1", "core, another host" },
	{ "#e8a317", "core, the same host" },
	{ "#cc2222", "has not arrived" },
	{ "#ffffff", "not sent" },
};

static int svg_kind(const struct mpi_job *job, int from, int to)
{
	const struct mpi_rank *a = &job->ranks[from], *b = &job->ranks[to];

	if (from == to)
		return 0;
	if (a->row[to].path == MPI_CELL_NONE)
		return 5;
	if (!mpi_arrived(job, from, to))
		return 4;
	if (a->row[to].path == MPI_CELL_SHM)
		return 1;
	return mpi_same_host(a, b) ? 3 : 2;
}

static void svg_text(FILE *to, const char *text)
{
	for (; *text; text++) {
		if (*text == '<' || *text == '>' || *text == '&')
			fprintf(to, "&#%d;", *text);
		else if ((unsigned char) *text >= ' ')
			fputc(*text, to);
	}
}

static void svg_label(FILE *to, int x, int y, const char *label)
{
	fprintf(to, "<text x=\"%d\" y=\"%d\">", x, y);
	svg_text(to, label);
	fprintf(to, "</text>\n");
}

static void svg_cell(const struct mpi_job *job, FILE *svg, int from, int to)
{
	const struct mpi_cell *cell = &job->ranks[from].row[to];
	int kind = svg_kind(job, from, to);

	fprintf(svg, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
		"fill=\"%s\"><title>rank %d to rank %d: %s",
		SVG_LEFT + to * SVG_CELL, SVG_TOP + from * SVG_CELL,
		SVG_CELL - 1, SVG_CELL - 1, svg_kinds[kind].fill, from, to,
		svg_kinds[kind].text);
	if (cell->reason != '-') {
		fprintf(svg, ", ");
		svg_text(svg, job->reasons[cell->reason - 'a']);
	}
	fprintf(svg, "</title></rect>\n");
}

static void svg_legend(FILE *svg, int y)
{
	size_t i;

	for (i = 1; i < sizeof(svg_kinds) / sizeof(svg_kinds[0]); i++) {
		y += SVG_CELL + 4;
		fprintf(svg, "<rect x=\"10\" y=\"%d\" width=\"%d\" "
			"height=\"%d\" fill=\"%s\" stroke=\"#888\"/>\n",
			y - SVG_CELL + 3, SVG_CELL - 1, SVG_CELL - 1,
			svg_kinds[i].fill);
		svg_label(svg, 30, y, svg_kinds[i].text);
	}
}

void mpi_print_svg(const struct mpi_job *job, FILE *svg)
{
	int size = job->launch.size, from, to;
	int bottom = SVG_TOP + size * SVG_CELL;
	char label[2 * MPI_WORD_MAX];

	fprintf(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%d\" font-family=\"sans-serif\" font-size=\"11\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
		SVG_LEFT + (size > 16 ? size : 16) * SVG_CELL + 20,
		bottom + 6 * (SVG_CELL + 4));
	snprintf(label, sizeof(label), "Messages of %d ranks over %s, row to "
		 "column", size, job->ranks[0].provider);
	svg_label(svg, 10, 20, label);
	for (from = 0; from < size; from++) {
		snprintf(label, sizeof(label), "%d  %.20s", from,
			 job->ranks[from].host);
		svg_label(svg, 10, SVG_TOP + from * SVG_CELL + SVG_CELL - 3,
			  label);
		for (to = 0; to < size; to++)
			svg_cell(job, svg, from, to);
	}
	svg_legend(svg, bottom);
	fprintf(svg, "</svg>\n");
}
