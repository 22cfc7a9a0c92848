#!/usr/bin/env python3
"""Compare Docent with Python stacks on the same book and questions, in turns, on this machine.

Writes OUT/peers.md, OUT/peers.svg and OUT/measurements.jsonl. README.md says what is measured and how.
Runs on Linux and needs Python 3.11 or later, PyPI at the first run, and a release build of Docent.
"""

import argparse
import datetime
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import load
import plots
import processes
import quality
import questions
import report
import systems

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = REPOSITORY / "target/release/docent"
PARTS = ["install", "ingest", "search", "quality"]


def main():
    arguments = parse_arguments()
    # So that servers are stopped when this program is.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    everything = systems.all_systems(arguments.docent, arguments.peer_threads)
    chosen = [system for system in everything if not arguments.systems or system.name in arguments.systems]
    for system in chosen:
        system.prepare(arguments.work)
    arguments.out.mkdir(parents=True, exist_ok=True)
    run = Run(arguments, chosen)
    try:
        run.measure()
    finally:
        run.write()


def parse_arguments():
    names = [system.name for system in systems.all_systems(None)]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)

    def flag(name, help, **options):
        parser.add_argument(name, help=help, **options)

    flag("--books", "folder of Markdown to ingest and search", type=resolved, required=True, metavar="DIR")
    flag("--out", "folder for the results", type=resolved, required=True, metavar="DIR")
    flag("--docent", "default: target/release/docent", type=resolved, default=PROGRAM, metavar="FILE")
    flag("--work", "folder that keeps environments and indexes; default: target/peers",
         type=resolved, default=REPOSITORY / "target/peers", metavar="DIR")
    flag("--quality", "question sets in the BEIR layout", type=resolved, nargs="*", default=[], metavar="DIR")
    flag("--rounds", "default: 5; 0, with --append, only writes the report again", type=int, default=5, metavar="N")
    flag("--ingest-rounds", "ingest only in the first N rounds", type=int, metavar="N")
    flag("--seconds", "duration of each search measurement; default: 3", type=float, default=3.0, metavar="S")
    flag("--clients", "number of clients at the same time; default: 50", type=int, default=50, metavar="N")
    flag("--peer-threads", "threads a Python server uses for one question; default: 1; 0: as the library chooses",
         type=int, default=1, metavar="N")
    flag("--only", "measure only this: " + ", ".join(PARTS), nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    flag("--systems", "measure only these: " + ", ".join(names), nargs="+", choices=names, metavar="NAME")
    flag("--append", "add to the measurements in OUT", action="store_true")
    return parser.parse_args()


def resolved(path):
    return Path(path).resolve()


class Run:
    """The measurements of this call, which are written down one by one, so that a failure loses none."""

    def __init__(self, arguments, chosen):
        self.arguments = arguments
        self.systems = chosen
        self.path = arguments.out / "measurements.jsonl"
        if not arguments.append:
            self.path.unlink(missing_ok=True)
        self.begun = time.monotonic()

    def measure(self):
        busy, before = Processors(), len(self.recorded())
        try:
            if self.arguments.rounds:
                self.measure_once()
            self.measure_rounds()
        finally:
            if len(self.recorded()) > before:
                self.record_conditions(busy.share_of_others())

    def measure_once(self):
        if "install" in self.arguments.only:
            for system in self.systems:
                for measure, value in system.installed().items() if system.ingests else ():
                    self.record(system, measure, value)
        if "quality" in self.arguments.only:
            for folder in self.arguments.quality:
                self.measure_quality(folder)

    def measure_rounds(self):
        only, rounds = self.arguments.only, self.arguments.rounds
        asked = questions.all_questions(self.arguments.books)
        ingest_rounds = rounds if self.arguments.ingest_rounds is None else self.arguments.ingest_rounds
        for number in range(rounds):
            # Each system is first, second, third … about equally often.
            turn = number % len(self.systems)
            for system in self.systems[turn:] + self.systems[:turn]:
                if "ingest" in only and system.ingests and number < ingest_rounds:
                    self.measure_ingest(system)
                if "search" in only:
                    self.measure_search(system, questions.questions_of_round(asked, number))

    def measure_ingest(self, system):
        seconds, memory = self.ingest(system, self.arguments.books)
        self.record(system, "ingest", seconds)
        self.record(system, "ingest_memory", memory)

    def measure_search(self, system, asked):
        index, arguments = self.index(system, self.arguments.books), self.arguments
        with processes.serving(system, arguments.work, index, next(asked)) as server:
            self.record(system, "start", server.seconds_to_first_answer)
            self.record(system, "memory", server.memory_after_first_answer)
            median, _ = load.measure(system, server.port, asked, 1, arguments.seconds)
            self.record(system, "one_client", median)
            median, throughput = load.measure(system, server.port, asked, arguments.clients, arguments.seconds)
            self.record(system, "many_clients", median)
            self.record(system, "throughput", throughput)

    def measure_quality(self, folder):
        first, *_ = quality.read_questions(folder / "queries.jsonl").values()
        for system in self.systems:
            if system.name == "docent-answer":
                continue  # an answer has too few pages
            index = self.index(system, folder / "corpus.jsonl.gz")
            with processes.serving(system, self.arguments.work, index, first) as server:
                self.record(system, f"ndcg:{folder.name}", quality.ndcg(system, server.port, folder))

    def index(self, system, book):
        """The folder with the index of a book, which is made if it does not exist."""
        index = self.index_path(system, book)
        if not index.exists():
            print(f"{system.label} ingests {book} (not measured)", flush=True)
            self.ingest(system, book)
        return index

    def ingest(self, system, book):
        """Ingests into a new folder, which then replaces the index that searches use."""
        index = self.index_path(system, book)
        index.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=index.parent) as folder:
            fresh = Path(folder) / "index"
            measured = processes.ingest(system, self.arguments.work, book, fresh)
            shutil.rmtree(index, ignore_errors=True)
            fresh.rename(index)
        return measured

    def index_path(self, system, book):
        name = f"{system.index_name}-{systems.digest(str(book).encode())}-{system.fingerprint()}"
        return self.arguments.work / "indexes" / name

    def record(self, system, measure, value):
        self.append({"system": system.name, "measure": measure, "value": value})
        elapsed = time.monotonic() - self.begun
        print(f"{elapsed:6.0f} s  {system.label:24} {measure:16} {value:,.3f}", flush=True)

    def record_conditions(self, share_of_others):
        self.append({
            "date": datetime.date.today().isoformat(),
            "machine": f"{processor()}, {os.cpu_count()} processors, {memory():.0f} GB",
            "software": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
            "docent": version(self.arguments.docent),
            "peers": ", ".join(requirements()),
            "book": f"{self.arguments.books.name}, {len(questions.read_pages(self.arguments.books))} pages",
            "clients": self.arguments.clients,
            "measured": ", ".join(self.arguments.only),
            "rounds": self.arguments.rounds,
            "duration": f"{(time.monotonic() - self.begun) / 60:.1f} minutes",
            "processor_time_used_by_other_programs": f"{share_of_others:.0%}",
        })

    def append(self, entry):
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")

    def recorded(self):
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]

    def write(self):
        entries = self.recorded()
        measurements = [entry for entry in entries if "measure" in entry]
        conditions = [entry for entry in entries if "measure" not in entry]
        if not measurements or not conditions:
            print("nothing was measured")
            return
        everything = systems.all_systems(None)
        out = self.arguments.out
        (out / "peers.md").write_text(report.page(everything, measurements, conditions), encoding="utf-8")
        (out / "peers.svg").write_text(plots.svg(everything, measurements, conditions), encoding="utf-8")
        print(f"wrote {out / 'peers.md'} and {out / 'peers.svg'}")


class Processors:
    """Which share of the processors programs other than this one and its children use."""

    def __init__(self):
        self.before = self.now()

    def share_of_others(self):
        total, busy, own = (after - before for after, before in zip(self.now(), self.before))
        return max(0.0, busy - own) / total if total else 0.0

    @staticmethod
    def now():
        ticks = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        user, nice, system, idle, waiting, *rest = ticks
        own = sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK")
        return sum(ticks), sum(ticks) - idle - waiting, own


def processor():
    names = (line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    return next(names, platform.machine()).split(": ")[-1]


def memory():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9


def version(docent):
    return subprocess.run([docent, "--version"], capture_output=True, text=True, check=True).stdout.strip()


def requirements():
    """The pinned packages of all stacks."""
    lines = {line for path in systems.environments.STACKS.glob("*.txt") for line in path.read_text().splitlines()}
    return sorted(line.replace("==", " ") for line in lines if line and not line.startswith("#"))


if __name__ == "__main__":
    main()
