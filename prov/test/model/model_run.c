/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Random test of the whole data path, with one or two endpoints that share AV,
 * CQ, both or neither. Receives of all kinds are posted and canceled. Messages
 * arrive over both paths. Sources restart, addresses change, and calls fail.
 *
 * The model has the receives that each message may match. The test checks the
 * completions, their order, and that nothing is left. The suites of rx/, core/
 * and av/ test only cases that this test lacks: calls of the core, lack of
 * memory, invalid arguments.
 *
 *   unit-model             the seeds of "make check"
 *   unit-model FIRST LAST  the seeds from FIRST to LAST
 *   unit-model SEED        one seed, with a trace on stderr; CK_FORK=no for gdb
 *
 * Before each seed, the test prints "round SEED" on standard error. So the last
 * such line has the seed that failed. If a change of this test draws one more
 * random number, each seed yields other actions than before.
 */

#include <stdio.h>

#include "model.h"

#define MODEL_SEEDS 200

static void model_press_some(void)
{
	int ep = model_random_ep(), busy = model_random_ep();

	model_press(ep, busy, model_random(DUO_KIND_COUNT));
}

static void model_steps(void)
{
	int steps = model.local_first ? 1 + model_random(12) :
					20 + model_random(180);

	while (steps--)
		model_act();
}

/* Executes random actions, reads all completions, checks waiting messages. */
static void model_phase(void)
{
	model_steps();
	model_trace("settle");
	model_end_faults();
	if (model_one_in(2))
		model_press_some();
	model_read_all();
	model_check_waiting();
	model.local_first = false;
	if (model_one_in(2))
		model_remove();
}

static void model_end(void)
{
	model_trace("end");
	model_claim_all();
	model_read_all();
	model_cancel_all();
	model_read_all();
	model_check_ended();
}

static int first, last = MODEL_SEEDS - 1;

UNIT_CASE("model", NULL, model_close);

/* _i is the seed of the random numbers. */
UNIT_ROUNDS(seed, first, last + 1)
{
	int phases;

	model_open(_i);
	phases = 1 + model_random(5);
	while (phases--)
		model_phase();
	/* in one of four runs, model_close() ends the pending operations */
	if (model_one_in(4)) {
		model_steps();
		return;
	}
	model_end();
	model_drain();
	model_cancel_all();
	model_read_all();
	model_check_all();
}

int main(int argc, char **argv)
{
	if (argc > 1)
		first = last = atoi(argv[1]);
	if (argc > 2)
		last = atoi(argv[2]);
	else if (argc == 2)
		model_trace_on();
	return unit_run();
}
