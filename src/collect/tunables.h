/* SPDX-License-Identifier: Apache-2.0 */
/* tunables.h - adjustable constants of the collector, with their reasons. */
#ifndef CACHEGRAM_COLLECT_TUNABLES_H
#define CACHEGRAM_COLLECT_TUNABLES_H

/* Processes profiled at the same time; one that has ended counts until its last records are taken. The
 * address space is reserved; memory is used only when needed. */
#define COLLECT_SLOTS WIRE_MAX_SLOTS

/* Burst mode: one buffer holds one burst. Eight, so that several threads can be in a burst while the
 * collector reduces others (a few milliseconds each). */
#define COLLECT_BURST_BUFFERS 8u
#define COLLECT_BURST_TEMPLATE_BYTES (UINT64_C(16) << 20)

/* Full mode: buffers small enough to stay in a shared cache while they are passed on; enough of them that
 * neither side waits for the other at every buffer. */
#define COLLECT_FULL_BUFFERS 48u
#define COLLECT_FULL_BUFFER_BYTES (UINT64_C(512) << 10)
#define COLLECT_FULL_TEMPLATE_BYTES (UINT64_C(64) << 20)

/*
 * Buffers of a run that begins in full mode; both parts use the size of a burst's. Few: what they hold when
 * full mode ends must still be reduced, a few milliseconds each, and counts against the allowance.
 */
#define COLLECT_FULL_FIRST_BUFFERS 16u
/* Buffers of a slot that are taken before the allowance is checked again. */
#define COLLECT_FULL_FIRST_TAKEN 4u

/* Full mode: touches in a window of StatStack, within which one distribution of reuse distances is assumed.
 * Differences to the exact curve of gzip (4 M references) at 64 KB, with a single window and with windows of
 * 1 M, 262144, 131072 and 30000 touches: -1.8, -0.9, -0.3, -0.2, -0.05 points. At 1 MB short windows are
 * worse (bzip2: -0.2, -0.2, -0.1, -0.1, +0.3). */
#define COLLECT_STATSTACK_WINDOW (UINT64_C(1) << 17)

/*
 * Windows (reduce/windows.h): their initial lengths, as CPU time or, in full mode, as references; and how
 * many of each kind there are at most. 32 ms contain 16 samples of code, with fewer of which phases cannot be
 * distinguished from noise. A thousand windows of full mode take 2 MB in the recorder and 0.3 MB in the
 * profile. Further threads than COLLECT_WINDOW_THREADS have no windows.
 */
#define COLLECT_WINDOW_NS UINT64_C(32000000)
#define COLLECT_WINDOW_REFS (UINT64_C(1) << 18)
#define COLLECT_WINDOWS 1024u
#define COLLECT_WINDOW_THREADS 4096u
/*
 * While the program runs, windows are only stored if the number of windows (sampled ones count eight times)
 * times that of phases found last is at most this. Finding phases took up to 1.4 us for each sampled window
 * and phase, and 0.1 us in full mode: 10 ms at this limit, against 0.8 s for 4000 windows of 256 phases.
 */
#define COLLECT_CLUSTER_MOST 60000u

/* References of a burst. At equal volume, many bursts of 30k to 100k references give smaller errors than few
 * long ones. A large part of a burst's cost grows with its length, so that the same budget pays for twice as
 * many bursts of 30,000: at 5% the mean error of seven programs was 0.65 points, against 1.13 with 100,000
 * (two runs each on a busy machine). */
#define COLLECT_BURST_REFS 30000u
/*
 * A burst is recorded for so many times its length more. In this tail some of its survivors are followed: so
 * many for each of the first bursts, half of that up to four times as many bursts, and then a quarter. While
 * every reference is counted some tails are longer (docs/decisions/tails-of-bursts.md).
 */
#define COLLECT_TAIL_TIMES 6u
#define COLLECT_LONG_TAIL_TIMES 36u
#define COLLECT_TAIL_LINES 16u
#define COLLECT_TAIL_BURSTS UINT64_C(500)
/* Most touches of a burst that are analysed: so many for each recorded word, plus a constant. A string
 * instruction is recorded in five words and may touch gigabytes, which would take the recorder seconds. */
#define COLLECT_BURST_WORD_TOUCHES UINT64_C(8)
#define COLLECT_BURST_MORE_TOUCHES UINT64_C(65536)
/* The gap (CPU time) to which stored weights are relative; also the gap of full mode, which has no bursts. */
#define COLLECT_GAP_US 20000u

