/* SPDX-License-Identifier: Apache-2.0 */
/* tunables.h - the collector's numbers that could have been others, with their reasons. */
#ifndef CACHEGRAM_COLLECT_TUNABLES_H
#define CACHEGRAM_COLLECT_TUNABLES_H

/* Processes profiled at the same time; the address space is reserved, the memory only when used. */
#define COLLECT_SLOTS 64u

/* Burst mode: one buffer is one burst. Eight, so that some threads can be in a burst while the
 * collector reduces (a few milliseconds each). */
#define COLLECT_BURST_BUFFERS 8u
#define COLLECT_BURST_TEMPLATE_BYTES (UINT64_C(16) << 20)

/* Full mode: buffers that stay in a shared cache while they are passed on; enough of them that
 * neither side waits for the other at every one. */
#define COLLECT_FULL_BUFFERS 48u
#define COLLECT_FULL_BUFFER_BYTES (UINT64_C(512) << 10)
#define COLLECT_FULL_TEMPLATE_BYTES (UINT64_C(32) << 20)

/* Full mode: touches in a window of StatStack, whose reuse distances are taken to be of one kind. Differences
 * to the exact curve with one window for all, 1 M, 262144, 131072 and 30000, 4 M references of gzip at 64 KB:
 * -1.8,
 * -.9, -.3, -.2, -.05 points; at 1 MB short windows are the worse ones (bzip2: -.2, -.2, -.1, -.1, +.3). */
#define COLLECT_STATSTACK_WINDOW (UINT64_C(1) << 17)

/* References of a burst: many bursts of 30k-100k beat few long ones at equal volume. A good part of what a
 * burst costs depends on them, so that of 30,000 there are twice as many for the same budget: at 5% the mean
 * error of seven programs was .65 points against 1.13 with 100,000 (two runs each on a busy machine). */
#define COLLECT_BURST_REFS 30000u
/* Of a burst, no more touches are looked at than so many for each word recorded, and some: a string
 * instruction is five words, and may touch memory by the gigabyte, which would take the recorder seconds. */
#define COLLECT_BURST_WORD_TOUCHES UINT64_C(8)
#define COLLECT_BURST_MORE_TOUCHES UINT64_C(65536)
/* The gap in CPU time that weights of bursts are told in; and that of full mode, which places no bursts. */
#define COLLECT_GAP_US 20000u

/* Every so manieth burst is looked at for conflicts within cache sets, too: some 20 ns a touch (EPYC), more
 * than all else that is done with it, so that it adds .1 to .15 ms to the average burst of 100,000. */
#define COLLECT_SETS_EVERY 16u
/* Bytes of the profile that counts of sites may take. When there are more, every other burst loses its own,
 * and sites are counted in half as many bursts from then on. A burst has 1 to 4 KB. */
#define COLLECT_SITES_BYTES (UINT64_C(8) << 20)

/*
 * What counting adds to a block, in cycles of the processor; the least share of the time that is left after
 * that; and how many times longer all of it takes, for each turn (a return or an indirect branch) that comes
 * on a block: code with many is slow natively, too, and where it waits for its branches it waits longer here.
 * Fitted to thirteen programs of 45 seconds each (docs/accuracy.md, "The clock"). Shares of code hardly
 * depend on them, as what is alike for all code cancels; but the time until a watched line is touched becomes
 * references by these rates: with 2 and 4 these were told 1.2 times too fast, and large caches to miss too
 * often.
 */
#define COLLECT_COUNT_BLOCK_CYCLES 1.0
#define COLLECT_COUNT_TURN_TIMES 1.0
#define COLLECT_COUNT_LEAST 0.35
/* Of what is left, the least share of user code, whatever pages are taken to have cost. */
#define COLLECT_USER_LEAST 0.15
/* How far a rate may be off for that, as a share: cc1 is told .5 of the true one, gnugo .9, perl 1.1, bzip2
 * and python3 1.8. */
#define COLLECT_COUNT_ERROR 0.45

/* Shortest time to a trigger: shorter ones would find the thread where the last burst left it. */
#define TRIGGER_LEAST_NS UINT64_C(20000)

/*
 * Ticks: so many in a mean gap, unless they would come faster than that; another rate once it is so many
 * times off, or after so many gaps; each drawn from that much about the right one. Four: the moments are met
 * to an eighth of a gap, and three ignored ones cost 10 us or so.
 */
#define TICKS_IN_GAP 4
#define TICK_LEAST_NS UINT64_C(1000000)
#define TICK_MOST_OFF 1.4
#define TICK_GAPS 128
#define TICK_SPREAD .15

/* Budget: how often the gap is set anew, over which stretch of the program's time a debt is paid back, and
 * the bounds of the gap: one burst a millisecond is a tracer, not a sampler; and a minute is as good as
 * never. */
