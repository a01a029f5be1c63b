/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the agent that were chosen, each with its reason. */
#ifndef CACHEGRAM_AGENT_TUNABLES_H
#define CACHEGRAM_AGENT_TUNABLES_H

/* Translated code. cc1, the largest seen, needs 6 MB; the memory is only touched as it fills. */
#define CODE_CACHE_BYTES (32u << 20)
/* A program with so much code of its own has the code cache so far below it. */
#define PROGRAM_CODE_LEAST (512u << 10)
#define CACHE_BELOW_PROGRAM (16u << 20)
/* Blocks for one whose translation is timed: the clock costs a tenth of a translation. */
#define TIME_EVERY 16
/* Private data of the translator, some 150 bytes a block. */
#define ARENA_BYTES (48u << 20)
/* Addresses that all of it takes with a few threads; and how many times that a limited process must have
 * left: it is not to meet its limit because of us. */
#define AGENT_ADDRESS_BYTES (192ull << 20)
#define ROOM_TIMES 4u
/* Instructions in a block. Longer ones find no pair of free registers. */
#define BLOCK_INSNS 40
#define BLOCK_SOURCE_MAX (BLOCK_INSNS * 15) /* bytes of theirs */
/* References and words of a block: bounds how far a record can run over the end of a buffer, which
 * the guard page of 512 words must catch. */
#define BLOCK_REFS 96
#define BLOCK_WORDS 120
/* Entries of a thread's table of indirect jump targets, 16 bytes each. 16 bits of the plain
 * address missed millions of times on python3; 16 bits of its CRC do not. */
#define TARGET_BITS 16
/* The signal stack of a thread: a frame with AVX-512 state is 3.5 KB, the translator's C code needs
 * less than 8 KB more. */
#define SIGNAL_STACK_BYTES (64u << 10)
/* Stack of C code called from the code cache. */
#define DISPATCH_STACK_BYTES (32u << 10)
/* Threads that are followed in one process; more run unprofiled. */
#define MAX_THREADS 4096
/* Full mode: CPU time after which a thread that runs native is taken back. */
#define REENTER_NS 1000000
/* Instructions in a row that are stepped over then, some 3 us each, while there is no code for them. */
#define CONSECUTIVE_STEPS_MOST 1000u
/* Full mode: how often a thread that waits for a buffer looks again, at least; and how long it waits where it
 * may as well run natively. */
#define BUFFER_LOOK_NS 5000000
#define BUFFER_WAIT_NS 10000000000u
/* Full mode, the code cache full: how often a thread looks whether all others have left it, 20 ms in all. */
#define ROOM_LOOKS 100u
#define ROOM_LOOK_NS 200000
#define NEVER_NS 3600000000000ull /* an hour */
/* What a change of context costs a thread that the collector has an event on: 0.5 us on a virtual machine
 * (EPYC; a program of two threads that wait for each other, with and without). And of its CPU time, for how
 * much of it the event is given up: a hundredth. */
#define EVENT_SWITCH_NS 500u
#define EVENT_MOST_SHARE 100u
/* CPU time of a thread before that is asked. */
#define EVENT_TRIED_NS 10000000u
/* A planned burst is put off if the mean gap is more than this many times as long as when it was planned. */
#define GAP_GROWN_TIMES 2
/* How much later than the collector's trigger the timer fires, for when there is none yet. */
#define BACKSTOP_NS 20000000
/* How often a thread that wants to execute another program looks whether the collector has opened its event,
 * which takes some 20 us, and how long at most. */
#define HOLD_LOOK_NS 20000
#define HOLD_MOST_NS 200000000
/* How long to wait for the collector to close its events before the target forbids system calls: longer than
 * a slow disk takes it, but whoever stops the recorder must not stop the target. */
#define RETIRE_MS 2000
/* CPU time in which a thread certainly comes from where it was preempted to user mode. */
#define RAN_SINCE_NS 100000u
/* And for other threads to leave their bursts: as long as those take that compute, for who waits in a system
 * call may do so for ever. */
#define RETIRE_BURSTS_MS 100
/* How long a burst's thread waits for the collector to choose what to watch: decoding takes it 1-2 ms. */
#define ANSWER_WAIT_NS 20000000
/* And for one that was begun: longer than a slow disk takes, but whoever stops the recorder must not stop the
 * target. */
#define ANSWER_GIVE_UP_NS 2000000000u
/* Around the thread pointer lies what the kernel writes to, and thread-local variables: as the collector's
 * COLLECT_TLS_BELOW and _ABOVE. */
#define THREAD_POINTER_BELOW 8192u
#define THREAD_POINTER_ABOVE 8192u
/* Threads that call_through (arch) has room for; those beyond make the process one that is not watched. */
#define CALL_SLOTS 1024
/* More threads are not watched: each page that is closed is compared with what all of them do. */
#define WATCH_MOST_THREADS 512u
/* How long, in CPU time of theirs, a page may be open to other threads unseen before its lines are given up:
 * as much as a watched reuse is timed wrong then, a hundredth or less of what they mostly take. */
