import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { runOk, startDetached } from "../../kit/exec.ts";
import { identify, isAlive, sendSignal, type ProcessIdentity } from "../../kit/processes.ts";
import { createKeyedMutex } from "../../kit/keyed-mutex.ts";
import { until } from "../../kit/until.ts";
import type { ImageRegistry } from "./image-registry.ts";
import { makeRegistryCertificates, trustRegistry, type RegistryCertificates } from "./registry-certificates.ts";

export interface OwnRegistryOptions {
  /** Folder for images, certificates and the record of the running process. */
  readonly dir: string;
  readonly program: string;
  readonly address: () => Promise<string>;
  readonly port: number;
}

export interface OwnRegistry extends ImageRegistry {
  /** Kills the process and removes this machine's trust in it. */
  close(): Promise<void>;
}

interface Running {
  readonly host: string;
  readonly certificates: RegistryCertificates;
}

const upMs = 60_000;

/**
 * Creates the registry that Berth runs, with TLS and access for machines that hold a certificate of its authority. Its process outlives the
 * control plane, so that machines can still pull images; if it has exited, the next use starts it again.
 */
export function createOwnRegistry(options: OwnRegistryOptions): OwnRegistry {
  const runExclusive = createKeyedMutex();
  const recordFile = join(options.dir, "process.json");
  const open = () => runExclusive("open", () => ensureRunning(options, recordFile));
  return {
    name: async () => (await open()).host,
    authHeader: Buffer.from("{}").toString("base64url"),
    trustScript: async () => scriptOf(await open()),
    async deleteImage(repository, digest) {
      const status = await ask(await open(), "DELETE", `/v2/${repository}/manifests/${digest}`);
      if (status >= 300 && status !== 404) throw new Error(`the registry did not delete the image: ${status}`);
    },
    async close() {
      const found = readRecord(recordFile);
      if (found !== undefined) {
        sendSignal(found.identity, "SIGKILL");
        await until(() => !isAlive(found.identity) || undefined, { timeoutMs: 10_000 });
        rmSync(trustFolder(found.host), { recursive: true, force: true });
      }
      rmSync(recordFile, { force: true });
    },
  };
}

/** Engines read this folder at every pull, so they need no restart. */
const trustFolder = (host: string): string => `/etc/docker/certs.d/${host}`;

function scriptOf({ host, certificates: { ca, cert, key } }: Running): string {
  const file = (name: string, text: string) => `cat > '${trustFolder(host)}/${name}' <<'END'\n${text.trim()}\nEND\n`;
  const files = file("ca.crt", ca) + file("client.cert", cert) + file("client.key", key);
  return `set -e\numask 077\nmkdir -p '${trustFolder(host)}'\n${files}`;
}

async function ensureRunning(options: OwnRegistryOptions, recordFile: string): Promise<Running> {
  mkdirSync(options.dir, { recursive: true, mode: 0o700 });
  const address = await options.address();
  const host = `${address}:${options.port}`;
  const certificates = await makeRegistryCertificates(options.dir, address);
  const running = { host, certificates };
  const found = readRecord(recordFile);
  if (found?.host === host && isAlive(found.identity)) return running;
  if (found !== undefined) sendSignal(found.identity, "SIGTERM");
  await trustRegistry(trustFolder(host), certificates);
  const config = join(options.dir, "config.json");
  await writeFile(config, JSON.stringify(settingsOf(options.dir, host)), { mode: 0o600 });
  const [file, log] = [options.program, join(options.dir, "log")];
  // The registry can free the space of deleted images only while no push is in progress.
  if (existsSync(join(options.dir, "data", "docker")))
    await runOk({ file, args: ["garbage-collect", "--delete-untagged", config] }, { timeoutMs: 600_000 });
  const pid = await startDetached({ file, args: ["serve", config] }, log);
  const identity = identify(pid);
  await writeFile(recordFile, JSON.stringify({ host, identity }), { mode: 0o600 });
  const isUp = () =>
    ask(running, "GET", "/v2/").then(
      (status) => status === 200 || undefined,
      () => undefined,
    );
  if (!(await until(isUp, { timeoutMs: upMs })))
    throw new Error(`the registry does not answer at ${host}: ${readFileSync(log, "utf8").slice(-500)}`);
  return running;
}

function readRecord(file: string): { readonly host: string; readonly identity: ProcessIdentity } | undefined {
  if (!existsSync(file)) return undefined;
  return JSON.parse(readFileSync(file, "utf8")) as { host: string; identity: ProcessIdentity };
}

/** Returns the registry's configuration. It expects YAML, of which JSON is a subset. */
function settingsOf(dir: string, host: string): object {
  const [certificate, key, authority] = ["server.pem", "server.key", "ca.pem"].map((name) => join(dir, name));
  return {
    version: "0.1",
    log: { level: "error", accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: join(dir, "data") }, delete: { enabled: true } },
    http: { addr: host, tls: { certificate, key, clientcas: [authority] } },
  };
}

function ask({ host, certificates }: Running, method: string, path: string): Promise<number> {
  const { ca, cert, key } = certificates;
  return new Promise((resolve, reject) => {
    const sent = request(
      `https://${host}${path}`,
      { method, ca, cert, key, agent: false, timeout: 10_000 },
      (answer) => {
        answer.resume().once("end", () => resolve(answer.statusCode ?? 0));
      },
    );
    sent.once("timeout", () => sent.destroy(new Error("the registry does not answer")));
    sent.once("error", reject).end();
  });
}
