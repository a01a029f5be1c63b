# SPDX-License-Identifier: Apache-2.0
"""Profiles made for the tests of pages, and what a page costs the browser."""
import sqlite3

from test_cli import histogram, leb128, make, put

HOSTILE = ("<img src=x onerror=\"window.hacked=1\">", "</script><script>window.hacked=1</script>", "'\"`&amp;{a|b}",
           "tab\there\x1b[31m\u202edlrow\u2028x\u2029", "<!--<script>", "]]>@DATA@")


def zigzag(n):
    return leb128(2 * n if n >= 0 else -2 * n - 1)


def many_sites(path, n, name="a_function_of_a_large_program_", hot=0):
    """A profile of full mode with a function, a line, and a variable for each of n instructions. The first `hot` have n first
    touches more than the others, which have 1."""
    refs, cold = 100 * n + hot * n, n + hot * n
    db = make(path, "full", references=refs, cold=cold, loads=refs, stores=0)
    db.executescript("""
    CREATE TABLE image(id INTEGER PRIMARY KEY, path TEXT, build_id TEXT);
    CREATE TABLE frame(id INTEGER PRIMARY KEY, function TEXT, file TEXT, line INTEGER, guessed INTEGER, caller INTEGER, column INTEGER);
    CREATE TABLE site(id INTEGER PRIMARY KEY, image, offset, frame, outer_frame, refs, first_touches);
    CREATE TABLE object(id INTEGER PRIMARY KEY, kind TEXT, name TEXT, module TEXT, offset, size, refs, first_touches);
    CREATE TABLE object_frame(object, depth, module TEXT, offset, frame, PRIMARY KEY(object, depth)) WITHOUT ROWID;
    CREATE TABLE block(process INTEGER PRIMARY KEY, sites BLOB);
    CREATE TABLE burst_site(burst, process, counts BLOB, PRIMARY KEY(burst, process));
    INSERT INTO process VALUES(1, 1, 0, '/bin/many', 0);
    INSERT INTO image VALUES(1, '/bin/many', '');""")
    blocks = counts = b""
    for i in range(1, n + 1):
        more = n if i <= hot else 0
        db.execute("INSERT INTO frame VALUES(?,?,'/src/many.c',?,0,0,NULL)", (i, f"{name}{i}", i))
        db.execute("INSERT INTO site VALUES(?,1,?,?,?,?,?)", (i, 16 * i, i, i, 100 + more, 1 + more))
        db.execute("INSERT INTO object VALUES(?,'variable',?,'/bin/many',?,64,?,?)", (i, f"variable_{i}", 64 * i, 100 + more, 1 + more))
        blocks += leb128(1) + leb128(1) + zigzag(1)
        entries = [(0, 66, i, 1 + more), (0, 40, i, 1 + i % 50), (0, 131, i, 100 + more)]
        counts += zigzag(1) + leb128(100 + more) + leb128(len(entries)) + b"".join(leb128(v) for e in entries for v in e)
    db.execute("INSERT INTO block VALUES(1, ?)", (blocks,))
    db.execute("INSERT INTO burst_site VALUES(0, 1, ?)", (counts,))
    put(db, 0, "stack", {0: 99 * n})
    put(db, 0, "reuse", {0: 99 * n})
    db.commit()
    db.close()


def many_calls(path, callers=25, depth=19):
    """Adds call paths to a profile of many_sites: each site is reached by so many paths of so many calls; of its 100 first
    touches, the first path has the larger part, and the others as many each. Paths have no calls in common."""
    db = sqlite3.connect(path)
    db.executescript("""
    CREATE TABLE call_path(id INTEGER PRIMARY KEY, caller, image, offset, frame);
    CREATE TABLE site_path(site, path, kind TEXT, lines, refs, PRIMARY KEY(site, path, kind, lines)) WITHOUT ROWID;""")
    n = db.execute("SELECT max(id) FROM site").fetchone()[0]
    for i in range(callers * depth):
        db.execute("INSERT INTO call_path VALUES(?,?,1,?,?)", (i + 1, i if i % depth else None, 16 * i + 8, 1 + i % n))
    for site in range(1, n + 1):
        db.executemany("INSERT INTO site_path VALUES(?,?,'first',0,?)", [(site, depth * (i + 1), 3 if i else 103 - 3 * callers) for i in range(callers)])
    db.commit()
    db.close()