#define BUDGET_EVERY_MS 50
#define BUDGET_HORIZON_NS 1e9
/* In a program's first second, over as much as it has run, but at least this. */
#define BUDGET_LEAST_HORIZON_NS 1e8
/* However much is owed, bursts go on for this part of what is allowed. */
#define BUDGET_LEAST_SHARE .25
/*
 * What no clock tells: after translated code the program's own is slower for a while, until caches and branch
 * predictors are its own again. By the difference of CPU time with and without profiling, less what
 * was measured: .3 to .4 ms for a burst alone (docs/accuracy.md, "What a budget buys").
 *
 * Of the time in counting code only a part is the program's own progress. Estimated from blocks it is 40 to
 * 60%, but much less for interpreters, and such code is cold: by pairs of runs this share was added by four
 * programs in the mean (docs/decisions/cold-caches-in-the-budget.md).
 */
#define BUDGET_AFTER_BURST_NS UINT64_C(350000)
#define BUDGET_COUNTING_PERCENT 80
/*
 * Of what the agent measures of its start in a process, what comes before and after: its library is mapped
 * and relocated, and its memory unmapped at the end. /bin/true, started 200 times by a shell: 350 us
 * measured, 600 us by pairs.
 */
#define BUDGET_START_AROUND_PERCENT 70
/* The first few bursts are taken to cost no more than this. */
#define BUDGET_FIRST_BURSTS 4u
#define BUDGET_FIRST_COST_NS 4e6
#define BUDGET_MOST_RISE 4
/* More than is allowed in so much of the program's time is never owed. */
#define BUDGET_MOST_DEBT_NS 4e9
#define BUDGET_LEAST_GAP_NS UINT64_C(1000000)
#define BUDGET_MOST_GAP_NS UINT64_C(60000000000)
/* Watched lines: after a burst, and at a time. A few are as good as fifty, and a cap of 16
 * live ones costs nothing. */
#define COLLECT_WATCH_PER_BURST 4u
#define COLLECT_WATCH_LIVE 16u
/* CPU time that they may cost until the next burst, before anything is known. */
#define COLLECT_WATCH_ALLOWANCE_NS UINT64_C(2000000)
#define BUDGET_LEAST_ALLOWANCE_NS 300000.0
/* First bursts are dear: so large a part of what may be spent in a second, and no more. */
#define BUDGET_MOST_ALLOWANCE_SHARE .3
/* From a burst to the next, watching may take so many times what the burst itself costs before half of the
 * lines are given up; and half as much before the next half is. */
#define BUDGET_ALLOWANCE 1.5
/* How much of what is spent may go into watching: above, fewer lines are watched; below, more. With .4 and
 * .25 there were a fifth fewer bursts, and errors a little larger at all sizes (seven programs, four runs
 * each). */
#define BUDGET_WATCH_MOST .2
#define BUDGET_WATCH_LEAST .1
/* How often it is looked whether a process has begun to let the kernel write to its memory by itself. */
#define COLLECT_WATCH_LOOK_MS 1000
/* Around the thread pointer lies what the kernel writes to, and thread-local variables. */
#define COLLECT_TLS_BELOW UINT64_C(8192)
#define COLLECT_TLS_ABOVE UINT64_C(8192)

/* What is allowed unless the user says otherwise. */
#define COLLECT_OVERHEAD_PERCENT 5.0

/* Longest sleep. All that matters ends it: agents ring for buffers, triggers and new threads, the command's
 * end and signals interrupt it. Bounds what a lost ring would cost, and how late a process killed without a
 * word gives its slot back. A wake-up costs 40 us here (virtual machine): at 50 ms, an idle recorder was 4 ms
 * a second. */
/* Bursts that stand for less than this share of the CPU time are hardly any. */
#define COLLECT_FEW_SHARE .25
/* A run shorter than so many gaps between bursts may have none by chance. */
#define COLLECT_SHORT_GAPS 5
#define COLLECT_SLEEP_MS 500
/* How often, at most, it is looked whether processes are still there. */
#define COLLECT_LOOK_MS 100
/* After a process has come; the time to the next look doubles then. */
#define COLLECT_FIRST_LOOK_MS 20
/*
 * How often, at most, the profile is made durable: what a kill of the recorder can cost. One that takes long
 * comes as many times later: 3 ms of CPU time, as were measured, are .1% every 3 s, but were an eighth of
 * what the recorder may use at 5%.
 */
#define COLLECT_COMMIT_MS 1000
#define COLLECT_COMMIT_PAUSE 1000
#define COLLECT_COMMIT_MOST_MS 10000
#define COLLECT_FIRST_COMMIT_MS 200
/* CPU time without an agent that is worth a warning: so large a share of the command's, and so much. Less may
 * be what short processes spend before the agent is loaded, or what was not seen of their last moments. */
#define COLLECT_UNPROFILED_SHARE .25
#define COLLECT_UNPROFILED_SECONDS .1
/* After the command's end: how long processes that it left behind may take to hand over the last. */
#define COLLECT_GRACE_MS 50

#endif
