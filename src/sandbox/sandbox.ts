import { createHash } from "node:crypto";
import { closeSync, mkdirSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { run as runCommand, systemPath, type RunOptions } from "../kit/exec.ts";
import { trustedCertificates, type TrustedCertificates } from "./certificates.ts";
import { openCgroups, type Cgroups } from "./cgroups.ts";
import { compose, type Composition, type Containment } from "./compose.ts";
import { openProcessMarkers, type ProcessMarkers } from "./process-markers.ts";
import { openPrivateLayers, type PrivateLayers } from "./private-layers.ts";
import { noNetwork, type NetworkDriver, type OpenedNetwork } from "./network.ts";
import { probeContainment, type ContainmentFindings } from "./probe-containment.ts";
import { probeNetwork, type NetworkFindings } from "./probe-network.ts";
import { readResolvers, type Resolvers } from "./resolvers.ts";
import { seccompProgram } from "./seccomp.ts";
import { describeSandbox } from "./describe-sandbox.ts";
import type { Sandbox, SandboxCommand, SandboxOptions, SandboxResult, SandboxSpec } from "./spec.ts";

/**
 * Creates the sandbox that runs tenants' code: applications, builds and commands. Probes what this machine allows and uses the strongest
 * isolation that works; `describe` lists what is missing. Throws only if the state folder can't be used or no process can be started.
 */
export async function createSandbox(options: SandboxOptions): Promise<Sandbox> {
  mkdirSync(options.stateDir, { recursive: true, mode: 0o700 });
  const context = await prepare(options);
  const containment = await probeContainment(options, (probe, spec) =>
    composeIn({ ...context, containment: probe }, spec, noNetwork),
  );
  for (const id of context.cgroups.ids()) if (id.startsWith(`probe-${process.pid}-`)) await context.cgroups.remove(id);
  const network = await probeNetwork(options, context.resolvers);
  return assemble({ ...context, containment: containment.found }, containment, network);
}

interface Context {
  readonly options: SandboxOptions;
  readonly layers: PrivateLayers;
  readonly layerBytes: number;
  readonly cgroups: Cgroups;
  readonly markers: ProcessMarkers;
  readonly certificates: TrustedCertificates | null;
  readonly resolvers: Resolvers;
  readonly program: Buffer | undefined;
  readonly containment: Containment;
}

const defaultLayerBytes = 1024 ** 3;

async function prepare(options: SandboxOptions): Promise<Omit<Context, "containment">> {
  const tag = createHash("sha256").update(options.stateDir).digest("hex").slice(0, 8);
  const { layerBytes = defaultLayerBytes } = options;
  return {
    options,
    layerBytes,
    layers: await openPrivateLayers(join(options.stateDir, "layers"), layerBytes),
    cgroups: openCgroups(`berth-${tag}`),
    markers: openProcessMarkers(tag),
    certificates: trustedCertificates(options.stateDir, options.caFile, options.databaseCaFile),
    resolvers: readResolvers(),
    program: seccompProgram(),
  };
}

function assemble(context: Context, containment: ContainmentFindings, network: NetworkFindings): Sandbox {
  const { cgroups, layers, markers } = context;
  const { driver } = network;
  const command = (spec: SandboxSpec) => open(context, driver, spec);
  // Without control groups, a sandbox's processes are found by their marker.
  const hasGroups = cgroups.parts.includes("process_limit");
  const kill = (id: string, sparedPid?: number) => (hasGroups ? cgroups.kill(id) : markers.kill(id, sparedPid));
  const end = async (id: string) => {
    await cgroups.remove(id);
    if (!hasGroups) await markers.end(id);
  };
  const remove = async (id: string) => {
    await end(id);
    await Promise.all([driver.close(id), layers.remove(id)]);
  };
  return {
    hostUid: (uid) => hostUid(context, uid),
    describe: () =>
      describeSandbox({ containment, network, groupParts: cgroups.parts, hasFilter: context.program !== undefined }),
    command,
    prepare: async (id) => void (await driver.open(id, { kind: "egress" })),
    run: async (spec, { keepNetwork = false, ...options } = {}): Promise<SandboxResult> => {
      const ready = await command(spec);
      const reaping = reapWhenOver(() => kill(spec.id), options);
      try {
        const result = await runCommand(ready.command, {
          ...options,
          ...ready.options,
          ownGroup: true,
          isBackground: true,
        });
        return { ...result, outOfMemory: cgroups.outOfMemory(spec.id) };
      } finally {
        reaping.end();
        ready.close();
        await (keepNetwork ? end(spec.id) : remove(spec.id));
      }
    },
    usage: (id) => cgroups.usage(id),
    changes: (id, pid) => measureChanges(context, id, pid),
    outOfMemory: (id) => cgroups.outOfMemory(id),
    kill,
    remove,
    sweep: async (family, keep) => {
      const ids = new Set([...cgroups.ids(), ...driver.ids(), ...layers.ids(), ...(hasGroups ? [] : markers.ids())]);
      const left: string[] = [];
      for (const id of ids)
        if (id.startsWith(`${family}-`) && !keep.includes(id)) await remove(id).catch(() => left.push(id));
      return left;
    },
    dismantle: async () => {
      cgroups.dismantle();
      await driver.dismantle();
    },
  };
}

async function measureChanges({ containment, layers, layerBytes }: Context, id: string, pid: number) {
  if (containment.level === "bare") {
    // A plain copy of the folder has no enforced limit, so measure it.
    const bytes = await layers.copyBytes(id);
    return { bytes, isOver: bytes > layerBytes };
  }
  // statfs on an overlay reports the file system that stores its changes.
  const found = containment.layer === "disk" ? await statfs(`/proc/${pid}/root/app`).catch(() => null) : null;
  return { bytes: found === null ? 0 : (found.blocks - found.bfree) * found.bsize, isOver: false };
}

const reapEveryMs = 250;

/** Keeps killing the sandbox's processes once it times out or is aborted: while bubblewrap sets up, they outlive it. */
function reapWhenOver(kill: () => void, options: Pick<RunOptions, "signal" | "timeoutMs">): { end(): void } {
  let reaping: NodeJS.Timeout | undefined;
  const begin = () => (reaping ??= setInterval(kill, reapEveryMs));
  const late = options.timeoutMs === undefined ? undefined : setTimeout(begin, options.timeoutMs);
  options.signal?.addEventListener("abort", begin, { once: true });
  if (options.signal?.aborted) begin();
  return {
    end() {
      clearTimeout(late);
      clearInterval(reaping);
      options.signal?.removeEventListener("abort", begin);
    },
  };
}

async function open(context: Context, driver: NetworkDriver, spec: SandboxSpec): Promise<SandboxCommand> {
  if (!/^[a-z0-9_-]{1,100}$/.test(spec.id)) throw new Error(`not an id of a sandbox: ${spec.id}`);
  const network = spec.network.kind === "none" ? noNetwork : await driver.open(spec.id, spec.network);
  const { command, fds } = composeIn(context, await withOwnCopy(context, spec), network);
  const close = () => fds.splice(0).forEach((fd) => closeSync(fd));
  return {
    command,
    options: { cwd: "/", env: { PATH: systemPath }, fds: [...fds] },
    address: network.serve?.address ?? null,
    close,
  };
}

/** Copies the folder for the sandbox, because nothing can be overlaid on it without a mount namespace. */
async function withOwnCopy(context: Context, spec: SandboxSpec): Promise<SandboxSpec> {
  if (context.containment.level !== "bare" || spec.app?.access !== "private") return spec;
  return { ...spec, app: await context.layers.copy(spec.id, spec.app, hostUid(context, spec.uid)) };
}

function composeIn(context: Context, given: SandboxSpec, network: OpenedNetwork) {
  const { options, cgroups, resolvers, containment } = context;
  const spec = process.geteuid?.() === 0 ? given : { ...given, uid: ownUid() };
  const plan: Composition = {
    ...{ spec, containment, network },
    ...{ parts: options.parts, stateDir: options.stateDir, nodeBin: options.nodeBin, hide: options.hide ?? [] },
    ...{ layerTemplate: context.layers.template, layerBytes: context.layerBytes },
    markers: context.markers,
    certificates: context.certificates,
    resolvConf: network.ownLoopback ? resolvers.isolated : resolvers.shared,
    seccompProgram: context.program,
    groupFiles: cgroups.open(spec.id, spec.limits),
    groupBinds: spec.limits ? cgroups.visible(spec.id) : [],
    processLimit:
      spec.limits && containment.level !== "bare" && !cgroups.parts.includes("process_limit")
        ? spec.limits.processes
        : null,
  };
  const { command, fds } = compose(plan);
  return { command, fds: [...fds] };
}

const ownUid = (): number => process.geteuid?.() ?? 0;
const hostUid = ({ containment }: Context, uid: number): number => (containment.switchesUser ? uid : ownUid());

export type * from "./spec.ts";
