import {
  chmodSync,
  createReadStream,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  writeFileSync,
} from "node:fs";
import { mkdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { openDockerApi, type DockerApi } from "../../src/kit/docker-api.ts";
import { run, runOk, startDetached, systemPath } from "../../src/kit/exec.ts";
import { identify, isAlive, processIds, type ProcessIdentity } from "../../src/kit/processes.ts";
import { until } from "../../src/kit/until.ts";
import { guardMs } from "./eventually.ts";

/** Why tests of a Docker engine are skipped; false where they run. */
export const withoutDocker = reasonToSkip();

/** A Docker engine for one test file. It shares nothing with other engines on this machine and does not change iptables. */
export interface TestEngine extends AsyncDisposable {
  readonly socket: string;
  readonly dir: string;
  readonly api: DockerApi;
  /** Stops the engine and starts it again; with `live-restore` its containers keep running. SIGKILL simulates a crash of the engine. */
  restart(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
  /** Stops the engine but not its containers; `begin` starts it again. */
  end(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
  begin(): Promise<void>;
  /** Kills the engine and all its containers at once, as a power cut does; `begin` starts the engine again. */
  lose(): Promise<void>;
  /** Stops the engine and its containers, and removes its mounts, bridge and folder. */
  close(): Promise<void>;
}

const prefix = "berth-engine-";

/**
 * Starts an engine. `settings` go into its daemon.json. `enter` is a command prefix that runs the engine elsewhere, such as in a network
 * namespace. The engine listens on `hosts` besides its socket.
 */
export async function startTestEngine(
  settings: Readonly<Record<string, unknown>> = {},
  enter: readonly string[] = [],
  hosts: readonly string[] = [],
): Promise<TestEngine> {
  await removeAbandoned();
  const dir = mkdtempSync(join(tmpdir(), prefix));
  // With user namespaces, the root user of containers must be able to traverse this folder.
  chmodSync(dir, 0o711);
  writeFileSync(join(dir, "owner.json"), JSON.stringify(identify(process.pid)));
  const bridge = enter.length === 0 ? await openNetwork(dir) : undefined;
  const socket = join(dir, "docker.sock");
  const config = {
    ...{ "data-root": join(dir, "data"), "exec-root": join(dir, "exec"), pidfile: join(dir, "docker.pid") },
    ...{
      "deprecated-key-path": join(dir, "key.json"),
      hosts: [`unix://${socket}`, ...hosts],
      ...(bridge === undefined ? {} : { bridge }),
    },
    ...{ iptables: false, ip6tables: false, "userland-proxy": false, "live-restore": true, "log-level": "warn" },
    ...settings,
  };
  writeFileSync(join(dir, "daemon.json"), JSON.stringify(config));
  const api = openDockerApi(socket);
  const begin = async () => {
    await rm(join(dir, "docker.pid"), { force: true });
    const [file, ...args] = [...enter, "dockerd", "--config-file", join(dir, "daemon.json")];
    await startDetached({ file: file as string, args }, join(dir, "log"), { env: { PATH: systemPath, HOME: dir } });
    const isUp = () =>
      api.call({ path: "/info" }).then(
        () => true as const,
        () => undefined,
      );
    if (!(await until(isUp, { timeoutMs: guardMs })))
      throw new Error(`dockerd did not start: ${(await readFile(join(dir, "log"), "utf8")).slice(-2000)}`);
  };
  const end = (signal: "SIGTERM" | "SIGKILL" = "SIGTERM") => endEngine(dir, signal);
  const engine: TestEngine = {
    ...{ socket, dir, api, begin, end, lose: () => loseEngine(dir) },
    async restart(signal) {
      await end(signal);
      await begin();
    },
    close: () => removeEngine(dir),
    [Symbol.asyncDispose]: () => removeEngine(dir),
  };
  await begin().catch(async (error: unknown) => {
    await engine.close();
    throw error;
  });
  return engine;
}

/**
 * Imports a minimal image made of files of this machine: Node.js with its libraries, and busybox with its commands. Tests that build real
 * images use the base image of tools/base-image instead.
 */
export async function importMinimalImage(api: DockerApi, changes: readonly string[] = []): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), "berth-root-"));
  try {
    await fillRoot(root);
    const tar = join(root, "..", `${basename(root)}.tar`);
    await runOk({ file: "tar", args: ["-C", root, "--numeric-owner", "--owner=0", "--group=0", "-cf", tar, "."] });
    const answer = await api.call<{ status: string }>({
      method: "POST",
      path: "/images/create",
      query: { fromSrc: "-", changes: ["ENV PATH=/usr/local/bin:/bin:/usr/bin", ...changes].join("\n") },
      ...{ body: createReadStream(tar), timeoutMs: guardMs },
    });
    await rm(tar);
    return answer.status;
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

async function fillRoot(root: string): Promise<void> {
  for (const folder of ["bin", "usr/bin", "usr/local/bin", "tmp", "etc", "app", "var/log/server", "var/cache/server"])
    await mkdir(join(root, folder), { recursive: true });
  const { stdout } = await runOk({ file: "ldd", args: [process.execPath] });
  const libraries = [...stdout.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(([, path = ""]) => path);
  await runOk({ file: "cp", args: ["--parents", "-L", ...libraries, root] });
  await runOk({ file: "cp", args: ["-L", process.execPath, join(root, "usr/local/bin/node")] });
  await runOk({ file: "cp", args: ["-L", findBusybox(), join(root, "bin/busybox")] });
  const { stdout: names } = await runOk({ file: findBusybox(), args: ["--list"] });
  const script = 'cd "$0/bin" && for name in "$@"; do [ -e "$name" ] || ln -s busybox "$name"; done';
  await runOk({ file: "/bin/sh", args: ["-c", script, root, ...names.trim().split("\n")] });
  writeFileSync(join(root, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n");
  await runOk({ file: "chmod", args: ["1777", join(root, "tmp")] });
}

function findBusybox(): string {
  return existsSync("/usr/bin/busybox") ? "/usr/bin/busybox" : "/bin/busybox";
}

function reasonToSkip(): string | false {
  if (process.geteuid?.() !== 0) return "SKIPPED: a Docker engine needs root";
  if (!["/usr/sbin/dockerd", "/usr/bin/dockerd"].some((path) => existsSync(path)))
    return "SKIPPED: Debian's package docker.io is not installed";
  return existsSync(findBusybox()) ? false : "SKIPPED: Debian's package busybox-static is not installed";
}

/** Removes engines whose test was killed. */
async function removeAbandoned(): Promise<void> {
  for (const name of readdirSync(tmpdir()).filter((each) => each.startsWith(prefix))) {
    // The file is empty while its test writes it or removes the engine.
    const owner = readQuietly(join(tmpdir(), name, "owner.json"));
    if (owner !== "" && !isAlive(JSON.parse(owner) as ProcessIdentity)) await removeEngine(join(tmpdir(), name));
  }
}

async function endEngine(dir: string, signal: NodeJS.Signals): Promise<void> {
  const pid = Number(existsSync(join(dir, "docker.pid")) ? readFileSync(join(dir, "docker.pid"), "utf8") : Number.NaN);
  const engine = Number.isInteger(pid) && commandLine(pid).includes(dir) ? identify(pid) : undefined;
  if (!engine) return;
  process.kill(pid, signal);
  const isGone = await until(() => !isAlive(engine) || undefined, { timeoutMs: guardMs });
  if (!isGone) process.kill(pid, "SIGKILL");
  await until(() => !isAlive(engine) || undefined, { timeoutMs: guardMs });
  // containerd dies with the engine, but until it is reaped a new engine would try to use it.
  await rm(join(dir, "exec", "containerd", "containerd.pid"), { force: true });
}

async function removeEngine(dir: string): Promise<void> {
  await endEngine(dir, "SIGTERM");
  // With live-restore the containers and their shims keep running, and after SIGKILL so does containerd.
  await killContainers(dir);
  const mounts = readFileSync("/proc/mounts", "utf8").split("\n");
  const own = mounts.map((line) => line.split(" ")[1] ?? "").filter((path) => path.startsWith(`${dir}/`));
  for (const path of own.toReversed()) await run({ file: "umount", args: ["-l", path] });
  await closeNetwork(readQuietly(join(dir, "bridge")));
  await rm(dir, { recursive: true, force: true });
}

async function loseEngine(dir: string): Promise<void> {
  await Promise.all([endEngine(dir, "SIGKILL"), killContainers(dir)]);
}

async function killContainers(dir: string): Promise<void> {
  const left = processIds().filter((pid) => commandLine(pid).includes(`${dir}/`));
  for (const pid of [...left.flatMap(childrenOf), ...left]) signalQuietly(pid);
  await until(() => left.every((pid) => identify(pid) === undefined || commandLine(pid) === "") || undefined, {
    timeoutMs: guardMs,
  });
}

function signalQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has exited already.
  }
}

const commandLine = (pid: number): string => readQuietly(`/proc/${pid}/cmdline`).replaceAll("\0", " ");
const childrenOf = (pid: number): number[] =>
  readQuietly(`/proc/${pid}/task/${pid}/children`).split(" ").filter(Boolean).map(Number);

function readQuietly(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/**
 * Creates a bridge for containers without a network of their own, such as builds, with addresses in 10.212.0.0/16, which neither Berth nor
 * podman uses. A bridge's name is unique on a machine, so the number in it selects a subnet that no other engine has. All engines of a machine
 * share the iptables chains, so this engine does not touch them and the test sets up NAT itself.
 */
async function openNetwork(dir: string): Promise<string> {
  for (let number = 0; number < 256; number += 1) {
    const bridge = `bte${number}`;
    if ((await run({ file: "ip", args: ["link", "add", bridge, "type", "bridge"] })).exitCode !== 0) continue;
    writeFileSync(join(dir, "bridge"), bridge);
    writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
    await runOk({ file: "ip", args: ["address", "add", `10.212.${number}.1/24`, "dev", bridge] });
    await runOk({ file: "ip", args: ["link", "set", bridge, "up"] });
    const chain = `chain out { type nat hook postrouting priority srcnat; ip saddr 10.212.${number}.0/24 oifname != "${bridge}" masquerade; }`;
    await runOk({ file: "nft", args: ["-f", "-"] }, { stdin: `table ip ${bridge} {\n${chain}\n}\n` });
    return bridge;
  }
  throw new Error("all 256 bridge numbers for test engines are in use; remove leftover bteN bridges");
}

/** Deletes the bridge last, because its name reserves the subnet. */
async function closeNetwork(bridge: string): Promise<void> {
  if (bridge === "") return;
  await run({ file: "nft", args: ["delete", "table", "ip", bridge] });
  await run({ file: "ip", args: ["link", "del", bridge] });
}
