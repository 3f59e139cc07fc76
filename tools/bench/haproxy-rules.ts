import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHaproxyEdge } from "../../src/adapters/edge-haproxy/haproxy-edge.ts";
import { runOk, start } from "../../src/kit/exec.ts";
import { silentLog } from "../../src/kit/log.ts";
import { runFolder } from "../../src/kit/run-folder.ts";
import { until } from "../../src/kit/until.ts";
import { freePort } from "../../test/support/free-port.ts";
import { accepts, answering, programPath, startNginx } from "./nginx.ts";
import { instructionsRow, type BenchRow } from "./row.ts";

// Counts HAProxy's instructions for each part of Berth's rules; other load on the machine does not change them.

const host = "127.0.0.1";
// HAProxy keeps the first hundred requests of a second for a possible repetition, so they are not counted.
const [warmUp, requests] = [150, 1000];

// A start under valgrind, beside other load, takes minutes.
const startMs = 300_000;

type Change = readonly [what: RegExp, to: string];

/** Parts of the configuration, each with the changes that leave out only that part. */
const parts: Readonly<Record<string, readonly Change[]>> = {
  "the client's address, the host and the protocol in five fields": [without("http-request add-header")],
  "a request id": [without("http-request set-header X-Request-Id")],
  "removing what clients claim, by one expression on each field's name": [without("http-request del-header")],
  counting: [
    without(
      "http-request track-sc0",
      "http-after-response (?:allow|set-var)",
      String.raw`http-request set-var\(txn.begun`,
    ),
  ],
  "the log of requests": [
    without(
      ...[
        "log ring@",
        "log-format ",
        "http-request set-log-level",
        String.raw`http-request set-var\(txn.(?:weight|id)\)`,
      ],
    ),
  ],
  "the limit of requests open to a replica": [without("http-request track-sc1", "http-request return .*sc1_conn_cur")],
  "the replica's address out of the host map": [
    without("http-request set-dst"),
    [/replica 0\.0\.0\.0/, "replica UPSTREAM"],
  ],
  "pages in place of an application's errors": [
    without("http-after-response set-(?:header|status)", String.raw`http-request set-var\(txn.accept`),
  ],
  "conditions that hold for few requests: challenges, TRACE, absolute targets, named fields, HTTPS, the control plane":
    [
      without(
        String.raw`http-request set-var\(txn.route\) str\((?!\S*(?:body_too_large|bad_request))`,
        ...["http-request set-uri", "http-request redirect", "http-request lua", "http-request set-header x-berth"],
      ),
    ],
  "the limit of a body's stated length": [
    without(String.raw`http-request set-var\(txn.route\) str\(\S*body_too_large`),
  ],
  "refusing lengths and codings that have two readings, counting bodies without a length": [
    without(
      String.raw`http-request set-var\(txn.route\) str\(\S*bad_request`,
      ...["http-response return", "use_backend counted"],
    ),
  ],
  "noticing clients that leave": [without("option abortonclose")],
};

function without(...beginnings: readonly string[]): Change {
  return [new RegExp(String.raw`^ *(?:${beginnings.join("|")}).*\n`, "gm"), ""];
}

/** Returns what the machine lacks for `measureHaproxyRules`, as a sentence; undefined if nothing. */
export function haproxyRulesLack(): string | undefined {
  const missing = ["haproxy", "nginx", "valgrind"].filter((name) => programPath(name) === undefined);
  return missing.length === 0 ? undefined : `The rules are not measured: ${missing.join(" and ")} not installed.`;
}

