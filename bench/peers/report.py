"""Write what was measured as one Markdown table, with the conditions."""

import statistics
from typing import NamedTuple


class Measure(NamedTuple):
    name: str
    label: str
    unit: str
    digits: int = 0
    more_is_better: bool = False


MEASURES = [
    Measure("size", "Installed", "MB"),
    Measure("packages", "Packages", ""),
    Measure("start", "Start to first answer", "s", 2),
    Measure("memory", "Memory after the first answer", "MB"),
    Measure("ingest", "Ingest the book", "s", 1),
    Measure("ingest_memory", "Peak memory of the ingest", "MB"),
    Measure("one_client", "Search, 1 client, p50", "ms", 1),
    Measure("many_clients", "Search, {clients} clients, p50", "ms", 1),
    Measure("throughput", "Search, {clients} clients", "requests/s", more_is_better=True),
]
REFERENCE = "docent"


def measures(measurements):
    """The measures that have values, in order. Quality has one for each question set."""
    names = {measurement["measure"] for measurement in measurements}
    quality = [Measure(name, f"nDCG@10, {name.split(':')[1]}", "", 3, True) for name in sorted(names) if ":" in name]
    return [measure for measure in MEASURES + quality if measure.name in names]


def values(measurements, system, measure):
    """The values of a measure, one for each round."""
    matching = (m for m in measurements if m["system"] == system and m["measure"] == measure)
    return [m["value"] for m in matching]


def label(measure, conditions):
    return measure.label.format(clients=conditions[-1]["clients"])


def number(value, digits):
    return f"{value:,.{digits}f}"


def cell(own, reference, measure, is_reference):
    if not own:
        return "–"
    median = statistics.median(own)
    text = f"{number(median, measure.digits)} {measure.unit}".strip()
    low, high = (number(limit, measure.digits) for limit in (min(own), max(own)))
    if low != high:
        text += f" ({low}–{high})"
    if reference and not is_reference:
        text += f", **{ratio(median / statistics.median(reference))}**"
    return text


def ratio(value):
    """Three digits at most: 0.05×, 0.93×, 1.2×, 54×."""
    digits = 2 if value < 1 else 1 if value < 10 else 0
    return f"{value:.{digits}f}×"


def table(systems, measurements, conditions):
    systems = [system for system in systems if any(m["system"] == system.name for m in measurements)]
    lines = [
        "| | " + " | ".join(system.label for system in systems) + " | rounds |",
        "|---" * (len(systems) + 2) + "|",
    ]
    for measure in measures(measurements):
        reference = values(measurements, REFERENCE, measure.name)
        columns = [values(measurements, system.name, measure.name) for system in systems]
        cells = [
            cell(column, reference, measure, system.name == REFERENCE) for system, column in zip(systems, columns)
        ]
        rounds = max(map(len, columns))
        lines.append(f"| {label(measure, conditions)} | " + " | ".join(cells) + f" | {rounds} |")
    return "\n".join(lines)


def page(systems, measurements, conditions):
    """`conditions` has one entry for each run that measured something."""
    facts = "\n\n".join(map(facts_of_run, conditions))
    return f"""# Docent and its peers

Median over the rounds, in parentheses the smallest and the largest value, in bold the ratio to Docent.
Sizes and nDCG@10 do not vary and are measured once.

{table(systems, measurements, conditions)}

![Plots of the table](peers.svg)

## Conditions

{facts}
"""


def facts_of_run(conditions):
    return "\n".join(f"- {name.replace('_', ' ')}: {value}" for name, value in conditions.items())
