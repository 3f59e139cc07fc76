import { mkdirSync, openSync, closeSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { attempt } from "../../kit/attempt.ts";
import { openDockerApi, type DockerApi } from "../../kit/docker-api.ts";
import { start, systemPath } from "../../kit/exec.ts";
import { runFolder, removeRunFolder } from "../../kit/run-folder.ts";
import { settlesWithin } from "../../kit/settles-within.ts";
import { until } from "../../kit/until.ts";
import { trustedCertificates } from "../../sandbox/certificates.ts";
import { probeNetwork } from "../../sandbox/probe-network.ts";
import { readResolvers } from "../../sandbox/resolvers.ts";
import type { SandboxParts } from "../../sandbox/sandbox.ts";
import { createBuildDisks, type BuildDisks } from "./build-disks.ts";
import { openBuildGroups, type BuildGroups } from "./build-groups.ts";
import { addressesOf } from "./registry-access.ts";

export interface BuildEngineOptions {
  /** Folder for the engine's images, caches and settings. */
  readonly dir: string;
  readonly parts: SandboxParts;
  readonly nodeBin: string;
  /** Memory for all commands that belong to no build, together; each build has its own limit. */
  readonly memoryBytes: number;
  readonly processes: number;
  /** Largest file that a build's command may write. */
  readonly fileBytes: number;
  /** How many bytes of layers and package caches are kept between builds. */
  readonly cacheBytes: number;
  /** Servers in closed networks or on this machine that builds may reach, such as that of the projects' databases. */
  readonly open?: readonly { readonly address: string; readonly port: number }[];
  readonly tenantNetworks?: readonly string[];
  /** A certificate (PEM file) that is trusted for registries in addition to the system's. */
  readonly caFile?: string;
}

/** A Docker engine used only for builds. It ends with this process. */
export interface BuildEngine {
  readonly api: DockerApi;
  readonly socket: string;
  readonly dataRoot: string;
  readonly groups: BuildGroups;
  readonly disks: BuildDisks;
  readonly version: string;
  /** Whether the frontend reads heredocs, which Docker 23 introduced. */
  readonly readsHeredocs: boolean;
  /** Resolves when the engine has exited, by itself or through `stop`. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts a dockerd used only for builds, in its own namespaces. A Dockerfile's `FROM`, `ADD` and `RUN` reach what a sandbox's commands
 * reach: the internet, but not this machine, its other networks or a cloud's metadata. Mounts and processes end with the engine, and each
 * build's commands stay in a control group.
 */
export async function startBuildEngine(
  options: BuildEngineOptions,
  privateRegistries: readonly string[] = [],
): Promise<BuildEngine> {
  const { dir, parts } = options;
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const resolvers = readResolvers();
  const found = await probeNetwork(
    {
      ...options,
      stateDir: dir,
      network: "veth",
      open: [...(options.open ?? []), ...(await addressesOf(privateRegistries))],
    },
    resolvers,
  );
  if (found.driver.mode !== "veth") throw new Error(`builds have no network of their own: ${found.reason}`);
  const network = await found.driver.open(engineId, { kind: "egress" });
  const groups = openBuildGroups(dir, options);
  const sockets = runFolder(dir);
  const socket = join(sockets, "docker.sock");
  writeSettings(options, { socket, group: groups.parent, resolvers });
  const child = startIn({ ...options, binDir: groups.binDir }, [
    parts.setpriv ?? "setpriv",
    "--pdeathsig",
    "KILL",
    ...network.prefix,
    ...namespaces,
  ]);
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()).once("error", () => resolve()));
  const api = openDockerApi(socket);
  const stop = async () => {
    for (const pid of childrenOf(child.pid)) signalQuietly(pid, "SIGTERM");
    if (!(await settlesWithin(ended, stopMs))) child.kill("SIGKILL");
    await ended;
    await found.driver.close(engineId);
    await found.driver.dismantle();
    await groups.close();
    removeRunFolder(dir);
  };
  if (!(await answers(api, ended))) {
    await stop();
    throw new Error(`the engine for builds did not start: ${readFileSync(join(dir, "log"), "utf8").slice(-1000)}`);
  }
  const { Version: version } = await api.call<{ readonly Version: string }>({ path: "/version" });
  const readsHeredocs = Number.parseInt(version, 10) >= 23;
  const dataRoot = dataRootOf(dir);
  return { api, socket, dataRoot, version, ended, stop, groups, disks: createBuildDisks(dataRoot), readsHeredocs };
}

