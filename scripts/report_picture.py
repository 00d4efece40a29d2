#!/usr/bin/env python3
"""Makes the picture of the README from a page of `report parity`: the verdict, its evidence and the curves of both runs.

usage: scripts/report_picture.py reports/sample/parity.html > docs/parity.svg

Every word, mark and curve is taken from the page. The colours follow the reader's light or dark scheme, as on the page itself.
"""
import argparse
import html
import re
import sys
import textwrap

STYLE = """
text{font:15px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:#1b1f24}
.ground{fill:#fff;stroke:#dfe3e8}.mute{fill:#626b76;font-size:13px}.verdict{font-size:38px;font-weight:700;letter-spacing:-.5px}
.good,text.good{fill:#00795a}.warn,text.warn{fill:#a35f00}.bad,text.bad{fill:#b42318}.head{font-weight:600}
.plot path{fill:none;vector-effect:non-scaling-stroke;stroke-linejoin:round}
.grid,.axis,.rule{stroke:#dfe3e8;stroke-width:1;fill:none}.a{stroke:#0072b2;stroke-width:2}.b{stroke:#d55e00;stroke-width:2;stroke-dasharray:6 5}
@media (prefers-color-scheme:dark){text{fill:#e6e9ec}.ground{fill:#14171a;stroke:#2d333a}.mute{fill:#9aa4ae}
.good,text.good{fill:#3fc79a}.warn,text.warn{fill:#e8b04a}.bad,text.bad{fill:#ff8a7a}.grid,.axis,.rule{stroke:#2d333a}.a{stroke:#56b4e9}.b{stroke:#f0a13a}}
"""
WIDTH, LEFT, ROW, LINE = 880, 32, 26, 20
PLOT_LEFT, PLOT_WIDTH, PLOT_HEIGHT = 84, 764, 190


def words(markup):
    return html.unescape(re.sub(r"<[^>]*>", "", markup)).strip()


def found(pattern, page):
    match = re.search(pattern, page, re.S)
    if not match:
        sys.exit(f"report_picture.py: the page has nothing like {pattern}")
    return match


def main():
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page")
    page = open(parser.parse_args().page, encoding="utf-8").read()
    mood, verdict = found(r'<h1 class="verdict (\w+)">(.*?)</h1>', page).groups()
    reason = words(found(r'<p class="reason">(.*?)</p>', page)[1])
    sides = [words(side) for side in re.findall(r'<p class="name"><b class="side side-[ab]">[AB]</b>(.*?)</p>', page)]
    evidence = re.findall(r'<li><span class="m ?(\w*)"[^>]*>(.*?)</span><a[^>]*>(.*?)</a><span>(.*?)</span></li>', page)
    figure = found(r"<figcaption><b>Training loss</b>.*?</figure>", page)[0]
    curves = found(r'<svg viewBox="0 0 1000 1000"[^>]*>(.*?)</svg>', figure)[1]
    paths = re.findall(r'<path class="(grid|a|b)" d="([^"]*)"', curves)
    ys = re.findall(r'<span style="top:([\d.]+)%">(.*?)</span>', figure)
    xs = re.findall(r'<span(?: class="\w+")? style="left:([\d.]+)%">(.*?)</span>', figure)

    out = []

    def text(x, y, content, css="", anchor="start"):
        out.append(f'<text x="{x:g}" y="{y:g}" class="{css}" text-anchor="{anchor}">{html.escape(content)}</text>')

    text(LEFT, 58, words(verdict).replace("✓", "✓ ", 1), f"verdict {mood}")
    y = 88
    for line in textwrap.wrap(reason, 108):
        text(LEFT, y, line)
        y += LINE
    y += 14
    for css, mark, name, what in evidence:
        text(LEFT + 8, y, words(mark), {"note": "mute"}.get(css, css), "middle")
        text(LEFT + 26, y, words(name), "head")
        for line in textwrap.wrap(words(what), 88):
            text(LEFT + 160, y, line)
            y += LINE
        out.append(f'<path class="rule" d="M{LEFT} {y + 8.5 - LINE}H{WIDTH - LEFT}"/>')
        y += ROW - LINE
    top = y + 30
    text(LEFT, top - 12, "Training loss, nats", "head")
    for css, name, x in (("a", sides[0], 480), ("b", sides[1], 670)):
        out.append(f'<path class="{css}" fill="none" d="M{x} {top - 17}h28"/>')
        text(x + 36, top - 12, name.split(":")[0], "mute")
    out.append(f'<svg class="plot" x="{PLOT_LEFT}" y="{top}" width="{PLOT_WIDTH}" height="{PLOT_HEIGHT}" '
               'viewBox="0 0 1000 1000" preserveAspectRatio="none">')
    out += [f'<path class="{css}" d="{shape}"/>' for css, shape in paths]
    out.append("</svg>")
    bottom = top + PLOT_HEIGHT
    for at, label in ys:
        text(PLOT_LEFT - 10, top + PLOT_HEIGHT * float(at) / 100 + 4, words(label), "mute", "end")
    for at, label in xs:
        text(PLOT_LEFT + PLOT_WIDTH * float(at) / 100, bottom + 20, words(label), "mute", "middle")
    text(PLOT_LEFT + PLOT_WIDTH / 2, bottom + 38, "tokens", "mute", "middle")
    height = bottom + 56
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
          f'aria-label="{html.escape(words(verdict))}: {html.escape(reason)}">\n<style>{STYLE}</style>\n'
          f'<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>')
    print("\n".join(out))
    print("</svg>")


main()