/** Counts the whole configuration, the configuration without each of its parts, and a bare one. */
export async function measureHaproxyRules(): Promise<BenchRow[]> {
  const dir = await mkdtemp(join(tmpdir(), "berth-bench-rules-"));
  const upstream = await freePort();
  const stop = await startNginx(dir, "upstream", answering(upstream));
  const stateDir = join(dir, "edge");
  const listens = { listenHost: host, listenPort: 0, listenTlsPort: null, stateDir, log: silentLog };
  const maxBodyBytes = 2 ** 30;
  const edge = createHaproxyEdge({ haproxyBin: programPath("haproxy") as string, ...listens, maxBodyBytes });
  try {
    const targets = [{ host, port: upstream }];
    const route = {
      hostname: "bench.test",
      project_id: "prj_1",
      state: "serving",
      targets,
      https: "on",
      hsts: false,
    } as const;
    await edge.apply({ version: 1, routes: [route], challenge: null });
    const folder = join(runFolder(stateDir), "haproxy");
    const text = (await readFile(join(folder, "haproxy.cfg"), "utf8"))
      // Treat the project as busy, so that no request is repeated.
      .replaceAll(/(use_backend busy if) .*/g, "$1 { sc0_http_req_rate ge 0 } or TRUE")
      // Callgrind slows down each response; without this, latency would be compared with many more bounds.
      .replaceAll("sub(txn.begun)", "sub(txn.begun),mul(0)");
    const fixed = (config: string) => config.replaceAll("UPSTREAM", `${host}:${upstream}`);
    const whole = await instructionsEach(folder, text);
    const theirs = await instructionsEach(folder, fixed(bare));
    const rows = [instructionsRow("HAProxy, a request", "a bare HAProxy", { ours: whole, theirs })];
    for (const [part, changes] of Object.entries(parts)) {
      const rest = changes.reduce((config, [what, to]) => config.replaceAll(new RegExp(what, "gm"), to), text);
      if (rest === text) throw new Error(`The configuration has nothing for: ${part}.`);
      const ours = whole - (await instructionsEach(folder, fixed(rest)));
      rows.push(instructionsRow(`HAProxy, ${part}`, "a request", { ours, theirs: whole }));
    }
    const repeating = (await instructionsEach(folder, text.replace(/^  retry-on conn-failure\n/m, ""))) - whole;
    return [
      ...rows,
      instructionsRow("HAProxy, that a request may be repeated", "one that may not", {
        ours: repeating,
        theirs: whole,
      }),
    ];
  } finally {
    stop();
    await edge.stop(0);
    await rm(dir, { recursive: true, force: true });
  }
}

const bare = `global
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend plain
  bind ${host}:1
  default_backend app
backend app
  server s UPSTREAM
`;

/** Returns how many instructions HAProxy executes for one request. */
async function instructionsEach(folder: string, config: string): Promise<number> {
  const port = await freePort();
  const text = config.replace(/^ {2}bind .*$/m, `  bind ${host}:${port}`).replace("admin.sock", "rules.sock");
  const [file, counts] = [join(folder, "rules.cfg"), join(folder, "rules.counts")];
  await writeFile(file, text.replace("global\n", "global\n  nbthread 1\n"));
  const options = ["--tool=callgrind", `--callgrind-out-file=${counts}`];
  const args = [...options, programPath("haproxy") as string, "-db", "-f", file];
  const child = start({ file: programPath("valgrind") as string, args });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => void (said += chunk.toString()));
  const control = (word: string) =>
    runOk({ file: programPath("callgrind_control") as string, args: [word, `${child.pid}`] }, { timeoutMs: startMs });
  try {
    if ((await until(() => accepts(port), { timeoutMs: startMs })) === undefined) throw new Error(said);
    await ask(port, warmUp);
    await control("--zero");
    await ask(port, requests);
    await control("--dump");
    const names = (await readdir(folder)).filter((name) => name.startsWith("rules.counts."));
    return Number(/^summary: (\d+)/m.exec(await readFile(join(folder, names[0] as string), "utf8"))?.[1]) / requests;
  } finally {
    child.kill("SIGKILL");
    await once(child, "close");
    for (const name of await readdir(folder)) if (name.startsWith("rules.")) await rm(join(folder, name));
  }
}

/** Sends one request after the other over one connection. */
async function ask(port: number, count: number): Promise<void> {
  const socket = connect({ host, port });
  for (let i = 0; i < count; i += 1) {
    socket.write("GET / HTTP/1.1\r\nHost: bench.test\r\nAccept: */*\r\nUser-Agent: bench\r\n\r\n");
    const [answer] = (await once(socket, "data")) as [Buffer];
    if (!answer.toString("latin1").startsWith("HTTP/1.1 200")) throw new Error(`HAProxy answered ${answer.toString()}`);
  }
  socket.destroy();
}
