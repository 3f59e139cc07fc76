import { randomUUID } from "node:crypto";
import { closeSync, constants, openSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { systemPath } from "../kit/exec.ts";
import type { ForwardedSocket } from "../kit/server-address.ts";
import { certificateVariables, databaseCertificateVariables, type TrustedCertificates } from "./certificates.ts";
import { fileSystemArguments, refuseLinkedTargets } from "./file-system.ts";
import type { OpenedNetwork } from "./network.ts";
import type { ProcessMarkers } from "./process-markers.ts";
import type { SandboxApp, SandboxBind, SandboxParts, SandboxSpec } from "./spec.ts";
import { stageWords, type StageLayer } from "./stage.ts";

/**
 * How strongly this machine isolates a sandbox. `isolated`: namespaces of its own, where root first becomes the project's user. `bare`: the
 * machine offers no namespaces, so only the project's user separates sandboxes, and only if Berth can switch to it.
 */
export interface Containment {
  readonly level: "isolated" | "bare";
  /** Whether Berth runs as root and switches to the project's user. */
  readonly switchesUser: boolean;
  readonly disableUserns: boolean;
  /** Where changes to a private application folder are stored; null: the folder is read-only. */
  readonly layer: "disk" | "memory" | null;
}

export interface Composition {
  readonly spec: SandboxSpec;
  readonly containment: Containment;
  readonly parts: SandboxParts;
  readonly stateDir: string;
  /** Image of the empty file system that holds changes to a private application folder, and its size. */
  readonly layerTemplate: string;
  readonly layerBytes: number;
  readonly nodeBin: string;
  readonly hide: readonly string[];
  readonly markers: ProcessMarkers;
  readonly certificates: TrustedCertificates | null;
  readonly resolvConf: string;
  readonly seccompProgram: Buffer | undefined;
  readonly network: OpenedNetwork;
  readonly groupFiles: readonly string[];
  readonly groupBinds: readonly SandboxBind[];
  /** The kernel's per-user process limit (RLIMIT_NPROC), used where no control group limits processes; null if one does. */
  readonly processLimit: number | null;
}

export type Composed = ReturnType<typeof compose>;

const folder = import.meta.dirname;
const certificatesInside = { pem: "/opt/berth/ca-certificates.pem", java: "/opt/berth/ca-certificates.jks" };
const defaultMemoryBytes = 64 * 1024 * 1024;

/** Builds the command line that enters the sandbox. The environment is passed through a descriptor, so that no argument holds a secret. */
export function compose(plan: Composition) {
  if (isMounted(plan)) refuseLinkedTargets(mounts(plan));
  const fds = new Descriptors(plan.stateDir, plan.spec.controlled ? 4 : 3);
  try {
    const words = [
      ...["/bin/sh", join(folder, "enter.sh"), ...plan.groupFiles, "--"],
      ...plan.network.prefix,
      ...reachWords(plan),
      ...(isMounted(plan) ? isolatedWords(plan, fds) : bareWords(plan, fds)),
    ];
    return { command: { file: words[0] as string, args: words.slice(1) }, fds: fds.list };
  } catch (cause) {
    for (const fd of fds.list) closeSync(fd);
    throw cause;
  }
}

/** Descriptors in the order the child receives them, numbered from `first`. */
class Descriptors {
  readonly list: number[] = [];
  readonly #fallbackDir: string;
  readonly #first: number;
  constructor(fallbackDir: string, first: number) {
    this.#fallbackDir = fallbackDir;
    this.#first = first;
  }
  add(bytes: Uint8Array | string): number {
    this.list.push(anonymousFile(bytes, this.#fallbackDir));
    return this.#first + this.list.length - 1;
  }
  addArguments(args: readonly string[]): number {
    return this.add(`${args.join("\0")}\0`);
  }
}

function reachWords({ spec, network, parts, nodeBin }: Composition): string[] {
  const services = spec.network.kind === "none" ? [] : (spec.network.reach ?? []);
  if (!network.ownLoopback || services.length === 0) return [];
  // socat treats `,` and some other characters in an address as syntax, so use it for plain paths only.
  const plain = services.every((service) => /^[\w./@+-]+$/.test(service.socket_path));
  const programs = [parts.setpriv ?? "-", plain ? (parts.socat ?? "-") : "-", nodeBin, join(folder, "reach.mjs")];
  return ["/bin/sh", join(folder, "reach.sh"), ...programs, ...services.flatMap(serviceWords), "--"];
}

const serviceWords = (service: ForwardedSocket): string[] => [String(service.port), service.socket_path];

/**
 * The data folder may lie below a folder that only root may enter, so root first binds the sources to a staging place in an intermediate
 * mount namespace. A second bubblewrap can't do this: it drops its capabilities and then cannot pass its death on to a process of another
 * user. An ordinary user stages in a user namespace, and only if something other than binds must be mounted.
 */
function isolatedWords(plan: Composition, fds: Descriptors): string[] {
  const inner = mounts(plan);
  const { switchesUser } = plan.containment;
  const layer = layerOf(plan);
  if (!switchesUser && layer === null) return bubblewrapWords(plan, fds, inner);
  const { words, staged } = stageWords({
    layer,
    sources: inner.map((bind) => bind.source),
    owner: switchesUser ? plan.spec.uid : null,
    programs: [bwrap(plan), ...(switchesUser ? [plan.parts.setpriv as string] : [])],
  });
  const binds = inner.map((bind, index) => ({ ...bind, source: staged[index] as string }));
  return [
    ...["unshare", ...(switchesUser ? [] : ["--user", "--map-root-user"]), "--mount", "--propagation", "slave", "--"],
    ...words,
    ...(switchesUser ? becomeUser(plan) : []),
    ...bubblewrapWords(plan, fds, binds),
  ];
}

/** Returns what stores the changes to the application's folder, which is the first mount. */
function layerOf({ spec, containment, layerTemplate, layerBytes }: Composition): StageLayer {
  if (spec.app?.access !== "private" || containment.layer === null) return null;
  if (containment.layer === "disk") return { template: layerTemplate };
  // Memory used by the layer counts against the application's memory limit.
  return { memoryBytes: Math.min(layerBytes, spec.limits?.memoryBytes ?? layerBytes) };
}

function bubblewrapWords(plan: Composition, fds: Descriptors, binds: readonly SandboxBind[]): string[] {
  const id = String(plan.spec.uid);
  const args = [
    ...["--unshare-user", "--uid", id, "--gid", id],
    ...(plan.containment.disableUserns ? ["--disable-userns"] : []),
    ...commonArguments(plan, fds, binds),
    "--clearenv",
    ...Object.entries(environment(plan)).flatMap(([name, value]) => ["--setenv", name, value]),
  ];
  const mark = plan.markers.option(plan.spec.id);
  return [bwrap(plan), ...mark, "--args", String(fds.addArguments(args)), "--", ...limitedArgv(plan)];
}

function bareWords(plan: Composition, fds: Descriptors): string[] {
  const diesWithParent = plan.parts.setpriv ? [plan.parts.setpriv, "--pdeathsig", "KILL", "--"] : [];
  const become = plan.containment.switchesUser ? becomeUser(plan) : diesWithParent;
  const cwd = locate(plan, plan.spec.cwd ?? (plan.spec.app ? "/app" : "/"));
  return [
    ...become,
    ...environmentWords(plan, fds),
    "/bin/sh",
    "-c",
    'cd "$0" && exec "$@"',
    cwd,
    ...limitedArgv(plan),
  ];
}

function commonArguments(plan: Composition, fds: Descriptors, binds: readonly SandboxBind[]): string[] {
  const { spec } = plan;
  const id = spec.uid;
  const data = {
    passwd: fds.add(
      `root:x:0:0:root:/:/bin/false\napp:x:${id}:${id}:app:/home/app:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n`,
    ),
    group: fds.add(`root:x:0:\napp:x:${id}:\nnogroup:x:65534:\n`),
    hosts: fds.add("127.0.0.1 localhost app\n::1 localhost\n"),
    resolv: fds.add(plan.resolvConf),
  };
  const { tmpBytes = defaultMemoryBytes, homeBytes = defaultMemoryBytes } = spec;
  const seccomp = plan.seccompProgram ? ["--seccomp", String(fds.add(plan.seccompProgram))] : [];
  return [
    ...["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--hostname", "app"],
    ...(plan.network.isolate ? ["--unshare-net"] : []),
    ...["--die-with-parent", "--new-session"],
    ...seccomp,
    ...fileSystemArguments({ binds, hide: plan.hide, data, tmpBytes, homeBytes }),
    ...["--chdir", spec.cwd ?? (spec.app ? "/app" : "/")],
  ];
}

function mounts(plan: Composition): SandboxBind[] {
  const { spec } = plan;
  const given = spec.binds.some((bind) => bind.target === "/opt/node" || bind.target.startsWith("/opt/node/"));
  return [
    ...(spec.app ? [appBind(plan, spec.app)] : []),
    ...(spec.storageDir === null
      ? []
      : [{ source: spec.storageDir, target: storageTarget(spec), writable: spec.storageWritable ?? true }]),
    { source: plan.nodeBin, target: "/opt/berth/node", writable: false },
    ...(given ? [] : [{ source: plan.nodeBin, target: "/opt/node/bin/node", writable: false }]),
    ...certificateBinds(plan),
    ...plan.groupBinds,
    ...spec.binds,
  ];
}

const storageTarget = ({ storageTarget: target = "/storage" }: SandboxSpec): string => target;

function appBind({ containment }: Composition, { source, access }: SandboxApp): SandboxBind {
  return {
    source,
    target: "/app",
    writable: access === "write" || (access === "private" && containment.layer !== null),
  };
}

function certificateBinds({ certificates }: Composition): SandboxBind[] {
  if (certificates === null) return [];
  const { pem, java } = certificates;
  return [
    { source: pem, target: certificatesInside.pem, writable: false },
    ...(java === null ? [] : [{ source: java, target: certificatesInside.java, writable: false }]),
  ];
}

function certificatesFor(plan: Composition): TrustedCertificates | null {
  if (plan.certificates === null || !isMounted(plan)) return plan.certificates;
  return { ...certificatesInside, java: plan.certificates.java === null ? null : certificatesInside.java };
}

function environment(plan: Composition): Record<string, string> {
  const { spec, network } = plan;
  const path = [...(spec.path ?? []), "/opt/node/bin", systemPath].map((entry) => locate(plan, entry)).join(":");
  const certificates = certificatesFor(plan);
  return {
    PATH: path,
    HOME: isMounted(plan) ? "/home/app" : (spec.storageDir ?? "/tmp"),
    LANG: "C.UTF-8",
    ...(certificates === null ? {} : certificateVariables(certificates)),
    ...(certificates === null ? {} : databaseCertificateVariables(certificates.pem, spec.env)),
    ...spec.env,
    ...(spec.storageDir === null ? {} : { STORAGE_DIR: locate(plan, storageTarget(spec)) }),
    ...(network.serve ? { PORT: String(network.serve.port), HOST: network.ownLoopback ? "0.0.0.0" : "127.0.0.1" } : {}),
    ...(isMounted(plan) ? {} : plan.markers.variable(spec.id)),
  };
}

const isMounted = (plan: Composition): boolean => plan.containment.level === "isolated";

/** Returns where `path` of the sandbox really is: without mounts, the host folder that would be mounted there. */
function locate(plan: Composition, path: string): string {
  if (isMounted(plan)) return path;
  const bind = mounts(plan).findLast(({ target }) => path === target || path.startsWith(`${target}/`));
  return bind ? bind.source + path.slice(bind.target.length) : path;
}

const bwrap = (plan: Composition): string => plan.parts.bwrap as string;

function becomeUser({ spec, parts }: Composition): string[] {
  const id = String(spec.uid);
  const nothing = ["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"];
  return [
    parts.setpriv as string,
    "--reuid",
    id,
    "--regid",
    id,
    "--clear-groups",
    ...nothing,
    "--pdeathsig",
    "KILL",
    "--",
  ];
}

/** Returns a shell command that reads the environment from its descriptor and then execs the program. */
function environmentWords(plan: Composition, fds: Descriptors): string[] {
  const lines = Object.entries(environment(plan)).map(
    ([name, value]) => `export ${name}='${value.replaceAll("'", "'\\''")}'\n`,
  );
  const fd = fds.add(lines.join(""));
  return ["/bin/sh", "-c", `eval "$(cat <&${fd})"; exec ${fd}<&-; exec "$@"`, "sh"];
}

function limitedArgv({ spec, processLimit }: Composition): string[] {
  if (processLimit === null) return [...spec.argv];
  // dash calls the limit -p, other shells -u.
  return [
    "/bin/sh",
    "-c",
    '{ ulimit -u "$0" || ulimit -p "$0"; } 2>/dev/null; exec "$@"',
    String(processLimit),
    ...spec.argv,
  ];
}

/**
 * Returns a descriptor, at offset 0, of an unnamed file that holds these bytes. No other process can open the file, and the kernel frees it
 * with its last descriptor, which the caller closes. The file is in memory if the machine has /dev/shm.
 */
function anonymousFile(bytes: Uint8Array | string, fallbackDir: string): number {
  const content = typeof bytes === "string" ? Buffer.from(bytes) : bytes;
  const fd = openNameless("/dev/shm") ?? openNameless(fallbackDir) ?? openUnlinked(fallbackDir);
  try {
    // Write by position, so that the descriptor's own offset stays at 0 for the reader.
    for (let done = 0; done < content.length;) done += writeSync(fd, content, done, content.length - done, done);
    return fd;
  } catch (cause) {
    closeSync(fd);
    throw cause;
  }
}

/** open(2): O_TMPFILE includes O_DIRECTORY, whose value differs between processors. */
const nameless = 0o20000000 | constants.O_DIRECTORY;

function openNameless(folder: string): number | undefined {
  try {
    return openSync(folder, constants.O_RDWR | nameless, 0o600);
  } catch {
    return undefined;
  }
}

function openUnlinked(folder: string): number {
  const path = join(folder, `.${randomUUID()}`);
  const fd = openSync(path, "wx+", 0o600);
  unlinkSync(path);
  return fd;
}
