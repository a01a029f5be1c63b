# SPDX-License-Identifier: Apache-2.0
"""Programs that something else has a hand in already: sanitizers, debuggers, emulators. Nothing gets into its way."""
import os
import re
import shutil
import sqlite3
import subprocess
import sys

import pytest

from conftest import FULL, need, run, run_keys, target_environment, totals, work_divisor

DEBUG_INFO = False

MODES = {"burst": ["--gap-us", "2000"], "full": FULL, "watched": ["--gap-us", "500", "CACHEGRAM_DEBUG=watch-lines=32"]}


def same(native, recorded):
    """Output and status; addresses, process numbers and places of errors differ from run to run."""
    def plain(text):
        return re.sub(rb"==\d+==|0x[0-9a-f]+|\b\d{4,}\b", b"", text)
    assert (plain(recorded.out), recorded.status) == (plain(native.out), native.status), recorded.err


def environment(options):
    """Ours, with these options of the address sanitizer; None: unset."""
    rest = {k: v for k, v in os.environ.items() if k != "ASAN_OPTIONS"}
    return rest if options is None else {**rest, "ASAN_OPTIONS": options}


@pytest.mark.parametrize("options", [None, "detect_leaks=0"])
@pytest.mark.parametrize("target", ["sanitized", "sanitized_own"])
@pytest.mark.parametrize("mode", MODES)
def test_address_sanitizer(record, built, mode, target, options):
    env = environment(options)
    native = run([built / target], env=env)
    assert native.out.count(b"\n") == 3
    recorded, db = record(MODES[mode], [built / target], env=env)
    same(native, recorded)
    assert totals(db)["references"] > 10000


@pytest.mark.parametrize("target, status", [("sanitized", 1), ("sanitized_own", 7)])
def test_address_sanitizer_finds_the_same_error(record, built, target, status):
    """A read after a block of the heap, also from a script that sets options of its own."""
    script = f"ASAN_OPTIONS=$ASAN_OPTIONS {built / target} overflow"
    native = run(["sh", "-c", script], env=environment(None))
    assert native.status == status and b"heap-buffer-overflow" in native.err
    recorded, _ = record([], ["sh", "-c", script], env=environment(None))
    same(native, recorded)
    assert b"heap-buffer-overflow" in recorded.err
    without, _ = record([], ["sh", "-c", f"unset ASAN_OPTIONS; {built / 'sanitized'} overflow"], env=environment(None))
    assert b"heap-buffer-overflow" in without.err


def warning(db):
    return run_keys(db).get("warning", "")


@pytest.mark.parametrize("mode", MODES)
def test_debugger(record, built, mode):
    """It would stop at each signal of ours."""
    # Without libc's debug information, which takes gdb longer than all else, and without Python's start, half of the rest.
    session = [need("gdb"), "-nx", "-batch", "--data-directory=/nowhere", "-iex", "set debug-file-directory", "-ex", "run", "-ex", "print $_exitcode",
               "--args", built / "micro", "random", 65536, 20000000]
    native = run(session)
    assert b"$1 = 0" in native.out
    recorded, db = record(MODES[mode], session)
    assert b"$1 = 0" in recorded.out and b"SIG" not in recorded.out, recorded.out
    assert "traced" in warning(db) and totals(db)["references"] > 0, "of gdb itself"


@pytest.mark.parametrize("mode", MODES)
def test_strace(record, built, tmp_path, mode):
    log = tmp_path / "log"
    argv = [need("strace"), "-f", "-o", log, "sh", "-c", f"{built / 'micro'} random 65536 20000000; {built / 'micro'} random 64 1000"]
    native = run(argv)
    recorded, db = record(MODES[mode], argv)
    same(native, recorded)
    assert "--- SIGTRAP" not in log.read_text() and "--- SIGSEGV" not in log.read_text()
    assert "processes were not" in warning(db) and "profiled (strace, ...): traced" in warning(db)


@pytest.mark.parametrize("mode", MODES)
def test_valgrind(record, built, mode):
    """What it runs is left alone, what runs next to it is not."""
    micro = f"{built / 'micro'} random 65536"
    argv = ["sh", "-c", f"{need('valgrind')} -q --tool=none {micro} 3000000 && {micro} {30000000 // work_divisor(MODES[mode])}"]
    native = run(argv)
    assert native.status == 0
    recorded, db = record(MODES[mode], argv)
    same(native, recorded)
    assert "1 process was not profiled (micro): run by an emulator" in warning(db)
    assert totals(db)["references"] > 10000