/* One burst in so many is also analysed for conflicts within cache sets. That takes some 20 ns per touch
 * (EPYC), more than the rest of the analysis: 0.1 to 0.15 ms for the average burst of 100,000 references. */
#define COLLECT_SETS_EVERY 16u
/* Most bytes of the profile for counts of sites. Beyond that, those of every other burst are deleted, and
 * from then on half as many bursts store them. A burst has 2 to 7 KB. */
#define COLLECT_SITES_BYTES (UINT64_C(8) << 20)
/* Most times at which the sizes of JIT compilers' maps are noted, at 24 bytes each. Beyond that, every other
 * one is dropped, and functions of those maps count as a little older. */
#define COLLECT_JIT_GROWTHS 65536u
/* Full mode: counts of a process with code that may change are divided into slices, since what was counted
 * has no other time. A slice has a buffer or more, and at least this part of the process' time so far. The
 * part doubles with each COLLECT_SLICES_BYTES of counts in slices of the run, up to the whole time. */
#define COLLECT_SLICE_PART 512u
#define COLLECT_SLICES_BYTES (UINT64_C(512) << 10)
/* Most data objects that a profile distinguishes, at about 60 bytes each. All others are one. */
#define COLLECT_OBJECTS 16384u
/* One touch in so many is attributed to its data object, at random distances. The attribution costs 10 to 50
 * ns, this share of it 0.2 to 0.8 ns for each touch. */
#define COLLECT_OBJECT_EVERY 64u
/* Full mode: of the reuses at a stack distance below so many lines (32 KB), one in COLLECT_NEAR_EVERY is
 * attributed to its instruction and object. All of them would take a third of the recorder's time: in python3
 * they are a quarter of all references. */
#define COLLECT_NEAR_LINES 512u
#define COLLECT_NEAR_EVERY 8u
/* One reuse in so many, of those at a distance of 16 lines or more, is sampled with a line that was touched
 * in between; and the most that a profile stores of these, at about 25 bytes each. */
#define COLLECT_CAUSE_EVERY 64u
#define COLLECT_CAUSES 32768u
/* After so many samples of causes, or of touches by call path, half as many are taken, and so on: each takes
 * some 100 ns, as the tables are large. */
#define COLLECT_SAMPLES_THINNED (1u << 18)
/*
 * Call paths (reduce/call-paths.h). One touch in COLLECT_PATH_EVERY of those at a distance of 16 lines or
 * more is counted by path: 2 to 5% of a recording's CPU time (bzip2, perl, python3). In full mode, where that
 * took 8 to 24%, one in COLLECT_PATH_EVERY_FULL. At most so many paths, of a recording (ruby: 50000 when it
 * has started, 110000 after 0.9 G references), and counts, at about 20 bytes of the profile each; and stacks
 * of a process that are known.
 */
#define COLLECT_PATH_EVERY 4u
#define COLLECT_PATH_EVERY_FULL 64u
#define COLLECT_PATH_NODES 262144u
#define COLLECT_PATH_COUNTS 65536u
#define COLLECT_PATH_STACKS 256u
/* Pieces of the run are decoded to complete references, which takes some 50 ns for each (bzip2): at most
 * COLLECT_SHAPE_WORDS recorded words of a buffer, but at least COLLECT_SHAPE_LEAST references, if so many
 * lines came into the small cache that COLLECT_SHAPE_STAYS of them are enough. In the mean one reference in
 * COLLECT_SHAPE_EVERY is looked at, of bursts, which are few, one in COLLECT_SHAPE_BURSTS_EVERY: 0.8 and 3 ns
 * for each of them. Of short runs more, or no piece would show loops of a hundredth of them: one in
 * COLLECT_SHAPE_FIRST_EVERY of eight times COLLECT_SHAPE_GROWS, and from there on one in so many as there
 * were of that until then (3 to 4% more CPU time of recordings of 12 to 50 M references). At the beginning
 * all of COLLECT_SHAPE_ALL, and then so many that in the mean a piece represents no more than one in
 * COLLECT_SHAPE_PARTS of what was executed until then. What counts for this is misses of the small cache, of
 * which the use of lines is to be known, and a reference for COLLECT_SHAPE_HIT_SIZE of one. */
