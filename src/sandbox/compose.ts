import { closeSync, existsSync } from "node:fs";
import { join } from "node:path";
import { systemPath, type Command } from "../kit/exec.ts";
import { certificateVariables } from "./certificates.ts";
import { fileSystemArguments, refuseLinkedTargets } from "./file-system.ts";
import { hiddenFile } from "./hidden-file.ts";
import type { Marks } from "./marks.ts";
import type { OpenedNetwork } from "./network.ts";
import type { ReachedService, SandboxBind, SandboxParts, SandboxSpec } from "./spec.ts";

/**
 * How far a sandbox goes on this machine, from the full to the least:
 * `staged`: root brings the folders within reach, becomes the project's user and makes a user namespace as that user;
 * `own_user`: an ordinary user makes a user namespace; `privileged`: root makes the namespaces without a user namespace and becomes the
 * project's user in them; `switched`: no namespaces, but the project's user; `bare`: nothing.
 */
export type Level = "staged" | "own_user" | "privileged" | "switched" | "bare";

export interface Containment {
  readonly level: Level;
  readonly pid: boolean;
  readonly seccomp: boolean;
  readonly disableUserns: boolean;
}

export interface Composition {
  readonly spec: SandboxSpec;
  readonly containment: Containment;
  readonly parts: SandboxParts;
  readonly stateDir: string;
  readonly nodeBin: string;
  readonly hide: readonly string[];
  readonly marks: Marks;
  readonly certificates: string | null;
  readonly resolvConf: string;
  readonly seccompProgram: Buffer | undefined;
  readonly network: OpenedNetwork;
  readonly groupFiles: readonly string[];
  readonly groupBinds: readonly SandboxBind[];
  /** Where no control group limits processes, the kernel's per-user limit does. */
  readonly processLimit: number | null;
}

export interface Composed {
  readonly command: Command;
  readonly fds: readonly number[];
}

const folder = import.meta.dirname;
const certificatesInside = "/opt/berth/ca-certificates.pem";
const defaultMemoryBytes = 64 * 1024 * 1024;

/** Makes the command line that enters the sandbox. Its descriptors carry the environment, so that no argument holds a secret. */
export function compose(plan: Composition): Composed {
  if (isMounted(plan)) refuseLinkedTargets(mounts(plan));
  const fds = new Descriptors(plan.stateDir);
  try {
    const words = [
      ...["/bin/sh", join(folder, "enter.sh"), ...plan.groupFiles, "--"],
      ...plan.network.prefix,
      ...reachWords(plan),
      ...containmentWords(plan, fds),
    ];
    return { command: { file: words[0] as string, args: words.slice(1) }, fds: fds.list };
  } catch (cause) {
    for (const fd of fds.list) closeSync(fd);
    throw cause;
  }
}

