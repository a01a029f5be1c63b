/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that the agent relies on, each with its reason. */
#ifndef CACHEGRAM_AGENT_TUNABLES_H
#define CACHEGRAM_AGENT_TUNABLES_H

/* Size of the code cache. cc1 needs 6 MB, cc1plus -O2 fills it nine times in 3.5 s. Memory is only used as it
 * fills. */
#define CODE_CACHE_BYTES (32u << 20)
/* A program with at least so much code of its own gets the code cache below it, at that distance. */
#define PROGRAM_CODE_LEAST (512u << 10)
#define CACHE_BELOW_PROGRAM (16u << 20)
/* One translation out of so many is timed: reading the clock costs a tenth of a translation. */
#define TIME_EVERY 16
/* Private data of the translator, some 150 bytes a block. */
#define ARENA_BYTES (48u << 20)
/* Instructions in a block. Longer blocks find no pair of free registers. */
#define BLOCK_INSNS 40
#define BLOCK_SOURCE_MAX (BLOCK_INSNS * 15) /* their bytes */
/* References and words of a block. They limit how far a record can extend beyond the end of a buffer, which
 * must stay within the guard page of 512 words. */
#define BLOCK_REFS 96
#define BLOCK_WORDS 120
/* Bits of the index of a thread's table of indirect jump targets, whose entries have 16 bytes. Indexed by
 * 16 bits of the plain address, lookups failed millions of times in python3; by 16 bits of its CRC they do
 * not. */
#define TARGET_BITS 16
/* Signal stack of a thread: a frame with AVX-512 state takes 3.5 KB, the translator's C code less than 8 KB
 * more. */
#define SIGNAL_STACK_BYTES (64u << 10)
/* Stack of C code called from the code cache. */
#define DISPATCH_STACK_BYTES (32u << 10)
/* Threads followed in one process; others are not profiled. */
#define MAX_THREADS 4096
/* A process that finds a quarter of the slots taken wakes the collector, which frees those of ended
 * processes. One that finds none free looks again every SLOT_NAP_NS, for at most SLOT_WAIT_NS (longer in full
 * mode, where the collector is slower). After one has waited in vain, because the processes in all slots
 * still run, nobody waits for SLOT_WAIT_PAUSE_NS. */
#define SLOTS_RING_FROM 4u
#define SLOT_WAIT_NS 50000000u
#define SLOT_WAIT_FULL_NS 2000000000u
#define SLOT_NAP_NS 1000000
#define SLOT_WAIT_PAUSE_NS 1000000000u
/* Blocks that a program allocates first, which are all reported: some 0.3 us each, 1 us of the recorder, and
 * page faults. With 512, in forked children, too, ten short processes of bash took 25 ms longer. */
#define HEAP_FIRST_BLOCKS 64u
/* Full mode: CPU time after which a thread that runs natively is taken back into translated code. */
#define REENTER_NS 1000000
/* Instructions in a row that are single-stepped in code that cannot be translated, some 3 us each, before
 * the thread runs natively. */
#define CONSECUTIVE_STEPS_MOST 1000u
/* The same in code of 32 bits, which programs that have any execute for long: each signal of a frequent timer
 * would begin the steps again. */
#define OTHER_MODE_STEPS_MOST 16u
/* A burst with single-stepped instructions ends after so much CPU time, which is checked once in so many
 * steps; in full mode its buffer is handed over then, so that the recorder knows of the time: 40 matrix
 * products by AMX, whose loads of tiles are stepped in 33 us each, took 23 s. */
#define BURST_STEPS_NS 50000000u
#define BURST_STEPS_LOOK 64u
/* Full mode: of the threads that wait for a buffer, one checks again after this time, at the latest, and the
 * others after BUFFER_OTHERS_LOOK_NS: with 5 ms, 300 of them took both processors, and the collector came to
 * nothing. One that could run natively instead waits no longer than BUFFER_WAIT_NS. */
