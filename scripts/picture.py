#!/usr/bin/env python3
"""Turns a terminal screen into an SVG picture.

    tmux capture-pane -e -p -t SESSION | scripts/picture.py > docs/console.svg

Reads text with SGR escape sequences (16 colours, 256 colours, truecolour, bold, dim, reverse, underline) on standard
input and writes the picture on standard output. Needs nothing but Python 3.
"""
import html
import re
import sys
import unicodedata

BASE = ["#1c1f26", "#d7665a", "#8fbf7f", "#d9b65c", "#6f9fd8", "#b98fd0", "#6fbfc4", "#c9ccd3",
        "#6b7280", "#ef8a80", "#a9d69b", "#efd38a", "#93bbec", "#d0aee4", "#96d8dc", "#f1f3f6"]
FOREGROUND, BACKGROUND = "#c9ccd3", "#14161b"
CELL, LINE, SIZE = 8.4, 18, 14


def colour(index):
    if index < 16:
        return BASE[index]
    if index < 232:
        index -= 16
        steps = [0, 95, 135, 175, 215, 255]
        return "#%02x%02x%02x" % (steps[index // 36], steps[index // 6 % 6], steps[index % 6])
    level = 8 + (index - 232) * 10
    return "#%02x%02x%02x" % (level, level, level)


def apply(style, codes):
    codes = [int(c) if c else 0 for c in codes]
    while codes:
        code = codes.pop(0)
        if code == 0:
            style.clear()
        elif code in (1, 2, 4, 7):
            style[code] = True
        elif code in (22, 24, 27):
            for off in {22: (1, 2), 24: (4,), 27: (7,)}[code]:
                style.pop(off, None)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style["fg"] = BASE[code - 30 if code < 90 else code - 82]
        elif 40 <= code <= 47 or 100 <= code <= 107:
            style["bg"] = BASE[code - 40 if code < 100 else code - 92]
        elif code in (38, 48) and codes:
            kind = codes.pop(0)
            if kind == 5:
                value = colour(codes.pop(0))
            else:
                value = "#%02x%02x%02x" % tuple(codes[:3])
                del codes[:3]
            style["fg" if code == 38 else "bg"] = value
        elif code == 39:
            style.pop("fg", None)
        elif code == 49:
            style.pop("bg", None)


def runs(line, style):
    """Yields (column, cells, text, style) for stretches of one style."""
    column, text, start = 0, "", 0
    for piece in re.split(r"(\x1b\[[0-9;:]*m)", line):
        match = re.fullmatch(r"\x1b\[([0-9;:]*)m", piece)
        if match:
            if text:
                yield start, column - start, text, dict(style)
            text, start = "", column
            apply(style, re.split("[;:]", match.group(1)))
        else:
            for char in piece:
                text += char
                column += 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
    if text:
        yield start, column - start, text, dict(style)


def main():
    lines = sys.stdin.read().rstrip("\n").split("\n")
    plain = [re.sub(r"\x1b\[[0-9;:]*m", "", line) for line in lines]
    width, height = max(map(len, plain)) * CELL + 24, len(lines) * LINE + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
           f'font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="{SIZE}">',
           f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>']
    style = {}
    for row, line in enumerate(lines):
        y = 12 + row * LINE
        for column, cells, text, s in runs(line, style):
            fg, bg = s.get("fg", FOREGROUND), s.get("bg")
            if 7 in s:
                fg, bg = bg or BACKGROUND, fg
            x, wide = 12 + column * CELL, cells * CELL
            if bg:
                out.append(f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{LINE}" fill="{bg}"/>')
            if text.strip():
                extra = (' font-weight="bold"' if 1 in s else "") + (' opacity="0.7"' if 2 in s else "")
                extra += ' text-decoration="underline"' if 4 in s else ""
                out.append(f'<text x="{x:.1f}" y="{y + 13}" fill="{fg}" xml:space="preserve" textLength="{wide:.1f}" '
                           f'lengthAdjust="spacingAndGlyphs"{extra}>{html.escape(text)}</text>')
    out.append("</svg>")
    print("\n".join(out))


main()