#define COLLECT_SHAPE_WORDS UINT64_C(32768)
#define COLLECT_SHAPE_LEAST 4096u
#define COLLECT_SHAPE_STAYS (4 * SYMBOLS_USE_LINES)
#define COLLECT_SHAPE_EVERY 64
#define COLLECT_SHAPE_FIRST_EVERY 8
#define COLLECT_SHAPE_GROWS (1u << 20)
#define COLLECT_SHAPE_BURSTS_EVERY 16
#define COLLECT_SHAPE_ALL 65536
#define COLLECT_SHAPE_PARTS 6
#define COLLECT_SHAPE_HIT_SIZE (1.0 / 64)
/* A line of which so many touches have used no further bytes is taken to be used no further, and one that
 * comes so late in a piece not to have been in the small cache before: a walk down a column of as many rows
 * as that has lines may make 16 references for each. */
#define COLLECT_SHAPE_IDLE 8192u
#define COLLECT_SHAPE_WARM 4096u
/*
 * Sharing between threads (reduce/sharing.h). Pieces of COLLECT_SHARING_WORDS recorded words: one of each
 * burst, in full mode one of COLLECT_SHARING_EVERY_WORDS in the mean, of processes with several threads. Uses
 * that are a period of COLLECT_SHARING_NS to two apart count as simultaneous: a thread has a few bursts in
 * that time. After so many turns of false sharing it is probably no coincidence.
 */
#define COLLECT_SHARING_WORDS UINT64_C(1024)
#define COLLECT_SHARING_EVERY_WORDS UINT64_C(131072)
#define COLLECT_SHARING_NS UINT64_C(250000000)
#define COLLECT_SHARING_TURNS 4u
/* Reported blocks of a process that are known at a time, at most. */
#define COLLECT_BLOCKS (1u << 20)
/* Reports of allocations per second for which the sampling interval is set: each costs the program 0.2 to 0.5
 * us and the recorder 1 us. The interval grows at once if there are more, and shrinks after COLLECT_HEAP_NS.
 */
#define COLLECT_HEAP_REPORTS 5000.
#define COLLECT_HEAP_NS UINT64_C(500000000)
/* Kernels before Linux 6.11: the list of mappings is read again after so much time, as that takes 0.1 to 0.2
 * ms. */
#define COLLECT_MAPS_NS UINT64_C(50000000)
/* Up to so far below its main stack, where nothing was mapped, an address of a process that has ended belongs
 * to that stack: eight times the usual limit. */
#define COLLECT_STACK_GROWS (UINT64_C(64) << 20)
/* Likewise below the descriptor of another thread: the usual size of its stack. */
#define COLLECT_THREAD_STACK (UINT64_C(8) << 20)

/*
 * What counting costs. BLOCK_CYCLES: processor cycles added to each block. TURN_TIMES: for each turn (a
 * return or an indirect branch) per block, everything takes so many times longer; code with many turns waits
 * for mispredicted branches in native execution, too, and longer in counting code. NATIVE_CYCLES: a block
 * takes at least so many cycles natively; without this bound, the cost subtracted from a tight loop is almost
 * all of its time. Fitted to twenty programs of 0.03 to 1.1 s that are counted throughout, the eighteen of
 * scripts/bench-count.py or others with the same interpreters. Of these eighteen, native time is estimated at
 * 0.76 to 1.61 times the true one (mean 1.02, standard deviation of the logarithm 0.19), and code is counted
 * in 1.2 to 3.7 times that. With 4 and 1.25, which were fitted on another processor to nineteen programs
 * (0.30), the mean was 0.90: then bursts placed by CPU time represent too many references, compared with
 * those of the parts that were counted or recorded completely.
 */
#define COLLECT_COUNT_BLOCK_CYCLES 2.0
#define COLLECT_COUNT_TURN_TIMES 3.0
#define COLLECT_COUNT_NATIVE_CYCLES 1.5
/* Least share of the remaining time that counts as user code, however high the estimated cost of pages. */
#define COLLECT_USER_LEAST 0.15
/* Relative error of a rate estimated this way: 0.2 to 0.3 for the programs above, which are counted
 * throughout. More is assumed for single stretches, whose code has just been translated. */
#define COLLECT_COUNT_ERROR 0.45

/* Shortest time to a trigger: shorter ones would find the thread where the last burst left it. */
#define TRIGGER_LEAST_NS UINT64_C(20000)