#define BUFFER_LOOK_NS 5000000
#define BUFFER_OTHERS_LOOK_NS 200000000
#define BUFFER_WAIT_NS 10000000000u
/* Full mode, with the code cache full: how often a thread checks whether all others have left it, 20 ms in
 * total. */
#define ROOM_LOOKS 100u
#define ROOM_LOOK_NS 200000
/* Full mode: while another thread executes a program, or tries to, a thread waits for the end of that, so
 * often and so long: a second in total for each time, as it may itself have to do something first. A program
 * of 10 ms ran natively to its end otherwise. */
#define FORBIDDEN_LOOKS 5000u
#define FORBIDDEN_LOOK_NS 200000
#define NEVER_NS 3600000000000ull /* an hour */
/* Cost of a context switch of a thread with a perf event: 0.5 us on a virtual machine (EPYC; a program of
 * two threads that wait for each other, with and without). The event is given up if that exceeds a
 * hundredth of the thread's CPU time. */
#define EVENT_SWITCH_NS 500u
#define EVENT_MOST_SHARE 100u
/* CPU time of a thread before this is decided. */
#define EVENT_TRIED_NS 10000000u
/* A planned burst is postponed if the mean gap has grown by more than this factor since it was planned. At 5%
 * without an allowance, python3 with 0.14 s of CPU time then had an overhead of 8.0% instead of 12.7%, bzip2
 * with 0.4 s one of 2.8% instead of 3.9% (means of eight recordings; a busy machine). */
#define GAP_GROWN_TIMES 2
/*
 * Phases by which bursts are planned (threads/phases.c). A window is PHASE_SAMPLES ticks, 16 ms; with half of
 * that, errors were not smaller (docs/decisions/strata-of-phases.md). Distances are in units of 1/1024, at
 * most 2048; from PHASE_FAR on, as in the collector, a window is a new phase.
 */
#define PHASE_PLACES 64u
#define PHASE_SAMPLES 8u
#define PHASE_MOST 16u
#define PHASE_FAR 512
/* From this share of its samples on (1/1024), a place is usual in a phase. */
#define PHASE_USUAL 8u
/* Samples of a phase, after which all its counts are halved: below 2^16, and so that later ones count, too.
 */
#define PHASE_HALVE 2048u
/* How much later than the collector's trigger the fallback timer fires, while there is no event yet. */
#define BACKSTOP_NS 20000000
/* How often a thread that wants to execute another program checks whether the collector has opened its
 * event, which takes some 20 us; and for how long at most. */
#define HOLD_LOOK_NS 20000
#define HOLD_MOST_NS 200000000
/* How long to wait for the collector to close its events before the target forbids system calls: longer
 * than a slow disk delays it, but a stopped recorder must not stop the target. */
#define RETIRE_MS 2000
/* CPU time after which a preempted thread has certainly reached user mode. */
#define RAN_SINCE_NS 100000u
/* How long to wait for other threads to leave their bursts before it matters whether any of them computes,
 * and for how long none may: a thread in a system call may wait forever. */
#define RETIRE_BURSTS_MS 100
#define RETIRE_IDLE_MS 50
/* How long a thread waits at a burst's end for the collector to choose lines: decoding takes 1-2 ms. */
#define ANSWER_WAIT_NS 20000000
/* How long it waits for an answer that the collector has begun: longer than a slow disk delays it, but a
 * stopped recorder must not stop the target. */
#define ANSWER_GIVE_UP_NS 2000000000u
/* Threads that call_through has slots for; with more, the process is not watched. */
#define CALL_SLOTS 1024
/* With more threads the process is not watched: each page to be protected is compared with the calls of all
 * of them. */
#define WATCH_MOST_THREADS 512u
/* How long, in their CPU time, a page may be accessible to other threads before its lines are censored. A
 * watched reuse is mistimed by at most this, a hundredth or less of what reuses usually take. */
