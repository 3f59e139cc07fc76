import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { delimiter, join } from "node:path";
import { systemPath } from "../../kit/exec.ts";
import { openCgroups } from "../../sandbox/cgroups.ts";
import type { ForwardedSocket } from "../../kit/server-address.ts";
import type { BuildLimits } from "../../ports/builder.ts";
import type { SandboxParts } from "../../sandbox/sandbox.ts";

type Limits = Pick<BuildLimits, "memoryBytes" | "processes">;

export type BuildGroups = ReturnType<typeof openBuildGroups>;

/**
 * Creates the control groups of builds. BuildKit runs the commands of all builds in one group, without limits per build, through the `runc`
 * of its PATH. Our wrapper of that name moves each command into its build's group, found by the entry of `/etc/hosts` that the build's
 * commands get; commands without one share a group with the limits of one build. It limits the size of files, too: a sparse file costs the
 * command nothing, but packing the layer reads all of it.
 */
export function openBuildGroups(dir: string, limits: Limits & Forwarding & { readonly fileBytes: number }) {
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
