"""The judges of ci/export: ci/export.py judge|soak|cost QUIPU."""

import gzip
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

task, quipu = sys.argv[1:3]
quipu = os.path.abspath(quipu)
work = pathlib.Path(tempfile.mkdtemp(prefix="quipu-export-"))
passed, failed = 0, 0
children = []

# Faults and context switches at a rate that the clock sets, in a control group of its own.
LOAD = """
import mmap, time
due = time.monotonic()
while True:
    for _ in range(2):
        pages = mmap.mmap(-1, 100 * 4096)
        for at in range(0, 100 * 4096, 4096):
            pages[at] = 1
        pages.close()
    due += 0.01
    time.sleep(max(0, due - time.monotonic()))
"""


def check(name, is_right, why=""):
    global passed, failed
    if is_right:
        passed += 1
    else:
        failed += 1
        print(f"FAIL {name}: {why}", flush=True)


def skip(name, why):
    print(f"SKIP {name}: {why}", flush=True)


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def start(*command, **options):
    log = open(work / f"log-{len(children)}", "w+")
    child = subprocess.Popen(command, stdout=log, stderr=log, **options)
    child.log = log
    children.append(child)
    return child


def said(child):
    child.log.flush()
    return pathlib.Path(child.log.name).read_text()


def end(child):
    """Asks a process to end, and returns the seconds that it took."""
    begun = time.monotonic()
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(20)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    return time.monotonic() - begun