def test_loader_by_name(record, built):
    """The dynamic loader as a command changes what the kernel has reported: no emulator."""
    recorded, db = record(FULL, ["sh", "-c", f"/lib64/ld-linux-x86-64.so.2 {built / 'micro'} random 65536 100000"])
    assert recorded.status == 0 and warning(db) == "" and totals(db)["references"] > 100000


@pytest.mark.parametrize("mode", MODES)
def test_go_library(record, built, mode):
    """A Go runtime that comes with a library takes over signals: from then on the program is left alone."""
    argv = [built / "go_like", built / "lib_go_note.so"]
    env = target_environment(work_divisor(MODES[mode]))
    native = run(argv, env=env)
    result, db = record(MODES[mode], argv, env=env)
    assert (result.status, result.out) == (native.status, native.out)
    assert b"Go runtime" in result.err + result.summary
    assert totals(db)["references"] > 0


PIDS = ["unshare", "-p", "-f"]


@pytest.mark.skipif(subprocess.run([*PIDS, "true"], capture_output=True, check=False).returncode != 0,
                    reason="no PID namespace can be made")
def test_other_process_numbers(record, built, cachegram, tmp_path):
    """In another PID namespace process numbers name others, to whom the collector must do nothing."""
    argv = [*PIDS, built / "micro", "random", str(1 << 20), "30000000"]
    native = run(argv)
    result, db = record(["--gap-us", "2000"], argv)
    assert (result.status, result.out) == (native.status, native.out)
    assert b"in another PID namespace" in result.err + result.summary
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:  # unshare itself may have one
        inside, = con.execute("select count(*) from burst join process on burst.process = process.id "
                              "where exe like '%/micro'").fetchone()
    assert inside == 0
    result = run([*PIDS, cachegram, "record", "-o", tmp_path / "a.db", "--", "true"])
    assert result.status == 125 and b"/proc" in result.err


@pytest.mark.skipif(subprocess.run([*PIDS, "true"], capture_output=True, check=False).returncode != 0,
                    reason="no PID namespace can be made")
def test_session_out_of_reach(record, built):
    """As in a sandbox with a /proc of its own, begun by a system call: the program's agent cannot say that it is there."""
    micro = built / "micro"
    argv = [sys.executable, "-c", f"""
import ctypes, os
if pid := ctypes.CDLL(None).syscall(56, 0x20000000 | 17, 0, 0, 0, 0):  # clone, CLONE_NEWPID | SIGCHLD
    os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
os.execve("{micro}", ["{micro}", "random", "65536", "1000"], {{**os.environ, "CACHEGRAM_SESSION": "/nothing"}})"""]
    result, db = record([], argv)
    assert result.status == run(argv).status == 0
    assert "in another PID namespace" in warning(db)


CHROOT = ["chroot"] if os.geteuid() == 0 else ["unshare", "-r", "chroot"]


@pytest.mark.skipif(subprocess.run([*CHROOT, "/", "true"], capture_output=True, check=False).returncode != 0,
                    reason="chroot is not permitted")
@pytest.mark.parametrize("own", [None, "libc.so.6"])
@pytest.mark.parametrize("mode", MODES)
def test_library_out_of_reach(record, tmp_path, mode, own):
    """In another root directory the dynamic loader would print that it cannot find the agent."""
    env = need("env")
    listed = subprocess.run(["ldd", env], capture_output=True, text=True, check=True).stdout
    for file in [env, *re.findall(r"(/\S+) \(", listed)]:
        copy = tmp_path / "root" / str(file).lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    given = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"} | ({"LD_PRELOAD": own} if own else {})
    argv = [*CHROOT, tmp_path / "root", env]
    native = run(argv, env=given)
    result, db = record(MODES[mode], argv, env=given)
    assert (result.status, result.err) == (native.status, native.err) == (0, b"")
    assert re.findall(rb"LD_PRELOAD=.*", result.out) == re.findall(rb"LD_PRELOAD=.*", native.out)
    assert "in another root directory" in warning(db)