#define UNSEEN_MOST_NS 1000000u
/* If an access that was tried again faults at the same address within so much CPU time of the thread, the
 * fault is the program's. */
#define RETRY_NS 1000000u
/* Changes of mappings remembered while the collector answers; with more, all lines are censored. */
#define CHANGES_KNOWN 64u
/* Bursts that are not watched during a pause of the call tracker, at most. */
#define PAUSE_MOST_BURSTS 64u
/* During such a pause a thread's calls are not diverted any more after so many calls, if diverting them has
 * cost this part of the process's CPU time. That is not done for other threads: one that sleeps in an
 * undiverted call is not known to be quiescent, and nothing is protected until it has woken up and run for
 * a while (zstd's main thread waits for its workers nearly all the time). Two threads that read 64 bytes of
 * /dev/zero 1.5 million times each took 1.0 s of CPU time, and 5.2 s if calls went on being diverted. */
#define PAUSE_CALLS 1000u
#define PAUSE_SHARE 50u /* 1 / 0.02 */
/* Places of signal frames, whose pages are never protected (watch/pages.c); and the size of a frame, at
 * most: some 11 KB with AMX state. */
#define FRAMES_KNOWN 16u
#define FRAME_MOST_BYTES 16384u
/* How much of the target's stack functions of the agent use, at most, while they hold the lock natively. */
#define NATIVE_STACK_BYTES 8192u
/* Words of a probe burst: at first, and at most, if faults of a page follow each other within this CPU
 * time. To record and search 512 words takes some 2 us, the two faults 10. With PROBE_LEAST_WORDS always,
 * a watched line of bzip2, gzip, python3 and perl had 42 to 52 faults instead of 21 to 34, and watching took
 * 1.2 to 1.6 times as long (medians of five recordings; sort, with few lines, showed no difference). */
#define PROBE_LEAST_WORDS 256u
#define PROBE_WORDS 4096u
#define PROBE_SOON_NS 4000
/*
 * The time between a burst's end and the moment at which the program is back at full speed belongs neither
 * to the program nor to the measured burst; likewise for a probe burst, with the entry of its fault. In
 * percent of the time of a fault, entry and return. They were fitted to lines that are touched again at
 * once: in thirteen programs, the 5% of lines with the shortest time after a burst were reported 4.5 us too
 * late (median of programs; 3.0 to 5.0) if one fault was subtracted, which is 4.5 us there, and 2.0 us
 * later (0.6 to 3.5) with a probe burst in between.
 */
#define BURST_RETURN_PERCENT 200u
#define PROBE_RETURN_PERCENT 145u
/* What it costs beyond that is measured in the program: the shortest of so many times from a probe burst to
 * the next fault, but at most so many percent of a fault. (5 us in each of four programs, of which a fault
 * was 3.5 us in the recorder. In a table of 4 MB that is accessed at random, with 40 us from one fault to the
 * next, it made distances of 8 MB and more.) */
#define PROBE_RETURNS 16u
#define PROBE_RETURN_MOST_PERCENT 200u
/* A signal that arrives so soon after the handling of a fault was pending during it. */
#define FAULT_RETURN_NS 3000u
/* Limits of what a burst is taken to cost: in total, for each word, and for each block that was translated
 * in it. */
#define BURST_MOST_NS 500000u
#define BURST_WORD_MOST_NS 20u
#define BURST_BLOCK_MOST_NS 20000u
/*
 * Counting before a burst: CPU time of the warming part, in which code is translated, linked and brought
 * into the caches, and of the timed part.
 *
 * After 0.1 ms of warming, code with many distinct places is still counted far more slowly than it runs
 * natively (gnugo at 0.44 of its native rate, cc1 at 0.22), after 1 ms less so (0.62, 0.37). More costs
 * bursts, and delays signals.
 */