/*
 * Ticks of a trigger's event: at least TICKS_IN_GAP per mean gap, and every TICK_MOST_NS, as each tick is a
 * sample of code; at least TICK_LEAST_NS apart. The period is set again when it is wrong by a factor of
 * TICK_MOST_OFF, or after TICK_GAPS gaps; each time it is drawn within ±TICK_SPREAD of the right one. With
 * four ticks, a burst begins within an eighth of a gap of the intended moment. An ignored tick costs 3 to 4
 * us.
 */
#define TICKS_IN_GAP 4
#define TICK_LEAST_NS UINT64_C(1000000)
#define TICK_MOST_NS 2e6
#define TICK_MOST_OFF 1.4
#define TICK_GAPS 128
#define TICK_SPREAD 0.15

/* Budget: how often the gap is calculated again, and over how much of the program's CPU time an excess of
 * cost is compensated. */
#define BUDGET_EVERY_MS 50
#define BUDGET_HORIZON_NS 1e9
/* In a program's first second: over as much as it has run, but at least this. */
#define BUDGET_LEAST_HORIZON_NS 1e8
/* Whatever the excess, bursts may still use this share of the allowed overhead, and of the rate at which the
 * allowance is spent: otherwise a short run whose first bursts were expensive had none after them. */
#define BUDGET_LEAST_SHARE 0.25
#define BUDGET_LEAST_OF_ALLOWANCE 0.5
/*
 * Cost that no clock shows: after a burst the program runs slower until caches and branch predictors are warm
 * again. Measured as the difference of CPU time with and without profiling, minus the measured cost: 0.3 to
 * 0.4 ms for a burst alone (docs/decisions/cold-caches-in-the-budget.md).
 *
 * Only a part of the time in counting code is the program's own progress. An estimate from the number of
 * blocks is 40 to 60%, but much less for interpreters, whose translated code is cold. By pairs of runs, this
 * percentage was overhead, in the mean of four programs (docs/decisions/cold-caches-in-the-budget.md).
 */
#define BUDGET_AFTER_BURST_NS UINT64_C(350000)
#define BUDGET_COUNTING_PERCENT 80
/*
 * Cost of the agent's start outside of what the agent can measure, as a percentage of the measured part: the
 * library is mapped and relocated before, its memory is unmapped at the end. /bin/true, started 200 times by
 * a shell: 350 us measured by the agent, 600 us by pairs of runs.
 */
#define BUDGET_START_AROUND_PERCENT 70
/* Upper bound of the assumed cost of each of the first few bursts. */
#define BUDGET_FIRST_BURSTS 4u
#define BUDGET_FIRST_COST_NS 4e6
/* Later, one measurement raises the assumed cost of a burst at most by this factor. */
#define BUDGET_MOST_RISE 4
/* The excess never counts for more than the overhead allowed in so much of the program's time. */
#define BUDGET_MOST_DEBT_NS 4e9
/*
 * Nobody knows how long the program will run, so the rest of an allowance is spent at a rate that falls with
 * the CPU time so far: evenly over the logarithm of the time plus FIRST_NS, up to LAST_NS. A third is spent
 * in 0.04 s, half in 0.14 s, three quarters in 0.75 s.
 */
#define BUDGET_ALLOWANCE_FIRST_NS 5e6
#define BUDGET_ALLOWANCE_LAST_NS 4e9
/* Bounds of the gap: one burst per millisecond would be tracing rather than sampling; one per minute hardly
 * differs from none. */
#define BUDGET_LEAST_GAP_NS UINT64_C(1000000)
#define BUDGET_MOST_GAP_NS UINT64_C(60000000000)
/*
 * A run of days, or of many processors, does not need ever more bursts: after this many, at one density, the
 * gap grows with the CPU time so far, whatever the budget allows. At 5%, gaps are then some 50 ms and begin
 * to grow after 100 s; a week of one processor has 20,000 bursts instead of ten million. Each adds 4 to 8 KB
 * to the profile, and 64 KB to the memory of those who read it.
 */
#define BUDGET_DENSE_BURSTS 2000
/* Watched lines: chosen after a burst, and watched at the same time. Four give as precise a curve as fifty;
 * the limit of 16 loses no precision. */
