"""Finds calls that only POSIX has, and text files that are opened in whatever encoding the system prefers.

``python .ci/check_portable.py FOLDER_OR_FILE...`` prints each place and ends with 1 where there is one. A name that
only POSIX has may stand where the same function asks for it first: ``hasattr(os, "fork")`` or
``getattr(os, "fork", None)``; a module where ``except ModuleNotFoundError`` or ``except ImportError`` goes on without
it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


POSIX_MODULES = _names("crypt curses fcntl grp posix pty pwd readline resource spwd syslog termios tty")
"""Python's documentation marks them with "Availability: Unix"."""

POSIX_NAMES = {
    "os": _names(
        "chown chroot confstr ctermid fchdir fchmod fchown fork forkpty getegid geteuid getgid getgroups getloadavg "
        "getpgid getpgrp getpriority getresuid getsid getuid initgroups killpg lchown lockf major makedev mkfifo mknod "
        "nice openpty pathconf posix_fadvise posix_spawn pread preadv pwrite pwritev sched_getaffinity "
        "sched_setaffinity sched_yield sendfile setegid seteuid setgid setpgid setpriority setsid setuid statvfs sync "
        "sysconf tcgetpgrp tcsetpgrp ttyname uname wait wait3 wait4 WEXITSTATUS WIFEXITED"
    ),
    "signal": _names(
        "SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2 alarm pause setitimer "
        "pthread_kill sigwait"
    ),
    "time": _names("clock_gettime clock_gettime_ns pthread_getcpuclockid tzset"),
    "socket": _names("AF_UNIX"),
}
FILE_NAMES = tuple(f"/{name}/" for name in ("dev", "proc", "tmp", "etc"))
"""Beginnings of paths that other systems do not have."""

NOT_FILES = frozenset(("bz2", "dbm", "fs", "gzip", "lzma", "os", "shelve", "tarfile", "wave", "webbrowser", "zipfile"))
"""Whatever is called ``open`` of these opens no text file without being asked to."""


def mistakes(source: str) -> Iterator[tuple[int, str]]:
    """Line and complaint of each place in a program."""
    tree = ast.parse(source)
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (asked := _asked_for(node))
        for inner in ast.walk(node)
        if isinstance(inner, ast.Attribute) and (_owner(inner), inner.attr) in asked
    }
    tried = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try) and any(_goes_on_without_module(handler) for handler in node.handlers)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) if id(node) not in tried:
                yield from ((node.lineno, f"module {one.name}") for one in names if one.name in POSIX_MODULES)
            case ast.ImportFrom(module=str(module), names=names):
                if module in POSIX_MODULES and id(node) not in tried:
                    yield node.lineno, f"module {module}"
                wrong = POSIX_NAMES.get(module, frozenset())
                yield from ((node.lineno, f"{module}.{one.name}") for one in names if one.name in wrong)
            case ast.Attribute() if id(node) not in guarded and node.attr in POSIX_NAMES.get(_owner(node), ()):
                yield node.lineno, f"{_owner(node)}.{node.attr}"
            case ast.Call():
                if complaint := _call(node):
                    yield node.lineno, complaint
            case ast.Constant(value=str(text)) if text.startswith(FILE_NAMES) and id(node) not in documented:
                yield node.lineno, f"path {text[:40]!r}"


def _goes_on_without_module(handler: ast.ExceptHandler) -> bool:
    return isinstance(handler.type, ast.Name) and handler.type.id in ("ModuleNotFoundError", "ImportError")


def _asked_for(function: ast.AST) -> set[tuple[str, str]]:
    """The names (module, attribute) that a function asks for before it uses them."""
    found = set()
    for node in ast.walk(function):
        match node:
            case ast.Call(
                func=ast.Name(id="hasattr" | "getattr"),
                args=[ast.Name(id=module), ast.Constant(value=str(name)), *_],
            ):
                found.add((module, name))
    return found


def _owner(node: ast.Attribute) -> str:
    return node.value.id if isinstance(node.value, ast.Name) else ""


def _call(node: ast.Call) -> str:
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    shell = given.get("shell")
    if isinstance(shell, ast.Constant) and shell.value is True:
        return "a shell of the system"
    if None in given or "encoding" in given:
        return ""
    match node.func:
        case ast.Name(id="open"):
            place, name = 1, "open"
        case ast.Attribute(attr="open") if _owner(node.func) not in NOT_FILES:
            place, name = (1 if _owner(node.func) == "io" else 0), "open"
        case ast.Attribute(attr="read_text") if not node.args:
            return "read_text without encoding"
        case ast.Attribute(attr="write_text") if len(node.args) == 1:
            return "write_text without encoding"
        case _:
            return ""
    mode = given.get("mode", node.args[place] if len(node.args) > place else ast.Constant("r"))
    is_text = isinstance(mode, ast.Constant) and isinstance(mode.value, str) and "b" not in mode.value
    return f"{name} without encoding" if is_text else ""


def main() -> None:
    found = False
    for given in map(Path, sys.argv[1:]):
        for file in sorted(given.rglob("*.py")) if given.is_dir() else [given]:
            for line, complaint in mistakes(file.read_text(encoding="utf-8")):
                sys.stdout.write(f"{file}:{line}: {complaint}\n")
                found = True
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