#define COUNT_WARM_NS 1500000u
#define COUNT_TIMED_NS 100000u
/* While every reference is counted, one burst of so many, at random, has a long tail. With 8 as many sizes as
 * without had no answer, since less than five bursts decide nothing (docs/decisions/tails-of-bursts.md). */
#define COUNT_LONG_TAIL_EVERY 4u
/* After the timed part the burst begins within so many references, at random, and is weighted by the time
 * of the COUNT_NEAR_REFS before it. The time is noted every COUNT_MARK_REFS. Slow code, or code that never
 * reaches a mark, is cut short after COUNT_NEAR_NS. */
#define COUNT_NEAR_REFS 32768u
#define COUNT_MARK_REFS 2048u
#define COUNT_MARKS 20u
#define COUNT_NEAR_NS 800000u
/* A return or indirect branch is counted in the upper half of the word that counts blocks. */
#define COUNT_TURN (1ull << 32)
/* A distance to the next mark that is never reached. */
#define COUNT_NO_AIM (1ull << 50)
#define COUNT_MOST_NS 8000000u
/* The agent's own work that takes longer may have been interrupted by other threads: the thread's CPU time,
 * whose reading is a system call, is compared. Translating a block takes 2 to 5 us. */
#define COUNT_LONG_WORK_NS 20000u
/*
 * Translating a block makes the counting code slower by so much in addition: it and its data are in no cache.
 * With cc1plus, 1000 blocks are translated in a stretch, and each took 0.75 us more than counting code does
 * otherwise (three runs on a busy machine). Its rates were 0.02 to 0.5 references per ns where 1.9 are true.
 * The collector knows the least time that blocks take natively (COLLECT_COUNT_NATIVE_CYCLES), if this is too
 * much.
 */
#define COUNT_WORK_NS 700u
/* While every reference is counted: time until a thread is stopped to look for signals, at most, which delays
 * its signals by so much. Each stop costs some 8 us. */
#define COUNT_LAP_NS 2000000u
/* Shortest time that the timer is set to: on a busy machine a shorter one elapses before the thread runs
 * again. */
#define COUNT_LEAST_NS 15000u
/* Blocks translated at once if it is not known whether all will be executed; and if it is known. */
#define COUNT_RUN 4u
#define COUNT_RUN_MOST 16u
/* Low bits of an address that index the tables of branch targets, 2 MB each. With 16 bits, addresses
 * collide a million times in sqlite3 or python3. */
#define COUNT_TABLE_BITS 18
/* The same while a process is small, 64 KB each; and collisions after which it is not small any more. Filling
 * the large ones takes 1.6 ms of CPU time, the small ones 0.05 ms (medians of 101; a virtual machine). */
#define COUNT_TABLE_FIRST_BITS 13
#define COUNT_TABLE_COLLISIONS 200u
/* A timed part that was cut short still yields a rate if it lasted 1 / COUNT_LEAST_SHARE of what was
 * planned. */
#define COUNT_LEAST_SHARE 3u
/* Thread CPU time until a burst that is overdue; after a stretch that was cut short, once to twice this. */
#define AGAIN_NS 100000u
/* While every reference is counted: references of a thread before its own rate is used to plan bursts, and
 * the rate used until then, in references per microsecond. */
#define COUNT_RATE_REFS 1000000u
#define COUNT_FIRST_RATE 1000u
/* Shortest time between two searches for handlers that were installed by direct system calls. A search takes
 * 34 us (a virtual machine), so 0.07% of the time. */
#define DIRECT_HANDLERS_NS 50000000u
/* A lock of the agent's that is not free: how often its holder is given the processor, and how long it is
 * waited for each time after that. */
#define LOCK_YIELDS 16u
#define LOCK_SLEEP_NS 50000
/* Regions of code that are remembered. */
#define MAX_REGIONS 512
/* Separate ranges of code that are known to change. Programs that patch themselves have a few. */
#define MAX_UNSTABLE 256

#endif