#define COLLECT_WATCH_PER_BURST 4u
#define COLLECT_WATCH_LIVE 16u
/* CPU time that watching may take until the next burst, before any cost was measured. */
#define COLLECT_WATCH_ALLOWANCE_NS UINT64_C(2000000)
#define BUDGET_LEAST_ALLOWANCE_NS 300000.0
/* Upper bound of that allowance, as a share of the overhead allowed in a second: the first bursts are
 * expensive. */
#define BUDGET_MOST_ALLOWANCE_SHARE 0.3
/* The allowance relative to the cost of a burst. When it is used up, half of the lines are censored; after
 * half as much again, half of the remaining ones. */
#define BUDGET_ALLOWANCE 0.5
/* Bounds of watching's share of the total cost: above the upper one fewer lines are watched, below the lower
 * one more. With 0.4 and 0.25 there were a fifth fewer bursts, and errors slightly larger at all sizes (seven
 * programs, four runs each). */
#define BUDGET_WATCH_MOST 0.2
#define BUDGET_WATCH_LEAST 0.1
/* How often a process is examined for means by which the kernel writes to its memory asynchronously. */
#define COLLECT_WATCH_LOOK_MS 1000

/* Defaults of --overhead and --allowance. */
#define COLLECT_OVERHEAD_PERCENT 5.0
#define COLLECT_ALLOWANCE_NS UINT64_C(1000000000)
/* Share of the allowance that full mode uses; the rest makes bursts denser. */
#define COLLECT_FULL_PART 0.25
/* CPU time in which every reference is counted afterwards, relative to the allowance; about half of it is
 * added, and counts as spent when bursts are planned. */
#define COLLECT_COUNT_PART 0.4
/* Bursts cost a third while counting code runs anyway: as if so much of what is left for bursts were to last
 * for the whole run. Without this (1), three of four bursts were in the first tenth of a run of 1.5 s (perl),
 * and the standard deviation of its miss ratio at 48K was twice as large. */
#define COLLECT_COUNTED_BURSTS 0.6
/* Share that is left for what follows the run: functions, lines and objects are named in 0.1 to 0.35 s. */
#define COLLECT_NAMING_PART 0.1
/* How often it is looked at while that lasts. */
#define COLLECT_COUNT_LOOK_MS 20

/* There are too few bursts if they represent less than this share of the CPU time. */
#define COLLECT_FEW_SHARE 0.25
/* A run shorter than so many gaps between bursts may have none by chance. */
#define COLLECT_SHORT_GAPS 5
/* Likewise the rest of a run after full mode that takes less CPU time than this, starts of processes
 * included. */
#define COLLECT_REST_SECONDS 0.5
/* How much lower the recorder's nice value is than the command's. 200 threads of 10 ms each, 40 at a time, on
 * 2 processors with a load of 20: bursts represented 1.0 to 1.4 s of the 1.5 s of CPU time, with equal values
 * 0.3 to 0.8 s (five runs each). A shorter time slice alone (sched_setattr) made no difference. */
#define COLLECT_NICER 10
/* Longest sleep. All relevant events end it: agents ring for buffers, triggers and new threads; the command's
 * end and signals interrupt it. The bound limits the effect of a lost ring, and how late the slot of a killed
 * process is released. A wake-up costs 40 us here (virtual machine); with 50 ms, an idle recorder
 * used 4 ms per second. */
#define COLLECT_SLEEP_MS 500
/* Shortest interval between checks whether processes still exist. */
#define COLLECT_LOOK_MS 100
/* The first interval after a process has attached; it doubles after each check. */
#define COLLECT_FIRST_LOOK_MS 20
/*
 * Shortest interval between commits of the profile, which bounds what is lost if the recorder is killed. A
 * commit that took long delays the next one by COLLECT_COMMIT_PAUSE times its duration: commits of 3 ms of
 * CPU time were measured, which is 0.1% every 3 s, but was an eighth of the recorder's share at 5%.
 */
#define COLLECT_COMMIT_MS 1000
#define COLLECT_COMMIT_PAUSE 1000
#define COLLECT_COMMIT_MOST_MS 10000
#define COLLECT_FIRST_COMMIT_MS 200
/* CPU time without an agent that causes a warning, as a share of the command's time and in seconds. Less may
 * be the time of short processes before the agent is loaded, or their last moments, which are not observed.
 */
#define COLLECT_UNPROFILED_SHARE 0.25
#define COLLECT_UNPROFILED_SECONDS 0.1
/* After the command's end: time for processes that still run to hand over their last buffers. */
#define COLLECT_GRACE_MS 50

#endif
