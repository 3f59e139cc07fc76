import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { systemPath, type Command } from "../../kit/exec.ts";
import { keptText } from "../../kit/whole-file.ts";

/** The settings file of an edge process. */
export interface EdgeSettings {
  readonly listen_host: string;
  readonly listen_port: number;
  /** 0 for any free port; null without TLS. */
  readonly listen_tls_port: number | null;
  readonly state_dir: string;
  /** A replica that sends nothing for this long has timed out: 504 before its response, an aborted connection in the middle of it. */
  readonly upstream_timeout_ms: number;
  /** How long a client may take to send a request's head. */
  readonly head_timeout_ms: number;
  readonly connect_timeout_ms: number;
  /** The most bytes in the body of a request to an application; 0: no limit. */
  readonly max_body_bytes: number;
  /** How long a replaced process keeps its open requests and tunnels. */
  readonly drain_limit_ms: number;
  /** Requests with this value in `probeHeader` come from the platform and are not counted. */
  readonly probe_key: string;
  /** For root: the user that the process switches to once it listens. Null: it keeps its user. */
  readonly uid: number | null;
  /** A hash of these settings and the code; a running process with a different one must be replaced. */
  readonly fingerprint: string;
}

/** Hashes settings, the edge's code, its client library and the Node version that runs it. */
export function fingerprintOf(settings: Omit<EdgeSettings, "fingerprint">): string {
  const hash = createHash("sha256").update(JSON.stringify(settings)).update(process.version);
  hash.update(readFileSync(createRequire(import.meta.url).resolve("undici/package.json")));
  for (const name of readdirSync(import.meta.dirname).sort()) {
    if (/\.(ts|sh)$/.test(name) && !name.endsWith(".test.ts"))
      hash.update(readFileSync(join(import.meta.dirname, name)));
  }
  return hash.digest("hex").slice(0, 32);
}

/** In lower case, as Node reports header names. It never reaches an application. */
export const probeHeader = "x-berth-probe";

/** Returns the key of the platform's own requests. It is created once per state folder, so that an edge that keeps running knows it. */
export function probeKeyOf(stateDir: string): string {
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  return keptText(join(stateDir, "probe-key"), () => randomBytes(24).toString("base64url"));
}

/** Returns the paths of an edge's files in its state folder. */
export function edgePaths(stateDir: string) {
  return {
    settings: join(stateDir, "settings.json"),
    routes: join(stateDir, "routes.json"),
    certificates: join(stateDir, "certificates.json"),
    /** The `EdgeRecord` of the current edge process. */
    current: join(stateDir, "current.json"),
    log: join(stateDir, "edge.log"),
    /** The command that start-successor.sh runs: node, program and settings file, a line each. */
    successor: join(stateDir, "successor"),
    /** One control socket per process, `<pid>.sock`, and the reason of a failed start, `<pid>.failed`. */
    run: join(stateDir, "run"),
  };
}

/** Returns the path of the control socket of the edge process with this pid. */
export function controlSocket(stateDir: string, pid: number): string {
  return join(edgePaths(stateDir).run, `${pid}.sock`);
}

/** Returns the command that starts an edge process; `words` follow the settings file. start-successor.sh builds the same command. */
export function edgeCommand(nodeBin: string, stateDir: string, words: readonly string[] = []): Command {
  const flags = ["--disable-warning=ExperimentalWarning"];
  return { file: nodeBin, args: [...flags, program, edgePaths(stateDir).settings, ...words] };
}

/** Returns the content of `edgePaths().successor`. */
export function successorLines(nodeBin: string, stateDir: string): string {
  return [nodeBin, program, edgePaths(stateDir).settings, ""].join("\n");
}

const program = join(import.meta.dirname, "main.ts");

/** Returns the environment of an edge process. It reuses code that an earlier edge process compiled, which halves its memory. */
export function edgeEnv(stateDir: string): Record<string, string> {
  return { PATH: systemPath, NODE_COMPILE_CACHE: join(stateDir, "compiled-code") };
}

/** Reads the settings file that an edge process was started with. */
export function readSettings(path: string): EdgeSettings {
  return { ...(JSON.parse(readFileSync(path, "utf8")) as EdgeSettings), state_dir: dirname(path) };
}
