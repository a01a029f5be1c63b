# SPDX-License-Identifier: Apache-2.0
"""Language runtimes that scan memory for pointers, the agent's included, run as they do alone.

guile, ecl and w3m collect with libgc, which reads the data of every library; sbcl and mono scan stacks
conservatively; chicken copies its stack. Each runs 50 times with a burst each 0.5 ms.
"""
import pytest

from e2e_conftest import need, run

OFTEN = ["--gap-us", "500"]
RUNS = 50

LISP = """(defun tree (n) (if (= n 0) nil (cons (tree (- n 1)) (tree (- n 1)))))
(defun size (x) (if (null x) 1 (+ (size (car x)) (size (cdr x)))))
(let ((s 0)) (dotimes (i 6) (incf s (size (tree 11)))) (print s))
(let ((h (make-hash-table :test 'equal)))
  (dotimes (i 6000) (setf (gethash (format nil "~a" i) h) (* i i))) (print (gethash "1234" h)))
(terpri)
"""
SCHEME = """(define (tree n) (if (= n 0) '() (cons (tree (- n 1)) (tree (- n 1)))))
(define (size t) (if (null? t) 1 (+ (size (car t)) (size (cdr t)))))
(display (let loop ((i 0) (s 0)) (if (= i 12) s (loop (+ i 1) (+ s (size (tree 12)))))))
(newline)
"""
PAGE = "<html><body><table>" + "".join(
    f"<tr><td>{i}</td><td><a href='{i * i}'>{i * 7919 % 1000}</a></td></tr>" for i in range(3000)) + "</table></body></html>"

PROGRAMS = {
    "guile": (["guile", "--no-auto-compile", "FILE"], SCHEME + "(gc)\n"),
    "ecl": (["ecl", "--norc", "--shell", "FILE"], LISP),
    "sbcl": (["sbcl", "--script", "FILE"], LISP),
    "csi": (["csi", "-s", "FILE"], SCHEME),
    "w3m": (["w3m", "-T", "text/html", "-dump", "FILE"], PAGE),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_collector(record, tmp_path, monkeypatch, name):
    monkeypatch.setenv("GUILE_AUTO_COMPILE", "0")
    monkeypatch.setenv("HOME", str(tmp_path))
    argv, text = PROGRAMS[name]
    need(argv[0])
    (tmp_path / "source").write_text(text)
    argv = [str(tmp_path / "source") if a == "FILE" else a for a in argv]
    native = run(argv)
    assert native.status == 0 and native.out, native.err
    for _ in range(RUNS):
        result, _ = record(OFTEN, argv)
        assert (result.status, result.out) == (native.status, native.out), result.err[-500:]