def many_windows(path, n, phases=8):
    """Adds windows to a profile, all recorded completely, with phases that take turns."""
    db = sqlite3.connect(path)
    db.executescript("""
    CREATE TABLE time_window(id INTEGER PRIMARY KEY, process, tid, kind TEXT, start_ns, end_ns, cpu_ns, refs, cold, ticks, bursts, phase, stack BLOB, own_cold, own_stack BLOB);
    CREATE TABLE phase(id INTEGER PRIMARY KEY, windows, refs, cpu_ns, first_window);""")
    db.executemany("INSERT INTO time_window VALUES(?,1,1,'exact',?,?,1000000,1000,10,0,0,?,?,10,NULL)",
                   [(i, i * 1000000, (i + 1) * 1000000, 1 + i // 7 % phases, histogram({0: 980 - i % 97 * 10, 40 + i % 90: 10 + i % 97 * 10})) for i in range(1, n + 1)])
    db.execute("INSERT INTO phase SELECT phase, count(*), sum(refs), NULL, min(id) FROM time_window GROUP BY phase")
    db.commit()
    db.close()


def sampled_phases(path, exe, phases, rounds=4, bursts=5):
    """A profile of bursts, with phases that take turns. Each is (code, bin, reuses): the executions of functions of the file
    exe in each burst, by name, and how many of its 1000 references reuse a line at a stack distance in that bin; 20
    are far in any case."""
    db = make(path, "burst", command=exe)
    db.executescript("""
    CREATE TABLE image(id INTEGER PRIMARY KEY, path TEXT, build_id TEXT);
    CREATE TABLE frame(id INTEGER PRIMARY KEY, function TEXT, file TEXT, line INTEGER, guessed INTEGER, caller INTEGER, column INTEGER);
    CREATE TABLE site(id INTEGER PRIMARY KEY, image, offset, frame, outer_frame, refs, first_touches);
    CREATE TABLE block(process INTEGER PRIMARY KEY, sites BLOB);
    CREATE TABLE burst_site(burst, process, counts BLOB, PRIMARY KEY(burst, process));
    CREATE TABLE time_window(id INTEGER PRIMARY KEY, process, tid, kind TEXT, start_ns, end_ns, cpu_ns, refs, cold, ticks, bursts, phase, stack BLOB, own_cold, own_stack BLOB);
    CREATE TABLE phase(id INTEGER PRIMARY KEY, windows, refs, cpu_ns, first_window);""")
    db.execute("INSERT INTO process VALUES(1, 1, 0, ?, 0)", (exe,))
    db.execute("INSERT INTO image VALUES(1, ?, '')", (exe,))
    names = sorted({name for code, _, _ in phases for name in code})
    for i, name in enumerate(names, 1):
        db.execute("INSERT INTO frame VALUES(?,?,'/src/a.c',?,0,0,NULL)", (i, name, i))
        db.execute("INSERT INTO site VALUES(?,1,?,?,?,100,1)", (i, 16 * i, i, i))
    db.execute("INSERT INTO block VALUES(1, ?)", (b"".join(leb128(1) + leb128(1) + zigzag(1) for _ in names),))
    burst = 0
    for window in range(rounds * len(phases)):
        code, bin, reuses = phases[window % len(phases)]
        db.execute("INSERT INTO time_window VALUES(?,1,1,'sampled',?,?,1000000,NULL,NULL,10,?,?,NULL,NULL,NULL)",
                   (window + 1, window * 1000000, (window + 1) * 1000000, bursts, window % len(phases) + 1))
        for i in range(bursts):
            burst += 1
            db.execute("INSERT INTO burst(id, process, tid, start_ns, end_ns, refs, loads, stores, end_code, end_reason, weight) "
                       "VALUES(?,1,1,?,?,1000,1000,0,1,'full',1000)", (burst, window * 1000000 + i * 1000, window * 1000000 + i * 1000 + 500))
            for kind in ("stack", "reuse"):
                put(db, burst, kind, {0: 980 - reuses, bin: reuses, 2000: 20})
            counts, last = b"", 0
            for number, name in enumerate(names, 1):
                if name in code:
                    counts += zigzag(number - last) + leb128(code[name]) + leb128(0)
                    last = number
            db.execute("INSERT INTO burst_site VALUES(?, 1, ?)", (burst, counts))
    db.execute("INSERT INTO phase SELECT phase, count(*), NULL, sum(cpu_ns), min(id) FROM time_window GROUP BY phase")
    db.commit()
    db.close()


def open_and_use(b, path):
    """Opens a page and uses it; the milliseconds of CPU time of the page's own thread for each step."""
    def task_ms():
        return 1000 * {m["name"]: m["value"] for m in b.call("Performance.getMetrics")["metrics"]}["TaskDuration"]

    b.call("Performance.enable", timeDomain="threadTicks")
    costs, steps = {}, {
        "open": lambda: b.open(path),
        "calls of all rows": lambda: b.evaluate("document.querySelectorAll('#hotspots-table button[aria-expanded]').forEach(e => e.click())"),
        "another cache size": lambda: b.evaluate("(e => { e.value = 0; e.dispatchEvent(new Event('input')); })(document.getElementById('size'))"),
        "a phase": lambda: b.evaluate("document.querySelector('#phases button').click()"),
        "a name": lambda: b.evaluate("(e => { e.value = '1'; e.dispatchEvent(new Event('input')); })(document.getElementById('filter'))"),
        "logarithmic": lambda: b.evaluate("document.getElementById('log').click()"),
    }
    for name, step in steps.items():
        before = 0 if name == "open" else task_ms()
        step()
        b.settle()
        costs[name] = task_ms() - before
    return costs
