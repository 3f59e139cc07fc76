import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { systemPath, type Command } from "../../kit/exec.ts";

/** What an edge process is started with: the content of its settings file. */
export interface EdgeSettings {
  readonly listen_host: string;
  readonly listen_port: number;
  /** 0: any free port; null: no TLS. */
  readonly listen_tls_port: number | null;
  readonly state_dir: string;
  /** A replica that sends nothing for this long is given up: 504 before its answer, a cut after it began. */
  readonly upstream_timeout_ms: number;
  readonly connect_timeout_ms: number;
  /** How long a replaced process keeps its open requests and tunnels. */
  readonly drain_limit_ms: number;
  /** Requests that carry it in `probeHeader` are the platform's own and not counted. */
  readonly probe_key: string;
  /** As root: the user that the process becomes once it listens. Null: it stays who it is. */
  readonly uid: number | null;
  /** Names these settings and the code together: when it differs, a running process is to be replaced. */
  readonly fingerprint: string;
}

/** Names settings, the edge's code, its client library and the Node version that runs it. */
export function fingerprintOf(settings: Omit<EdgeSettings, "fingerprint">): string {
  const hash = createHash("sha256").update(JSON.stringify(settings)).update(process.version);
  hash.update(readFileSync(createRequire(import.meta.url).resolve("undici/package.json")));
  for (const name of readdirSync(import.meta.dirname).sort()) {
    if (/\.(ts|sh)$/.test(name) && !name.endsWith(".test.ts"))
      hash.update(readFileSync(join(import.meta.dirname, name)));
  }
  return hash.digest("hex").slice(0, 32);
}

/** Lower case, as Node gives header names. It never reaches an application. */
export const probeHeader = "x-berth-probe";

/** The key of the platform's own requests: made once for a state folder, so that an edge that runs on knows it. */
export function probeKeyOf(stateDir: string): string {
  const path = join(stateDir, "probe-key");
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  try {
    writeFileSync(path, randomBytes(24).toString("base64url"), { flag: "wx", mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  return readFileSync(path, "utf8");
}

/** Where an edge's files are inside its state folder. */
export function edgePaths(stateDir: string) {
  return {
    settings: join(stateDir, "settings.json"),
    routes: join(stateDir, "routes.json"),
    certificates: join(stateDir, "certificates.json"),
    /** The `EdgeRecord` of the present edge process. */
    current: join(stateDir, "current.json"),
    log: join(stateDir, "edge.log"),
    /** What start-successor.sh starts: node, program and settings file, a line each. */
    successor: join(stateDir, "successor"),
    /** Control sockets, one a process: `<pid>.sock`; and why a start failed: `<pid>.failed`. */
    run: join(stateDir, "run"),
  };
}

/** The control socket of the edge process with this pid. */
export function controlSocket(stateDir: string, pid: number): string {
  return join(edgePaths(stateDir).run, `${pid}.sock`);
}

/** How an edge process is started; `words` follow its settings file. start-successor.sh does the same. */
export function edgeCommand(nodeBin: string, stateDir: string, words: readonly string[] = []): Command {
  const flags = ["--disable-warning=ExperimentalWarning"];
  return { file: nodeBin, args: [...flags, program, edgePaths(stateDir).settings, ...words] };
}

/** The content of `edgePaths().successor`. */
export function successorLines(nodeBin: string, stateDir: string): string {
  return [nodeBin, program, edgePaths(stateDir).settings, ""].join("\n");
}

const program = join(import.meta.dirname, "main.ts");

/** Its environment: code that an earlier edge process compiled is used again, which halves its memory. */
export function edgeEnv(stateDir: string): Record<string, string> {
  return { PATH: systemPath, NODE_COMPILE_CACHE: join(stateDir, "compiled-code") };
}

/** Reads the settings file an edge process was started with. */
export function readSettings(path: string): EdgeSettings {
  return { ...(JSON.parse(readFileSync(path, "utf8")) as EdgeSettings), state_dir: dirname(path) };
}