#define UNSEEN_MOST_NS 1000000u
/* Changes of mappings that are kept in mind while the collector thinks; with more, all lines are given up. */
#define CHANGES_KNOWN 64u
/* Bursts that go unwatched, at most, where system calls alone cost more than watching may. */
#define REST_MOST_BURSTS 64u
/* A thread is let go in such a rest after so many calls, if having them diverted has cost this part of the
 * process' CPU time. No others: who is let go and falls asleep is not seen, and nothing closed, until it
 * wakes up and has run for a while (zstd's main thread waits for its others nearly all the time). */
#define REST_CALLS 1000u
#define REST_SHARE 50u /* 1 / .02 */
/* Places of signal frames that are never closed (watch-pages.c); and how large a frame can be: some 11 KB
 * with AMX state. */
#define FRAMES_KNOWN 16u
#define FRAME_MOST_BYTES 16384u
/* What functions of ours that hold the lock natively need of the target's stack, at most. */
#define NATIVE_STACK_BYTES 8192u
/* Words of the short burst behind a touch of a closed page: the least, and the most where touches follow each
 * other within so much CPU time. 512 words take some 2 us to record and look through, the two faults 10. */
#define MINI_LEAST_WORDS 256u
#define MINI_WORDS 4096u
#define MINI_SOON_NS 4000
/*
 * What is neither the program's own time nor measured of a burst, from its end until the program is at work
 * as if nothing had been, and of a short burst, its fault's way in among it: in faults' ways in and out.
 * Lines that are touched again at once tell: of thirteen programs the 5% that were told the shortest time
 * after a burst were told 4.5 us too late (median of programs; 3.0 to 5.0) with one fault taken off, which is
 * 4.5 us there, and with a short burst between 2.0 us more (.6 to 3.5).
 */
#define BURST_BACK_PERCENT 200u
#define MINI_BACK_PERCENT 145u
/* From the end of what watching does at a fault to a signal that waited for it, at most. */
#define FAULT_RETURN_NS 3000u
/* What a burst takes at most, and for each word and each block that was translated in it. */
#define BURST_MOST_NS 500000u
#define BURST_WORD_MOST_NS 20u
#define BURST_BLOCK_MOST_NS 20000u
/*
 * Counting before a burst: CPU time of an untimed part, in which code is translated, linked, and brought near
 * the processor, then of a timed one; and after how much of it in all they end as they are.
 *
 * Warm for .1 ms only, code of many places is counted far slower than it runs (gnugo at .44 of its rate, cc1
 * at .22), for 1 ms less so (.62, .37). Longer costs bursts, and signals wait meanwhile.
 */
#define COUNT_WARM_NS 1500000u
#define COUNT_TIMED_NS 100000u
/*
 * Behind these the burst begins after so many references at most, at random, and what it stands for is told
 * by the time that the COUNT_NEAR_REFS before it took. On the way the time is noted every COUNT_MARK_REFS.
 * Code that is slow, or never comes by a mark, is cut short after so long.
 */
#define COUNT_NEAR_REFS 32768u
#define COUNT_MARK_REFS 2048u
#define COUNT_MARKS 20u
#define COUNT_NEAR_NS 800000u
/* Counts turns in the same word as blocks. */
#define COUNT_TURN (1ull << 32)
/* A mark that is not to be met. */
#define COUNT_NO_AIM (1ull << 50)
#define COUNT_MOST_NS 8000000u
/* Counting always: how long until a thread is looked at again, at most, for that is how long its signals may
 * have to wait; stopping it costs some 8 us. */
#define COUNT_LAP_NS 2000000u
/* The shortest time that the timer is set to: on a busy machine a shorter one is over before the thread runs
 * again. */
#define COUNT_LEAST_NS 15000u
/* Blocks that are translated at once, if nothing is known of whether all will be run; and if it is. */
#define COUNT_RUN 4u
#define COUNT_RUN_MOST 16u
/* Lowest bits of an address that are its index in the tables of branch targets: 2 MB each. With 16, addresses
 * meet in one place a million times in sqlite3 or python3. */
#define COUNT_TABLE_BITS 18
/* A part cut short tells a rate if it was at least this part of what was planned. */
#define COUNT_LEAST_SHARE 3u
/* Thread CPU time to a burst that is overdue; after a stretch that was cut short at least this and less than
 * twice as much. */
#define AGAIN_NS 100000u
/* Counting always: references of a thread before its own rate is used to place bursts, and the rate till
 * then, in references per microsecond. */
#define COUNT_RATE_REFS 1000000u
#define COUNT_FIRST_RATE 1000u
/* Regions of code that are known. */
#define MAX_REGIONS 512
/* Separate stretches of code that are known to change. Programs that patch themselves have a few. */
#define MAX_UNSTABLE 256

#endif