@pytest.mark.skipif(subprocess.run([*PIDS, "--mount-proc", "true"], capture_output=True, check=False).returncode != 0,
                    reason="no /proc can be mounted")
def test_recorder_in_a_namespace(record, built):
    result, db = record(["--gap-us", "2000"], [built / "micro", "random", str(1 << 20), "30000000"],
                        wrap=[*PIDS, "--mount-proc"])
    assert result.status == 0 and run_keys(db)["bursts"] > 5


def test_loader_as_the_command(record, built):
    """Not a static program: there is something that the user can do."""
    recorded, db = record(FULL, ["/lib64/ld-linux-x86-64.so.2", built / "micro", "random", "65536", "1000"])
    assert recorded.status == 0
    assert "the dynamic loader, run explicitly" in warning(db) and "name the program itself" in warning(db)
    assert "statically" not in warning(db)


@pytest.mark.parametrize("mode", MODES)
def test_all_signals_blocked_from_the_start(record, built, mode):
    """As children of worker threads are started. Neither the recorder nor the program is killed by a fault."""
    blocked = [sys.executable, "-c", "import os, signal, sys\n"
               "signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())\nos.execvp(sys.argv[1], sys.argv[1:])"]
    env = target_environment(work_divisor(MODES[mode]))
    native = run([*blocked, built / "execs"], env=env)
    recorded, db = record(MODES[mode], [built / "execs"], wrap=blocked, env=env)
    same(native, recorded)
    assert totals(db)["references"] > 10000


# Prints LD_PRELOAD, if it is in its environment. It needs neither a C library nor a dynamic loader of 32 bits.
PROGRAM_32 = """
static int call(int n, int a, const void *b, int c)
{
    __asm__ volatile("int $0x80" : "+a"(n) : "b"(a), "c"(b), "d"(c) : "memory");
    return n;
}
__attribute__((used)) static void run(char **stack)
{
    char **env = stack + *(int *)stack + 2;
    for (; *env; env++)
        if (env[0][0] == 'L' && env[0][1] == 'D' && env[0][2] == '_' && env[0][3] == 'P') {
            int n = 0;
            while (env[0][n])
                n++;
            call(4, 1, *env, n);
        }
    call(4, 1, "ran\\n", 4);
    call(1, 3, 0, 0);
}
__asm__(".globl _start; _start: mov %esp, %eax; push %eax; call run");
"""

# How the program `other`, which is in PATH, and the script `script`, which it interprets, are executed.
EXECUTED = {
    "execve": ["sh", "-c", "./other; ./script; exec ./other"],
    "execvp": [sys.executable, "-c", "import os; os.execvp('other', ['x'])"],
    "fexecve": [sys.executable, "-c", "import os; os.execve(os.open('other', os.O_RDONLY), ['x'], os.environ)"],
    "posix_spawn": [sys.executable, "-c", "import os\nfor spawn in os.posix_spawn, os.posix_spawnp:\n"
                    "    print(os.waitpid(spawn('./script', ['x'], os.environ), 0)[1], flush=True)"],
    "posix_spawnp": [sys.executable, "-c", "import os\n"
                     "print(os.waitpid(os.posix_spawnp('other', ['x'], os.environ), 0)[1])"],
    "syscall": [sys.executable, "-c", "import ctypes, os\nc = ctypes.CDLL(None)\n"
                "argv = (ctypes.c_char_p * 2)(b'x')\n"
                "c.syscall(59, b'./other', argv, ctypes.POINTER(ctypes.c_void_p).in_dll(c, 'environ'))"],
}