/** Descriptors in the order the child gets them: 3, 4, 5 … */
class Descriptors {
  readonly list: number[] = [];
  readonly #fallbackDir: string;
  constructor(fallbackDir: string) {
    this.#fallbackDir = fallbackDir;
  }
  add(bytes: Uint8Array | string): number {
    this.list.push(hiddenFile(bytes, this.#fallbackDir));
    return this.list.length + 2;
  }
  addArguments(args: readonly string[]): number {
    return this.add(`${args.join("\0")}\0`);
  }
}

function reachWords({ spec, network, parts, nodeBin }: Composition): string[] {
  const services = spec.network.kind === "none" ? [] : (spec.network.reach ?? []);
  if (!network.ownLoopback || services.length === 0) return [];
  // socat reads `,` and other marks in an address as its own grammar.
  const plain = services.every((service) => /^[\w./@+-]+$/.test(service.socket_path));
  const programs = [parts.setpriv ?? "-", plain ? (parts.socat ?? "-") : "-", nodeBin, join(folder, "reach.mjs")];
  return ["/bin/sh", join(folder, "reach.sh"), ...programs, ...services.flatMap(serviceWords), "--"];
}

const serviceWords = (service: ReachedService): string[] => [String(service.port), service.socket_path];

function containmentWords(plan: Composition, fds: Descriptors): string[] {
  const { level } = plan.containment;
  if (level === "staged") return stagedWords(plan, fds);
  if (level === "own_user") return [...userNamespaceWords(plan, fds, mounts(plan)), "--", ...limitedArgv(plan)];
  if (level === "privileged") return privilegedWords(plan, fds);
  return bareWords(plan, fds);
}

/**
 * The data folder may lie below a folder that only root may enter, so root binds what is needed to a place in a mount namespace in between.
 * Not by a bubblewrap of its own: that drops its capabilities and then cannot pass its death on to a process of another user.
 */
function stagedWords(plan: Composition, fds: Descriptors): string[] {
  const inner = mounts(plan);
  const place = stagingPlace([...inner.map((bind) => bind.source), bwrap(plan), plan.parts.setpriv as string]);
  const staged = inner.map((bind, index) => ({ ...bind, source: `${place}/${index}` }));
  const stage = [
    "unshare",
    "--mount",
    "--",
    "/bin/sh",
    join(folder, "stage.sh"),
    place,
    ...inner.map((bind) => bind.source),
    "--",
  ];
  return [...stage, ...becomeUser(plan), ...userNamespaceWords(plan, fds, staged), "--", ...limitedArgv(plan)];
}

/** A folder of the root that hides nothing needed when something is mounted on it. */
function stagingPlace(needed: readonly string[]): string {
  const places = ["/mnt", "/media", "/srv", "/opt", "/home", "/var/tmp", "/tmp"];
  const found = places.find((place) => existsSync(place) && !needed.some((path) => path.startsWith(`${place}/`)));
  if (!found) throw new Error(`no folder to stage a sandbox in: ${places.join(", ")}`);
  return found;
}

function userNamespaceWords(plan: Composition, fds: Descriptors, binds: readonly SandboxBind[]): string[] {
  const id = String(plan.spec.uid);
  const args = [
    ...["--unshare-user", "--uid", id, "--gid", id],
    ...(plan.containment.disableUserns ? ["--disable-userns"] : []),
    ...commonArguments(plan, fds, binds),
    "--clearenv",
    ...Object.entries(environment(plan)).flatMap(([name, value]) => ["--setenv", name, value]),
  ];
  return [bwrap(plan), ...plan.marks.option(plan.spec.id), "--args", String(fds.addArguments(args))];
}

/** Without a user namespace setpriv still runs as root in the sandbox: it must not see the application's environment (LD_PRELOAD). */
function privilegedWords(plan: Composition, fds: Descriptors): string[] {
  const args = [...commonArguments(plan, fds, mounts(plan)), "--clearenv", "--setenv", "PATH", systemPath];
  return [
    bwrap(plan),
    ...plan.marks.option(plan.spec.id),
    "--args",
    String(fds.addArguments(args)),
    "--",
    ...becomeUser(plan),
    ...environmentWords(plan, fds),
    ...limitedArgv(plan),
  ];
}

function bareWords(plan: Composition, fds: Descriptors): string[] {
  const diesWithParent = plan.parts.setpriv ? [plan.parts.setpriv, "--pdeathsig", "KILL", "--"] : [];
  const become = plan.containment.level === "switched" ? becomeUser(plan) : diesWithParent;
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
  const { spec, containment } = plan;
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
  const seccomp = containment.seccomp && plan.seccompProgram ? ["--seccomp", String(fds.add(plan.seccompProgram))] : [];
  return [
    ...["--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--hostname", "app"],
    ...(containment.pid ? ["--unshare-pid"] : []),
    ...(plan.network.isolate ? ["--unshare-net"] : []),
    ...["--die-with-parent", "--new-session"],
    ...seccomp,
    ...fileSystemArguments({ binds, hide: plan.hide, data, tmpBytes, homeBytes, ownProc: containment.pid }),
    ...["--chdir", spec.cwd ?? (spec.app ? "/app" : "/")],
  ];
}

function mounts(plan: Composition): SandboxBind[] {
  const { spec } = plan;
  const given = spec.binds.some((bind) => bind.target === "/opt/node" || bind.target.startsWith("/opt/node/"));
  return [
    ...(spec.app ? [{ ...spec.app, target: "/app" }] : []),
    ...(spec.storageDir === null ? [] : [{ source: spec.storageDir, target: "/storage", writable: true }]),
    { source: plan.nodeBin, target: "/opt/berth/node", writable: false },
    ...(given ? [] : [{ source: plan.nodeBin, target: "/opt/node/bin/node", writable: false }]),
    ...(plan.certificates === null ? [] : [{ source: plan.certificates, target: certificatesInside, writable: false }]),
    ...plan.groupBinds,
    ...spec.binds,
  ];
}

function environment(plan: Composition): Record<string, string> {
  const { spec, network } = plan;
  const path = [...(spec.path ?? []), "/opt/node/bin", systemPath].map((entry) => locate(plan, entry)).join(":");
  const { certificates } = plan;
  return {
    PATH: path,
    HOME: isMounted(plan) ? "/home/app" : (spec.storageDir ?? "/tmp"),
    LANG: "C.UTF-8",
    ...(certificates === null ? {} : certificateVariables(isMounted(plan) ? certificatesInside : certificates)),
    ...spec.env,
    ...(spec.storageDir === null ? {} : { STORAGE_DIR: locate(plan, "/storage") }),
    ...(network.serve ? { PORT: String(network.serve.port), HOST: listenAddress(network) } : {}),
    ...(plan.containment.pid ? {} : plan.marks.variable(spec.id)),
  };
}

/** In a namespace of its own every address is the sandbox's; on the host's network all but the loopback are other people's. */
const listenAddress = (network: OpenedNetwork): string => (network.ownLoopback ? "0.0.0.0" : "127.0.0.1");

const isMounted = (plan: Composition): boolean =>
  plan.containment.level !== "switched" && plan.containment.level !== "bare";

/** Where nothing is mounted, the folder of the host that would have been mounted there. */
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

/** Reads the environment from its descriptor in the shell that becomes the program. */
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
