# SPDX-License-Identifier: Apache-2.0
"""Draws accuracy against bits: one line for each data set."""
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#6b4c9a", "#8c6d1f"]
WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 60, 190, 30, 50


def svg(accuracies, marks):
    """`accuracies`: of each data set, (mean, standard error) in percent at each of `marks`, None where there is none."""
    shown = [mean for values in accuracies.values() for mean, _ in filter(None, values)]
    low = 10 * (min([*shown, 90]) // 10)
    across = (WIDTH - LEFT - RIGHT) / max(1, len(marks) - 1)

    def x(place):
        return LEFT + across * place

    def y(percent):
        return TOP + (HEIGHT - TOP - BOTTOM) * (100 - percent) / (100 - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="13">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for percent in range(int(low), 101, 10):
        out.append(f'<line x1="{LEFT}" y1="{y(percent):.1f}" x2="{x(len(marks) - 1):.1f}" y2="{y(percent):.1f}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 8}" y="{y(percent) + 4:.1f}" text-anchor="end">{percent} %</text>')
    for place, mark in enumerate(marks):
        out.append(f'<text x="{x(place):.1f}" y="{HEIGHT - BOTTOM + 22}" text-anchor="middle">{mark}</text>')
    out.append(f'<text x="{(x(0) + x(len(marks) - 1)) / 2:.1f}" y="{HEIGHT - 8}" text-anchor="middle">bits of weights, features '
               'and activations</text>')
    for number, (name, values) in enumerate(accuracies.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = [(x(place), y(value[0]), value[1]) for place, value in enumerate(values) if value]
        out.append(f'<polyline points="{" ".join(f"{px:.1f},{py:.1f}" for px, py, _ in points)}" fill="none" stroke="{colour}" '
                   'stroke-width="2"/>')
        scale = y(0) - y(1)
        for px, py, error in points:
            out.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/><line x1="{px:.1f}" y1="{py - scale * error:.1f}" '
                       f'x2="{px:.1f}" y2="{py + scale * error:.1f}" stroke="{colour}"/>')
        row = TOP + 20 + 22 * number
        out.append(f'<line x1="{WIDTH - RIGHT + 20}" y1="{row}" x2="{WIDTH - RIGHT + 44}" y2="{row}" stroke="{colour}" stroke-width="2"/>'
                   f'<text x="{WIDTH - RIGHT + 52}" y="{row + 4}">{name}</text>')
    return "\n".join(out) + "\n</svg>\n"