@pytest.mark.parametrize("how", EXECUTED)
@pytest.mark.parametrize("mode", MODES)
def test_32_bits(record, tmp_path, mode, how):
    """Their dynamic loader would print that it cannot load the agent."""
    (tmp_path / "other.c").write_text(PROGRAM_32)
    subprocess.run(["gcc", "-m32", "-O1", "-fno-pie", "-no-pie", "-fno-stack-protector", "-fno-asynchronous-unwind-tables",
                    "-nostdlib", "-static", "-o", "other", "other.c"], cwd=tmp_path, check=True)
    (tmp_path / "script").write_text(f"#!{tmp_path / 'other'} x\n")
    (tmp_path / "script").chmod(0o755)
    given = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"} | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    try:
        assert run([tmp_path / "other"], env=given).status == 3
    except OSError:
        pytest.skip("the kernel runs no programs of 32 bits")
    native = run(EXECUTED[how], cwd=tmp_path, env=given)
    assert b"ran" in native.out
    result, db = record(MODES[mode], EXECUTED[how], cwd=tmp_path, env=given)
    assert (result.status, result.out, result.err) == (native.status, native.out, native.err)
    assert mode != "full" or totals(db)["references"] > 0, "of what executes it"
    if how in ("execve", "execvp"):
        assert "other (is a 32-bit program)" in warning(db)


@pytest.mark.parametrize("mode", MODES)
def test_another_c_library(record, tmp_path, mode):
    """musl's loader ends a program if a symbol of a preloaded library is missing. Its children are as any others."""
    (tmp_path / "program.c").write_text("""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static void *allocate(void *argument)
{
    for (int i = 1; i < 100000; i++) {
        char *p = malloc((size_t)i % 3000 + 1);
        memset(p, i, (size_t)i % 3000 + 1);
        free(p);
    }
    return argument;
}
int main(int argc, char **argv)
{
    pthread_t thread[3];
    int status;
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, allocate, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(p, 4096, PROT_READ);
    munmap(p, 4096);
    printf("threads %d\\n", argc);
    fflush(stdout);
    if (fork() == 0) {
        execv(argv[1], argv + 1);
        _exit(9);
    }
    wait(&status);
    printf("status %d\\n", WEXITSTATUS(status));
    return 4;
}
""".replace("\\\\", "\\"))
    subprocess.run([need("musl-gcc"), "-O1", "-o", "program", "program.c"], cwd=tmp_path, check=True)
    argv = ["sh", "-c", f"./program {need('env')} sh -c 'exit 6'; echo $?"]
    given = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    native = run(argv, cwd=tmp_path, env=given)
    assert native.out == b"threads 5\nstatus 6\n4\n"
    result, db = record(MODES[mode], argv, cwd=tmp_path, env=given)
    assert (result.status, result.out, result.err) == (native.status, native.out, native.err)
    assert "program (uses musl, not glibc, as its C library)" in warning(db)
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        names = {os.path.basename(name) for name, in con.execute("select exe from process")}
    assert "program" not in names and len(names) > 1, "the shell's, and the program's child"


@pytest.mark.parametrize("mode", MODES)
def test_list_of_libraries(record, built, mode):
    """`ldd` does not list the agent. The addresses are random."""
    argv = ["sh", "-c", f"ldd {built / 'micro'} | sed 's/ (0x.*//'"]
    given = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    native = run(argv, env=given)
    assert b"libc.so.6" in native.out
    result, _ = record(MODES[mode], argv, env=given)
    assert (result.status, result.out, result.err) == (native.status, native.out, native.err)


ALL_MODES = {**MODES, "count": ["--mode", "count"], "early": ["--allowance", "60ms"], "default": ["--allowance", "1s"]}


@pytest.mark.parametrize("program", [None, "/usr/bin/env"])
@pytest.mark.parametrize("mode", ALL_MODES)
def test_tracer_of_its_children(record, built, mode, program):
    """As debuggers do: the child asks to be traced. The tracer sees no signal of the agent's."""
    argv = ["sh", "-c", f"{built / 'traced'} {program or ''} | sed 's/(0x.*//'"]
    given = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    native = run(argv, env=given)
    assert native.out.count(b"\n") >= 4 and b"1 x signal 10" in native.out
    result, db = record(ALL_MODES[mode], argv, env=given)
    assert (result.status, result.out, result.err) == (native.status, native.out, native.err)
    assert "(traced, ...): traced by a debugger" in warning(db)


@pytest.mark.parametrize("mode", ALL_MODES)
def test_landlock(record, built, mode):
    """A sandbox that lets programs find the agent, but not open it."""
    native = run([built / "landlocked"])
    if native.status == 77:
        pytest.skip("the kernel has no Landlock")
    assert b"child 5" in native.out
    result, _ = record(ALL_MODES[mode], [built / "landlocked"])
    assert (result.status, result.out, result.err) == (native.status, native.out, native.err)
