import { mkdirSync, openSync, closeSync, readFileSync, rmSync, writeFileSync, chmodSync, existsSync } from "node:fs";
import { dirname, join, delimiter } from "node:path";
import { createHash } from "node:crypto";
import { availableParallelism } from "node:os";
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
import { addressesOf } from "./registry-access.ts";
import { openCgroups } from "../../sandbox/cgroups.ts";
import type { ForwardedSocket } from "../../kit/server-address.ts";
import type { BuildLimits } from "../../ports/builder.ts";

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

type Limits = Pick<BuildLimits, "memoryBytes" | "processes">;

type BuildGroups = ReturnType<typeof openBuildGroups>;

/**
 * Creates the control groups of builds. BuildKit runs the commands of all builds in one group, without limits per build, through the `runc`
 * of its PATH. Our wrapper of that name moves each command into its build's group, found by the entry of `/etc/hosts` that the build's
 * commands get; commands without one share a group with the limits of one build. It limits the size of files, too: a sparse file costs the
 * command nothing, but packing the layer reads all of it.
 */
function openBuildGroups(dir: string, limits: Limits & Forwarding & { readonly fileBytes: number }) {
  const groups = openCgroups(`berth-builds-${tagOf(dir).slice(0, 8)}`);
  const places = join(dir, "groups");
  const binDir = join(dir, "bin");
  rmSync(places, { recursive: true, force: true });
  for (const folder of [places, binDir]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  const inGroup = ({ memoryBytes, processes }: Limits) => ({ memoryBytes, processes, cpus: availableParallelism() });
  const [file] = groups.open(others, inGroup(limits));
  const parent = file === undefined ? undefined : parentOf(file);
  writeWrapper(binDir, { places, parent, fileBytes: limits.fileBytes });
  const used = new Set<string>();
  return {
    /** Parent group for the engine's settings; undefined if this machine has no control groups. */
    parent: parent === undefined ? undefined : `${parent}/${others}`,
    /** Must come first in the engine's PATH. */
    binDir,
    /** Creates the group of the build whose commands carry `scope`. The scope is the project's, whose builds run one after the other. */
    open(scope: string, own: Limits, reach: readonly ForwardedSocket[]) {
      const place = join(places, tagOf(scope).slice(0, 16));
      // Reuses few names: runc leaves an empty folder per name in hierarchies without limits.
      const name = freeName(used);
      used.add(name);
      groups.open(name, inGroup(own));
      writeFileSync(place, name);
      const [noted, hook] = [`${place}.layers`, `${place}.hook`];
      writeFileSync(noted, "");
      writeFileSync(hook, hookFor(reach, limits));
      let layers: readonly string[] = [];
      const readLayers = () => {
        if (existsSync(noted)) layers = [...new Set(readFileSync(noted, "utf8").split("\n").filter(Boolean))];
        return layers;
      };
      return {
        /** Processor time used by the build's commands so far; undefined if it cannot be measured. */
        cpuSeconds: () => groups.usage(name)?.cpuSeconds,
        /** Names of the layers and cache folders that the build's commands have written so far. */
        layers: readLayers,
        async remove() {
          readLayers();
          for (const file of [place, noted, hook]) rmSync(file, { force: true });
          await groups.remove(name);
          used.delete(name);
        },
      };
    },
    async close() {
      for (const name of [...used, others]) await groups.remove(name);
      groups.dismantle();
    },
  };
}

interface Forwarding {
  readonly parts: Pick<SandboxParts, "setpriv" | "socat">;
  readonly nodeBin: string;
}

/**
 * Returns the hook of runc, as JSON, that lets a build's commands connect to these sockets at their own 127.0.0.1; empty for no sockets.
 * `runc.sh` puts it in by sed(1), and socat treats some characters as syntax, so other paths than plain ones are left out.
 */
function hookFor(reach: readonly ForwardedSocket[], { parts, nodeBin }: Forwarding): string {
  const [script, forward] = ["reach.sh", "reach.mjs"].map((name) => join(sandboxFolder, name)) as [string, string];
  const programs = [script, parts.setpriv ?? "-", parts.socat ?? "-", nodeBin, forward];
  const sockets = reach.flatMap(({ port, socket_path }) => [String(port), socket_path]);
  const words = ["sh", join(import.meta.dirname, "build-reach.sh"), ...programs, ...sockets];
  if (reach.length === 0 || !words.every((word) => /^[\w./@+-]+$/.test(word))) return "";
  return JSON.stringify({ path: "/bin/sh", args: words, env: [`PATH=${systemPath}`] });
}

const sandboxFolder = join(import.meta.dirname, "..", "..", "sandbox");
const others = "others";
const tagOf = (text: string): string => createHash("sha256").update(text).digest("hex");

function freeName(used: ReadonlySet<string>): string {
  for (let number = 1; ; number += 1) if (!used.has(`build-${number}`)) return `build-${number}`;
}

/** Returns the path of the groups' parent relative to the mounted hierarchy, as engines expect it. */
function parentOf(file: string): string {
  const [, path = ""] =
    /^\/sys\/fs\/cgroup(?:\/(?:memory|pids|cpu|cpuacct|cpu,cpuacct))?(\/.*)\/[^/]+\/cgroup\.procs$/.exec(file) ?? [];
  return path;
}

function writeWrapper(
  binDir: string,
  { places, parent, fileBytes }: { places: string; parent: string | undefined; fileBytes: number },
): void {
  const wrapper = join(binDir, "runc");
  rmSync(wrapper, { force: true });
  const runc = systemPath
    .split(delimiter)
    .map((folder) => join(folder, "runc"))
    .find((path) => existsSync(path));
  if (runc === undefined || parent === undefined) return;
  const words = [join(import.meta.dirname, "runc.sh"), runc, places, parent, others, String(fileBytes)];
  writeFileSync(wrapper, `#!/bin/sh\nexec /bin/sh ${words.map((word) => `'${word}'`).join(" ")} "$@"\n`);
  chmodSync(wrapper, 0o700);
}