def get(port, path="/metrics", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def wait_for(what, seconds=15):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            found = what()
            if found:
                return found
        except OSError:
            pass
        time.sleep(0.05)
    return None


def cgroup_mount():
    unified = None
    for line in open("/proc/self/mounts"):
        _, place, kind, options = line.split()[:4]
        if kind == "cgroup" and "perf_event" in options.split(","):
            return pathlib.Path(place)
        if kind == "cgroup2" and unified is None:
            unified = pathlib.Path(place)
    return unified


def make_cgroup(name):
    """Makes a control group, and returns its folder; none where that is not possible."""
    mount = cgroup_mount()
    try:
        folder = mount / name
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.procs").open("w").close()
        return folder
    except (OSError, TypeError):
        return None


def samples(text):
    """The samples of a text, by name and labels."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            series, value = line.rsplit(" ", 1)
            found[series] = float(value)
    return found


def value(text, name):
    """The value of the one series of a name, whatever its labels are."""
    found = [value for series, value in samples(text).items() if series.split("{")[0] == name]
    return found[0] if found else None


class Monotone:
    """Counters that are looked at again and again."""

    def __init__(self):
        self.last, self.fallen = {}, []

    def look(self, text):
        for series, value in samples(text).items():
            if "_total{" in series or series.endswith("_total"):
                if value < self.last.get(series, 0):
                    self.fallen.append(f"{series}: {self.last[series]} then {value}")
                self.last[series] = value


class Receiver:
    """A receiver of OpenTelemetry that keeps what each point is: its metric, labels and time."""

    def __init__(self, port):
        self.port, self.points, self.starts, self.resource = port, [], {}, {}
        self.server = None

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, *_):
        self.down()

    def up(self):
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service

        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = service.ExportMetricsServiceRequest.FromString(body)
                receiver.take(request)
                answer = service.ExportMetricsServiceResponse().SerializeToString()
                self.send_response(200 if self.path == "/v1/metrics" else 404)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        http.server.ThreadingHTTPServer.allow_reuse_address = True
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def down(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
        self.server = None

    def take(self, request):
        for resource in request.resource_metrics:
            self.resource = {a.key: a.value.string_value for a in resource.resource.attributes}
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    data = metric.sum if metric.HasField("sum") else metric.gauge
                    for point in data.data_points:
                        labels = tuple(sorted((a.key, a.value.string_value) for a in point.attributes))
                        value = point.as_int if point.HasField("as_int") else point.as_double
                        self.points.append((metric.name, labels, point.time_unix_nano, value))
                        self.starts.setdefault((metric.name, labels), set()).add(point.start_time_unix_nano)


def judge_rates(port, group, load):
    """Prometheus has the rates that `quipu stat` counts in the same time."""
    if not shutil.which("prometheus"):
        return skip("Prometheus", "Debian's package prometheus cannot be had")
    own = free_port()
    (work / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
        f"scrape_configs: [{{job_name: quipu, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]\n"
    )
    prometheus = start(
        "prometheus", f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/tsdb",
        f"--web.listen-address=127.0.0.1:{own}",
    )  # fmt: skip

    def query(text, at=None):
        values = {"query": text} | ({"time": at} if at else {})
        url = f"http://127.0.0.1:{own}/api/v1/query?{urllib.parse.urlencode(values)}"
        return json.load(urllib.request.urlopen(url, timeout=10))["data"]["result"]

    wait_for(lambda: query('up{job="quipu"} == 1'), 30)
    time.sleep(2)
    span = 40
    events = "page-faults,context-switches"
    begun = time.time()
    counted = subprocess.run(
        [quipu, "stat", "-a", "-x,", "-e", events, "--for-each-cgroup", group, "--", "sleep", str(span)],
        capture_output=True, text=True,
    )  # fmt: skip
    ended = time.time()
    lines = [line.split(",") for line in counted.stderr.splitlines() if not line.startswith("#")]
    counts = {line[2]: float(line[0]) for line in lines if len(line) > 3}
    time.sleep(1.5)
    selector = f'{{target="cgroup",cgroup="/{group}"}}'
    for event, name in [("page-faults", "page_faults"), ("context-switches", "context_switches")]:
        series = f"quipu_{name}_total{selector}"
        found = query(f"rate({series}[{span}s])", ended)
        rate = float(found[0]["value"][1]) if found else 0.0
        expected = counts.get(event, 0.0) / (ended - begun)
        off = abs(rate / expected - 1) if expected else 1
        print(f"{event}: rate() {rate:.1f}/s, quipu stat {expected:.1f}/s, {off * 100:.2f} % apart")
        check(f"rate of {event}", off <= 0.01, counted.stderr)
    lost = query('count_over_time((up{job="quipu"} == 0)[1m:1s])')
    check("each scrape is taken", not lost, lost)
    check("the load ran", load.poll() is None)
    # What the dashboard asks for; this machine may have no cycles.
    board = json.loads(pathlib.Path("packaging/grafana/quipu.json").read_text())
    for panel in board["panels"]:
        for target in panel["targets"]:
            text = target["expr"].replace("$__rate_interval", "30s").replace("$instance", ".*")
            needs = "quipu_cycles" in text or "errors" in text or "process|user" in text
            check(f"the panel {panel['title']}", query(text) or needs, text)
    end(prometheus)


def judge_text(port, monotone):
    """Every scrape is what the parsers and the linter take."""
    try:
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict
        from prometheus_client.parser import text_string_to_metric_families as older
    except ImportError:
        strict = older = None
        skip("prometheus-client's parsers", "pip cannot install it")
    for _ in range(30):
        answer, body = get(port, Accept="application/openmetrics-text; version=1.0.0", Accept_Encoding="gzip")
        check("gzip", answer.headers["Content-Encoding"] == "gzip", answer.headers)
        text = gzip.decompress(body).decode()
        check("the type of OpenMetrics", answer.headers["Content-Type"].startswith("application/openmetrics-text"))
        monotone.look(text)
        if strict:
            families = list(strict(text))
            check("families", any(f.name == "quipu_page_faults" and f.type == "counter" for f in families), text)
        time.sleep(0.12)
    answer, body = get(port)
    text = body.decode()
    check("Prometheus's own text by default", answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
    if older:
        check("families of the older text", any(f.name == "quipu_page_faults" for f in older(text)))
    if shutil.which("promtool"):
        linted = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        check("promtool check metrics", linted.returncode == 0 and not (linted.stdout + linted.stderr), linted)
        rules = subprocess.run(["promtool", "check", "rules", "packaging/prometheus/quipu.rules.yml"], capture_output=True, text=True)
        check("promtool check rules", rules.returncode == 0, rules)
    else:
        skip("promtool", "Debian's package prometheus cannot be had")
    return text


def judge_clients(port):
    """Many clients, slow ones, and those that speak no HTTP."""
    slow = []
    for _ in range(100):
        client = socket.create_connection(("127.0.0.1", port))
        client.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
        slow.append(client)
    # Some have sent all and read nothing.
    for client in slow[:50]:
        client.send(b"\r\n" * 1 + b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
    statuses, times = [], []

    def client():
        begun = time.monotonic()
        statuses.append(get(port)[0].status)
        times.append(time.monotonic() - begun)

    before = value(get(port)[1].decode(), "quipu_reads_total")
    begun = time.monotonic()
    threads = [threading.Thread(target=client) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - begun
    reads = value(get(port)[1].decode(), "quipu_reads_total") - before
    check("100 clients are answered", statuses == [200] * 100, statuses)
    check("slow clients hold nobody up", max(times, default=99) < 5, times)
    # One in each tenth of a second, those of the interval among them.
    check("reads are shared", reads <= took * 10 + took + 3, f"{reads} in {took} s")
    print(f"100 clients beside 100 slow ones: {took:.2f} s, {reads:.0f} reads")
    for client in slow:
        client.close()
    for words, status in [
        (b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 40000 + b"\r\n\r\n", b"431"),
        (b"GET /metrics HTTP/1.1\r\n" + b"X: 1\r\n" * 200 + b"\r\n", b"431"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and so on\r\n\r\n", b"400"),
        (b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", b"405"),
        (b"GET /other HTTP/1.1\r\nHost: x\r\n\r\n", b"404"),
    ]:
        with socket.create_connection(("127.0.0.1", port), timeout=15) as client:
            try:
                client.sendall(words)
                answer = client.recv(100)
            except ConnectionResetError:
                answer = b"HTTP/1.1 " + status
            check(f"the status {status.decode()}", status in answer.split(b"\r\n")[0], answer)
    check("all goes on", get(port)[0].status == 200)


def judge_textfile(folder):
    """node_exporter serves the file."""
    if not shutil.which("prometheus-node-exporter"):
        return skip("node_exporter", "Debian's package prometheus-node-exporter cannot be had")
    own = free_port()
    exporter = start(
        "prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
        f"--collector.textfile.directory={folder}", f"--web.listen-address=127.0.0.1:{own}",
    )  # fmt: skip
    text = wait_for(lambda: get(own)[1].decode())
    found = samples(text or "")
    check("node_exporter serves the file", any(s.startswith("quipu_page_faults_total{") for s in found), text)
    check("node_exporter finds no error", found.get("node_textfile_scrape_error") == 0, text)
    end(exporter)


def judge_points(receiver, exporter):
    """Each point comes once, and none is missing."""
    keys = [point[:3] for point in receiver.points]
    check("points came", len(keys) > 50, len(keys))
    check("each point once", len(set(keys)) == len(keys), f"{len(keys) - len(set(keys))} twice")
    times = sorted({point[2] for point in receiver.points if point[0] == "quipu_reads"})
    gaps = [(b - a) / 1e9 for a, b in zip(times, times[1:])]
    # The last comes when it ends.
    check("no interval is missing", max(gaps, default=99) < 1.9, gaps)
    sums = {}
    for name, labels, at, value in sorted(receiver.points, key=lambda p: p[2]):
        if name in ("quipu_page_faults", "quipu_task_clock"):
            check_quietly = value >= sums.get((name, labels), 0)
            sums[name, labels] = value
            if not check_quietly:
                check("sums do not go back", False, (name, labels, at, value))
    starts = [s for key, s in receiver.starts.items() if key[0] == "quipu_page_faults"]
    check("each sum has one start", starts and all(len(s) == 1 for s in starts), starts)
    host = receiver.resource.get("host.name")
    check("the resource is this host", host == socket.gethostname() and receiver.resource.get("rack") == "a7", receiver.resource)
    check("a receiver that is away is told", said(exporter).count("cannot send to") == 1, said(exporter))
    check("no point is lost", "are lost" not in said(exporter), said(exporter))
    print(f"OpenTelemetry: {len(keys)} points of {len(times)} intervals, each once")


def judge_failures(port):
    """What cannot work is told, and what else can goes on."""
    taken = subprocess.run([quipu, "export", "--listen", str(port)], capture_output=True, text=True, timeout=20)
    check("a taken port", taken.returncode == 125 and "another program listens there" in taken.stderr, taken)
    if os.geteuid() == 0:
        small = work / "small"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small]).returncode == 0:
            judge_full_disk(small)
            subprocess.run(["umount", small])
        else:
            skip("a full disk", "no file system can be mounted here")
    else:
        skip("a full disk", "only root can mount a small file system")
    own, down = free_port(), free_port()
    exporter = start(quipu, "export", "-e", "page-faults,NO_SUCH_EVENT", "--listen", str(own), "--otlp", f"http://127.0.0.1:{down}", "--interval", "1")
    text = wait_for(lambda: get(own)[1].decode())
    time.sleep(2.5)
    found = samples(get(own)[1].decode())
    series = 'quipu_event_errors_total{event="NO_SUCH_EVENT",reason="event_not_supported"}'
    check("an event that does not exist", found.get(series), text)
    check("the others go on", any(s.startswith("quipu_page_faults_total{") for s in found), found)
    check("it is said once", said(exporter).count("NO_SUCH_EVENT is not counted") == 1, said(exporter))
    took = end(exporter)
    check("it ends at once while the endpoint is down", exporter.returncode == 0 and took < 3, took)
    check("what is lost is told", "points are lost" in said(exporter), said(exporter))


def judge_full_disk(small):
    os.chmod(small, 0o777)
    own = free_port()
    exporter = start(quipu, "export", "-e", "page-faults", "--listen", str(own), "--textfile", str(small), "--interval", "1")
    file = small / "quipu.prom"
    wait_for(file.exists)
    with open(small / "filler", "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(b"x" * 1024)
        except OSError:
            pass
    wait_for(lambda: "cannot write quipu.prom" in said(exporter), 5)
    check("a full disk is said", said(exporter).count("No space left") == 1, said(exporter))
    whole = file.read_text()
    check("the file stays whole", whole.endswith("\n") and "quipu_up 1" in whole, whole)
    check("no pieces are left", not list(small.glob(".quipu-*")), list(small.iterdir()))
    # Not the read of which the file was to be.
    time.sleep(0.3)
    failed = samples(get(own)[1].decode()).get('quipu_textfile_writes_total{outcome="failed"}', 0)
    check("failures are counted", failed >= 1, failed)
    (small / "filler").unlink()
    before = file.stat().st_mtime_ns
    check("it is written again", wait_for(lambda: file.stat().st_mtime_ns > before, 5))
    end(exporter)


def config(group):
    return f"""
interval = 1
events = ["page-faults", "context-switches", "task-clock"]
[labels]
rack = "a7"
[[target]]
cpus = "all"
by = "cpu"
[[target]]
cgroups = "/{group}*"
most = 5000
[[target]]
processes = "python3*"
"""


def judge():
    group = f"quipu-judge-{os.getpid()}"
    folder = make_cgroup(group)
    load = None
    if folder:
        load = start(sys.executable, "-c", LOAD)
        (folder / "cgroup.procs").write_text(str(load.pid))
    textfiles = work / "textfiles"
    textfiles.mkdir()
    # Whoever it becomes has to come here.
    os.chmod(work, 0o755)
    os.chmod(textfiles, 0o777)
    (work / "export.toml").write_text(config(group))
    checked = subprocess.run([quipu, "export", "--config", work / "export.toml", "--check"], capture_output=True, text=True)
    check("--check", checked.returncode == 0 and "no errors" in checked.stdout, checked)
    port, receiver_port = free_port(), free_port()
    command = [quipu, "export", "--config", work / "export.toml", "--listen", str(port), "--textfile", textfiles]
    try:
        receiver = Receiver(receiver_port)
        receiver.up()
        command += ["--otlp", f"http://127.0.0.1:{receiver_port}"]
    except ImportError:
        receiver = None
        skip("OpenTelemetry", "pip cannot install opentelemetry-proto")
    exporter = start(*map(str, command))
    check("it answers", wait_for(lambda: get(port)[0].status == 200), said(exporter))
    monotone = Monotone()
    if receiver:
        time.sleep(2.2)
        receiver.down()
        threading.Timer(4, receiver.up).start()
    judge_text(port, monotone)
    if folder:
        judge_rates(port, group, load)
    else:
        skip("rates", "no control group can be made here")
    judge_textfile(textfiles)
    judge_clients(port)
    monotone.look(get(port)[1].decode())
    check("no counter goes back", not monotone.fallen, monotone.fallen)
    exporter.send_signal(signal.SIGHUP)
    time.sleep(1.2)
    check("it goes on after SIGHUP", get(port)[0].status == 200)
    before = len(receiver.points) if receiver else 0
    took = end(exporter)
    check("SIGTERM ends it at once", exporter.returncode == 0 and took < 3, (exporter.returncode, took, said(exporter)))
    if receiver:
        time.sleep(0.3)
        check("what is left is sent when it ends", len(receiver.points) > before)
        receiver.down()
        judge_points(receiver, exporter)
    other = free_port()
    holder = socket.socket()
    holder.bind(("127.0.0.1", other))
    holder.listen()
    judge_failures(other)
    if folder:
        end(load)
        wait_for(lambda: folder.rmdir() is None, 5)


def size_of(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    memory = int(re.search(r"VmRSS:\s+(\d+)", status)[1])
    return memory, len(os.listdir(f"/proc/{pid}/fd"))


def soak():
    """Memory and descriptors are flat, and no counter goes back."""
    scrapes = int(os.environ.get("SCRAPES", "10000"))
    groups = int(os.environ.get("GROUPS_", "2000"))
    group = f"quipu-soak-{os.getpid()}-"
    if not make_cgroup(group + "first"):
        return skip("the soak", "no control group can be made here")
    os.chmod(work, 0o755)
    (work / "export.toml").write_text(config(group))
    port = free_port()
    exporter = start(quipu, "export", "--config", str(work / "export.toml"), "--listen", str(port))
    wait_for(lambda: get(port)[0].status == 200)
    stop = threading.Event()
    made = 0

    def storm():
        nonlocal made
        alive = []
        while made < groups and not stop.is_set():
            # The last quarter have names of those that were there before, and go on from their counts.
            folder = make_cgroup(f"{group}{made % (groups * 3 // 4)}")
            made += 1
            alive.append(folder)
            subprocess.run(["sh", "-c", f"echo $$ >{folder}/cgroup.procs; exec true"], check=False)
            time.sleep(scrapes / 50 / groups / 2)
            if len(alive) > 20:
                wait_for(lambda: alive[0].rmdir() is None, 2)
                alive.pop(0)
        for folder in alive:
            wait_for(lambda: folder.rmdir() is None, 2)

    stormy = threading.Thread(target=storm)
    stormy.start()
    monotone, sizes = Monotone(), []
    begun = time.monotonic()
    for at in range(scrapes):
        monotone.look(get(port)[1].decode())
        if at % (scrapes // 20) == 0:
            sizes.append((made, *size_of(exporter.pid)))
        # Fifty in a second, of which ten are reads.
        time.sleep(max(0, begun + at / 50 - time.monotonic()))
    stop.set()
    stormy.join()
    (cgroup_mount() / f"{group}first").rmdir()
    time.sleep(2)
    get(port)
    sizes.append((made, *size_of(exporter.pid)))
    for made_then, memory, files in sizes:
        print(f"{made_then} groups made: {memory} KiB, {files} descriptors")
    check("no counter goes back", not monotone.fallen, monotone.fallen[:5])
    # The totals of what has ended are kept up to a limit, which is reached later.
    check("memory is flat", sizes[-1][1] < sizes[4][1] * 1.5 + 4096, sizes)
    check("descriptors are flat", sizes[-1][2] <= sizes[0][2] + 10, sizes)
    check("the storm is over", made == groups, made)
    print(f"{scrapes} scrapes, {made} groups made and removed: {len(monotone.last)} counters, none went back")
    end(exporter)


def cost():
    """The share of a CPU that a scrape a second takes: 8 software events on each CPU."""
    events = "page-faults,minor-faults,major-faults,context-switches,cpu-migrations,alignment-faults,emulation-faults,cpu-clock"
    os.chmod(work, 0o755)
    (work / "cost.toml").write_text(f'[[target]]\ncpus = "all"\nby = "cpu"\nevents = ["{events}"]\n')
    port, other = free_port(), free_port()
    programs = [("quipu export", port, [quipu, "export", "--config", str(work / "cost.toml"), "--listen", str(port)])]
    if shutil.which("prometheus-node-exporter"):
        programs.append(("node_exporter --collector.perf", other, [
            "prometheus-node-exporter", "--collector.disable-defaults", "--collector.perf", f"--web.listen-address=127.0.0.1:{other}"]))  # fmt: skip
    else:
        skip("node_exporter", "Debian's package prometheus-node-exporter cannot be had")
    seconds = int(os.environ.get("SECONDS_", "60"))
    for name, at, command in programs:
        child = start(*command)
        if not wait_for(lambda: get(at)[0].status == 200):
            skip(name, said(child).strip().splitlines()[-1:])
            continue
        time.sleep(2)

        def run_time():
            total = 0
            for thread in os.listdir(f"/proc/{child.pid}/task"):
                total += int(pathlib.Path(f"/proc/{child.pid}/task/{thread}/schedstat").read_text().split()[0])
            return total / 1e9

        before = run_time()
        for _ in range(seconds):
            get(at)
            time.sleep(1)
        took = run_time() - before
        series = len(samples(get(at)[1].decode()))
        memory = size_of(child.pid)[0]
        print(f"{name}: {took / seconds * 100:.3f} % of a CPU, {took / seconds * 1e6:.0f} us a scrape, {series} series, {memory} KiB")
        if name == "quipu export":
            check("at most 0.1 % of a CPU", took / seconds <= 0.001, took / seconds)
        end(child)


try:
    {"judge": judge, "soak": soak, "cost": cost}[task]()
finally:
    for child in children:
        if child.poll() is None:
            child.kill()
            child.wait()
    shutil.rmtree(work, ignore_errors=True)
print(f"export: {passed + failed} checks, {passed} passed, {failed} failed, 0 skipped: ")
sys.exit(failed > 0)
