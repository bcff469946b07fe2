# SPDX-License-Identifier: Apache-2.0
"""Draws how many times as fast as cuSPARSE products are, matrix by matrix: a dot for each width, a panel for each precision."""
import math

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#6b4c9a", "#8c6d1f"]
WIDTH, PANEL = 900, 260
LEFT, RIGHT, TOP, BETWEEN = 60, 110, 34, 60
TICKS = [0.5, 1, 2, 4, 8, 16, 32]


def panel(title, speedups, top, low, high):
    """`speedups`: of each width, {matrix: times as fast}. Matrices come from the slowest to the fastest, over all widths."""
    matrices = {name for values in speedups.values() for name in values}

    def mean_log(name):
        values = [math.log(of[name]) for of in speedups.values() if name in of]
        return sum(values) / len(values)

    places = {name: place for place, name in enumerate(sorted(matrices, key=lambda name: (mean_log(name), name)))}
    across = (WIDTH - LEFT - RIGHT) / max(1, len(places))

    def y(times):
        return top + PANEL * math.log(high / times) / math.log(high / low)

    yield f'<text x="{LEFT}" y="{top - 10}" font-weight="bold">{title}</text>'
    for tick in (tick for tick in TICKS if low <= tick <= high):
        stroke = "#555" if tick == 1 else "#ddd"
        yield (f'<line x1="{LEFT}" y1="{y(tick):.1f}" x2="{WIDTH - RIGHT}" y2="{y(tick):.1f}" stroke="{stroke}"/>'
               f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g} ×</text>')
    for number, (width, values) in enumerate(speedups.items()):
        colour = COLOURS[number % len(COLOURS)]
        dots = "".join(f'<circle cx="{LEFT + across * (places[name] + 0.5):.1f}" cy="{y(times):.1f}" r="3"><title>{name}, {width}: '
                       f'{times:.2f}</title></circle>' for name, times in values.items())
        yield f'<g fill="{colour}">{dots}</g>'
        row = top + 14 + 22 * number
        yield (f'<circle cx="{WIDTH - RIGHT + 20}" cy="{row}" r="4" fill="{colour}"/>'
               f'<text x="{WIDTH - RIGHT + 32}" y="{row + 4}">{width} wide</text>')


def svg(panels):
    """`panels`: of each title, {width: {matrix: times as fast as cuSPARSE}}."""
    shown = [times for speedups in panels.values() for values in speedups.values() for times in values.values()]
    low = max((tick for tick in TICKS if tick <= min([*shown, 1])), default=TICKS[0])
    high = max([*shown, 8]) * 1.1
    height = TOP + len(panels) * (PANEL + BETWEEN)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
           'font-family="sans-serif" font-size="13">', f'<rect width="{WIDTH}" height="{height}" fill="white"/>']
    for number, (title, speedups) in enumerate(panels.items()):
        out += panel(title, speedups, TOP + number * (PANEL + BETWEEN), low, high)
    return "\n".join(out) + "\n</svg>\n"
