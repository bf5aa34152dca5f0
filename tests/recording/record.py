#!/usr/bin/env python3
"""Records the README's first program: make recording. With --check it says whether
what is recorded is still what the README says.

Runs the commands of the README in a terminal, as they are there, and writes what
can be seen to first.cast (asciicast v2, for asciinema play) and to first.svg, which
shows it in the README. Only the pauses are not real: commands are typed, and read,
more slowly than they run.
"""

import fcntl
import html
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COLUMNS, ROWS = 100, 28
TYPED = 0.04  # seconds for a key
PROMPT = "\x1b[1;32m$\x1b[0m "
READ = 2.5  # seconds for the output of a command


def blocks(page, language):
    return re.findall(r"^```%s\n(.*?)^```$" % language, page, re.MULTILINE | re.DOTALL)


def play(command, directory, env):
    """Runs a command in a terminal and yields (seconds, output)."""
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    began = time.monotonic()
    process = subprocess.Popen(
        ["bash", "-c", command], cwd=directory, env=env, stdin=secondary, stdout=secondary, stderr=secondary, start_new_session=True
    )
    os.close(secondary)
    text = b""
    while True:
        try:
            more = os.read(primary, 65536)
        except OSError:  # EIO: nobody has the terminal any more
            break
        text += more
        # What ends within a character is shown with the rest of it.
        whole = text.decode("utf-8", "ignore")
        text = text[len(whole.encode()) :]
        yield time.monotonic() - began, whole
    process.wait()
    os.close(primary)


def script():
    """Returns the README's first program, and the commands that are recorded."""
    readme = (ROOT / "README.md").read_text()
    program = blocks(readme, "python")[0]
    lines = "".join(blocks(readme, "console")).splitlines()
    return program, ["cat " + program.split()[1]] + [c[2:] for c in lines if c.startswith("$ ")]


def record(directory):
    """Returns the events of a recording: [seconds, "o", text]."""
    program, commands = script()
    Path(directory, program.split()[1]).write_text(program)
    env = dict(os.environ, TERM="xterm-256color", PS1="$ ")
    env["PATH"] = "%s:%s" % (ROOT / "bin", env["PATH"])
    env.setdefault("CLUSTERRUN_DEVSERVER", str(ROOT / "bin" / "clusterrun-devserver"))
    for name in ["NO_COLOR", "TEMPORAL_ADDRESS"]:
        env.pop(name, None)
    env["CLUSTERRUN_STATE_DIR"] = str(Path(directory, "state"))
    env["PYTHONPATH"] = subprocess.check_output(["clusterrun", "task", "python", "--dir"], env=env, text=True).strip()
    events, now = [], 0.5
    for command in commands:
        events.append([now, "o", PROMPT])
        for key in command:
            now += TYPED
            events.append([now, "o", key])
        now += 0.3
        events.append([now, "o", "\r\n"])
        began = now
        for after, text in play(command, directory, env):
            now = began + after
            # Directories of this recording are nobody's business.
            events.append([now, "o", text.replace(str(directory), "~")])
        now += READ
    events.append([now, "o", ""])
    return [[round(now, 3), kind, text] for now, kind, text in events]


class Screen:
    """As much of a terminal as clusterrun uses."""

    SEQUENCE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|\x1b\]8;[^\x07\x1b]*(?:\x07|\x1b\\)|(.)", re.DOTALL)

    def __init__(self):
        self.lines = [[]]
        self.row = self.column = 0
        self.style = ""

    def write(self, text):
        for m in self.SEQUENCE.finditer(text):
            parameter, final, char = m.groups()
            if char == "\r":
                self.column = 0
            elif char == "\n":
                self.down()
            elif char:
                self.put(char)
            elif final == "m":
                self.style = "" if parameter in ("", "0") else parameter
            elif final == "K":
                del self.lines[self.row][self.column :]
            elif final == "A":
                self.row = max(0, self.row - int(parameter or 1))
            elif final == "J":
                del self.lines[self.row][self.column :]
                del self.lines[self.row + 1 :]
            elif final == "C":
                self.column += int(parameter or 1)

    def down(self):
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append([])

    def put(self, char):
        if self.column == COLUMNS:
            self.column = 0
            self.down()
        line = self.lines[self.row]
        line.extend([(" ", "")] * (self.column + 1 - len(line)))
        line[self.column] = (char, self.style)
        self.column += 1

    def visible(self):
        return tuple(tuple(line) for line in self.lines[-ROWS:])


COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#f2cc60", "34": "#79c0ff", "35": "#d2a8ff", "36": "#76e3ea"}


def attributes(style):
    codes = style.split(";")
    text = ""
    for code in codes:
        if code in COLOURS or "9" + code[1:] == code and "3" + code[1:] in COLOURS:
            text += ' fill="%s"' % COLOURS.get(code, COLOURS.get("3" + code[1:]))
    if "1" in codes:
        text += ' font-weight="bold"'
    if "2" in codes:
        text += ' opacity="0.6"'
    return text


def spans(line):
    """A line as SVG, with one element for each run of a style."""
    text = ""
    start = 0
    for i in range(1, len(line) + 1):
        if i == len(line) or line[i][1] != line[start][1]:
            part = html.escape("".join(c for c, _ in line[start:i]))
            look = attributes(line[start][1])
            text += "<tspan%s>%s</tspan>" % (look, part) if look else part
            start = i
    return text


def svg(events):
    """An SVG that shows the recording again and again, a frame for each change."""
    screen, frames = Screen(), []
    for now, _, text in events:
        screen.write(text)
        if frames and now - frames[-1][0] < 0.15:
            frames[-1] = (frames[-1][0], screen.visible())
        elif not frames or frames[-1][1] != screen.visible():
            frames.append((now, screen.visible()))
    end = events[-1][0]
    cell, line = 8.4, 18
    width, height = round(COLUMNS * cell) + 24, ROWS * line + 24
    # Equal lines are drawn once, and used by each frame that shows them.
    known, body, rules = {}, [], []
    for n, (began, lines) in enumerate(frames):
        until = frames[n + 1][0] if n + 1 < len(frames) else end
        uses = ""
        for row, content in enumerate(lines):
            if content:
                key = known.setdefault(content, "l%d" % len(known))
                uses += '<use href="#%s" y="%d"/>' % (key, row * line)
        shown = "%.2f%%{visibility:visible}%.2f%%{visibility:hidden}" % (began / end * 100, until / end * 100)
        if until == end:
            shown = "%.2f%%,100%%{visibility:visible}" % (began / end * 100)
        rules.append("@keyframes k%d{0%%{visibility:hidden}%s}#f%d{animation-name:k%d}" % (n, shown, n, n))
        body.append('<g id="f%d" class="f">%s</g>' % (n, uses))
    drawn = "".join('<text id="%s" xml:space="preserve">%s</text>' % (key, spans(content)) for content, key in known.items())
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="ui-monospace,Menlo,Consolas,monospace" font-size="14" fill="#e6edf3">\n'
        "<title>clusterrun runs a program on four processes; it fails, restarts, and hangs</title>\n"
        "<style>.f{visibility:hidden;animation:%.2fs step-end infinite}\n%s</style>\n"
        '<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>\n'
        '<defs>%s</defs>\n<g transform="translate(12 26)">\n%s\n</g>\n</svg>\n'
    ) % (width, height, end, "\n".join(rules), drawn, "\n".join(body))


def check():
    """Returns what is wrong with the files that are there."""
    _, *events = [json.loads(line) for line in (HERE / "first.cast").read_text().splitlines()]
    text = "".join(text for _, _, text in events)
    program, commands = script()
    shown = [part.split("\r\n")[0] for part in text.split(PROMPT)[1:]]
    if shown != commands:
        return "the commands of the README are others: %s" % commands
    if program.replace("\n", "\r\n") not in text:
        return "the program of the README is another"
    if (HERE / "first.svg").read_text() != svg(events):
        return "first.svg does not show first.cast"
    return ""


def main():
    if sys.argv[1:] == ["--check"]:
        wrong = check()
        sys.exit("%s; make recording" % wrong if wrong else 0)
    with tempfile.TemporaryDirectory() as directory:
        events = record(directory)
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "clusterrun", "env": {"TERM": "xterm-256color"}}
    (HERE / "first.cast").write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [header, *events]))
    (HERE / "first.svg").write_text(svg(events))


if __name__ == "__main__":
    main()