const dataRootOf = (dir: string): string => join(dir, "data");
const engineId = "engine";
const stopMs = 10_000;
const namespaces = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"];

function startIn(
  { dir, caFile, binDir }: BuildEngineOptions & Pick<BuildGroups, "binDir">,
  [file = "", ...args]: readonly string[],
) {
  const certificates = trustedCertificates(dir, caFile);
  const log = openSync(join(dir, "log"), "w", 0o600);
  const script = [join(import.meta.dirname, "build-engine.sh"), join(dir, "resolv.conf")];
  const engine = ["dockerd", "--config-file", join(dir, "daemon.json")];
  const child = start(
    { file, args: [...args, "/bin/sh", ...script, "/bin/sh", "-c", 'exec "$@" >&3 2>&3', "sh", ...engine] },
    {
      env: {
        PATH: `${binDir}:${systemPath}`,
        HOME: dir,
        ...(certificates === null ? {} : { SSL_CERT_FILE: certificates.pem }),
      },
      fds: [log],
      // Runs at a lower CPU priority, since the engine packs layers itself, outside any build's control group.
      isBackground: true,
    },
  );
  closeSync(log);
  child.stdin.end();
  return child;
}

interface Placed {
  readonly socket: string;
  readonly group: string | undefined;
  readonly resolvers: ReturnType<typeof readResolvers>;
}

function writeSettings({ dir, cacheBytes }: BuildEngineOptions, { socket, group, resolvers }: Placed): void {
  // Removes an earlier engine's PID file: its number comes from another PID namespace and always belongs to a running process here.
  rmSync(join(dir, "docker.pid"), { force: true });
  // containerd's sockets are below this folder, and a socket's path is limited to 107 bytes.
  const execRoot = join(dirname(socket), "exec");
  rmSync(execRoot, { recursive: true, force: true });
  writeFileSync(join(dir, "resolv.conf"), resolvers.isolated, { mode: 0o644 });
  const settings = {
    ...{ "data-root": dataRootOf(dir), "exec-root": execRoot, pidfile: join(dir, "docker.pid") },
    ...{ "deprecated-key-path": join(dir, "key.json"), hosts: [`unix://${socket}`], "log-level": "warn" },
    ...{ dns: resolvers.addresses, bip: insideBridge, icc: false, "userland-proxy": false },
    "exec-opts": ["native.cgroupdriver=cgroupfs"],
    ...(group === undefined ? {} : { "cgroup-parent": group }),
    builder: {
      gc: { enabled: true, defaultKeepStorage: `${Math.round(cacheBytes / 1024 / 1024)}MB` },
      Entitlements: { "network-host": false, "security-insecure": false },
    },
  };
  writeFileSync(join(dir, "daemon.json"), JSON.stringify(settings, null, 2), { mode: 0o600 });
}

// From the range that only Berth's sandboxes use, so that it shadows no network of the operator's.
const insideBridge = "10.127.255.1/24";

function answers(api: DockerApi, ended: Promise<void>): Promise<true | undefined> {
  const stop = new AbortController();
  void ended.then(() => stop.abort());
  const isUp = () =>
    api.call({ path: "/_ping" }).then(
      () => true as const,
      (error: unknown) => (error instanceof SyntaxError ? (true as const) : undefined),
    );
  return until(isUp, { timeoutMs: 60_000, signal: stop.signal });
}

function childrenOf(pid: number | undefined): number[] {
  return attempt(
    () => readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number),
    [],
  );
}

function signalQuietly(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has already exited.
  }
}
