"""Tests of what can be wrong without being noticed: `python3 -m unittest discover bench/peers`."""

import http.server
import tempfile
import threading
import unittest
import xml.dom.minidom
from pathlib import Path

import load
import plots
import processes
import quality
import questions
import report
import systems


class Quality(unittest.TestCase):
    def test_a_relevant_page_in_second_place_is_discounted(self):
        self.assertAlmostEqual(quality.ndcg_of_one(["a", "b"], {"b": 1}), 0.6309, places=4)

    def test_pages_after_the_tenth_do_not_count(self):
        self.assertEqual(quality.ndcg_of_one(list("0123456789x"), {"x": 1}), 0)

    def test_all_relevant_pages_first_is_perfect(self):
        self.assertEqual(quality.ndcg_of_one(["b", "a"], {"a": 1, "b": 2}), 1)


class Questions(unittest.TestCase):
    def test_questions_are_distinct_and_in_the_same_order_for_every_system(self):
        with tempfile.TemporaryDirectory() as folder:
            page = "# Arms\n## Hook: The Elbow\n```\n# not a heading\n```\n"
            Path(folder, "arms.md").write_text(page)
            asked = questions.all_questions(folder)
        self.assertEqual(len(asked), len(set(asked)))
        self.assertIn("What is The Elbow?", asked)
        self.assertFalse([question for question in asked if "not a heading" in question])

        def first(number):
            iterator = questions.questions_of_round(asked, number)
            return [next(iterator) for _ in range(10)]

        self.assertEqual(first(1), first(1))
        self.assertNotEqual(first(1), first(2))


class Report(unittest.TestCase):
    measurements = [
        {"system": "docent", "measure": "start", "value": value} for value in (0.2, 0.1, 0.3)
    ] + [{"system": "txtai", "measure": "start", "value": 10.0}]
    conditions = [{"clients": 50}]

    def test_a_cell_has_the_median_the_spread_and_the_ratio(self):
        table = report.table(systems.all_systems(None), self.measurements, self.conditions)
        self.assertIn("| Start to first answer | 0.20 s (0.10–0.30) | 10.00 s, **50×** | 3 |", table)

    def test_plots_are_well_formed(self):
        drawn = plots.svg(systems.all_systems(None), self.measurements, self.conditions)
        self.assertIn("Start to first answer (s)", xml.dom.minidom.parseString(drawn).toxml())


class Load(unittest.TestCase):
    system = systems.Peer("double", "Double")

    def test_every_question_is_asked_once(self):
        asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                asked.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(503 if b"broken" in asked[-1] else 200)
                self.send_header("Content-Length", "5000")
                self.end_headers()
                self.wfile.write(b"x" * 5000)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.handle_error = lambda *_: None  # clients go away in the middle of a response
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            port = server.server_address[1]
            median, throughput = load.measure(self.system, port, map(str, range(10**6)), 3, 0.2)
            self.assertGreater(median, 0)
            self.assertGreater(throughput, 0)
            self.assertEqual(len(asked), len(set(asked)))
            with self.assertRaises(SystemExit):
                load.measure(self.system, port, iter(["fine", "broken"] * 100), 1, 5)
        finally:
            server.shutdown()
            server.server_close()


class Processes(unittest.TestCase):
    def test_a_server_that_does_not_start_is_an_error_and_leaves_nothing_behind(self):
        system = systems.Peer("double", "Double", stack="", script="pages.py")
        system.serve_command = lambda index, port: ["sh", "-c", "echo broken; exit 3"]
        with tempfile.TemporaryDirectory() as work, self.assertRaisesRegex(SystemExit, "broken"):
            with processes.serving(system, Path(work), "index", "question"):
                pass

    def test_a_server_is_stopped_when_the_block_fails(self):
        system = systems.Peer("double", "Double")
        answer = '{"results": [{"page": "a"}]}'
        program = (
            "import http.server,sys\n"
            "class H(http.server.BaseHTTPRequestHandler):\n"
            f"  def do_POST(s): s.send_response(200); s.end_headers(); s.wfile.write(b'{answer}')\n"
            "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), H).serve_forever()"
        )
        system.serve_command = lambda index, port: ["python3", "-c", program, str(port)]
        with tempfile.TemporaryDirectory() as work:
            with self.assertRaises(ZeroDivisionError):
                with processes.serving(system, Path(work), "index", "question") as server:
                    process = server.process
                    self.assertGreater(server.memory_after_first_answer, 1)
                    raise ZeroDivisionError
        self.assertIsNotNone(process.poll())


if __name__ == "__main__":
    unittest.main()
