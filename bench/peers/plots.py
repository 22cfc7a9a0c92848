"""Draw what was measured as an SVG: a panel for each measure, a bar for each system, a line for the spread."""

import statistics
from html import escape

import report

COLUMNS = 2
PANEL_WIDTH, LABEL_WIDTH, BAR_WIDTH = 560, 160, 270
ROW_HEIGHT, TITLE_HEIGHT, MARGIN = 22, 34, 16
COLORS = {True: "#1f6feb", False: "#9aa4b2"}


def svg(systems, measurements, conditions):
    panels = []
    for measure in report.measures(measurements):
        rows = [(system, report.values(measurements, system.name, measure.name)) for system in systems]
        panels.append((measure, [(system, values) for system, values in rows if values]))
    height = max(TITLE_HEIGHT + ROW_HEIGHT * len(rows) for _, rows in panels) + MARGIN
    total = height * -(-len(panels) // COLUMNS) + MARGIN
    width = COLUMNS * PANEL_WIDTH + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {total}" width="{width}" height="{total}" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#1c2128">',
        f'<rect width="{width}" height="{total}" fill="#ffffff"/>',
    ]
    for number, (measure, rows) in enumerate(panels):
        x, y = MARGIN + number % COLUMNS * PANEL_WIDTH, MARGIN + number // COLUMNS * height
        parts += [f'<g transform="translate({x} {y})">', *panel(measure, rows, conditions), "</g>"]
    return "\n".join([*parts, "</svg>\n"])


def panel(measure, rows, conditions):
    title = report.label(measure, conditions) + (f" ({measure.unit})" if measure.unit else "")
    better = "more is better" if measure.more_is_better else "less is better"
    yield f'<text y="16" font-size="14" font-weight="600">{escape(title)}'
    yield f'<tspan dx="8" font-size="12" font-weight="400" fill="#57606a">{better}</tspan></text>'
    scale = BAR_WIDTH / (max(max(values) for _, values in rows) or 1)
    for position, (system, values) in enumerate(rows):
        median, low, high = (part(values) for part in (statistics.median, min, max))
        top = TITLE_HEIGHT + position * ROW_HEIGHT
        middle = top + ROW_HEIGHT / 2 - 3
        color = COLORS[system.name.startswith(report.REFERENCE)]
        text = f'dominant-baseline="central" y="{middle}"'
        yield f'<text {text} x="{LABEL_WIDTH - 8}" text-anchor="end">{escape(system.label)}</text>'
        yield (
            f'<rect x="{LABEL_WIDTH}" y="{top}" width="{max(1, median * scale):.1f}" height="{ROW_HEIGHT - 6}" '
            f'fill="{color}"/>'
        )
        if low != high:
            yield (
                f'<path d="M{LABEL_WIDTH + low * scale:.1f} {middle}H{LABEL_WIDTH + high * scale:.1f}" '
                'stroke="#1c2128" stroke-width="2"/>'
            )
        end = LABEL_WIDTH + high * scale + 8
        yield f'<text {text} x="{end:.1f}">{report.number(median, measure.digits)}</text>'
