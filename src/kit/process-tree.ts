import { basename } from "node:path";
import { processIds, readProcessFile } from "./processes.ts";

export interface TreeProcess {
  readonly pid: number;
  readonly parent: number;
  readonly name: string;
  readonly rssBytes: number;
  readonly cpuSeconds: number;
}

export type ProcessTree = ReturnType<typeof readProcessTree>;

// Node can't call sysconf(_SC_PAGESIZE). 4 KiB holds on x86-64 and on nearly all arm64 kernels.
const pageBytes = 4096;
// sysconf(_SC_CLK_TCK) is 100 on every Linux that Node runs on.
const ticksPerSecond = 100;

export function readProcessTree() {
  const children = new Map<number, TreeProcess[]>();
  for (const pid of processIds()) {
    const found = readProcess(pid);
    if (found) children.set(found.parent, [...(children.get(found.parent) ?? []), found]);
  }
  const childrenOf = (pid: number) => children.get(pid) ?? [];
  const descendantsOf = (pid: number): TreeProcess[] =>
    childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child.pid)]);
  return { childrenOf, descendantsOf };
}

/** Fields of proc(5) after the name: state (3), parent (4), … utime (14), stime (15), … rss in pages (24). */
function readProcess(pid: number): TreeProcess | undefined {
  const text = readProcessFile(pid, "stat");
  const close = text.lastIndexOf(")");
  const fields = text.slice(close + 2).split(" ");
  if (close < 0 || "ZX".includes(fields[0] as string)) return undefined;
  return {
    pid,
    parent: Number(fields[1]),
    name: text.slice(text.indexOf("(") + 1, close),
    rssBytes: Number(fields[21]) * pageBytes,
    cpuSeconds: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond,
  };
}

/** Where to find an application: below its shim. Also whether its sandbox has a pid namespace. */
export interface ShimPlace {
  readonly pid: number;
  readonly hasPidNamespace: boolean;
}

/** Returns the application's own processes below a shim, without the programs of its sandbox. Empty while the sandbox is still being set up. */
export function applicationProcesses(tree: ProcessTree, shim: ShimPlace): readonly TreeProcess[] {
  const main = mainProcesses(tree, shim);
  return main.flatMap((process) => [process, ...tree.descendantsOf(process.pid)]);
}

/**
 * Returns the processes that get SIGTERM: the application's main process, or what it waits for if it is a shell or a package manager. Such
 * a wrapper would die of the signal and take the application down before it could finish; it exits by itself once its child has.
 */
export function terminationTargets(tree: ProcessTree, shim: ShimPlace): readonly TreeProcess[] {
  return mainProcesses(tree, shim).flatMap((process) => behindWrappers(tree, process));
}

/** Returns the process itself, or what it waits for when it is a shell or a package manager. */
export function behindWrappers(tree: ProcessTree, process: TreeProcess): TreeProcess[] {
  const children = tree.childrenOf(process.pid);
  if (children.length === 0 || !isWrapper(process)) return [process];
  return children.flatMap((child) => behindWrappers(tree, child));
}

/** Programs that wait for their child: shells, by their process name, and package managers, by the first word of their file's name. */
export const wrappers = {
  shells: ["sh", "dash", "bash", "ash", "busybox", "timeout", "env"],
  packageManagers: ["npm", "npx", "yarn", "pnpm", "corepack"],
} as const;
const packageManager = new RegExp(String.raw`^(${wrappers.packageManagers.join("|")})\b`);

function isWrapper(process: TreeProcess): boolean {
  if (wrappers.shells.some((name) => name === process.name)) return true;
  const [program = "", script = ""] = readProcessFile(process.pid, "cmdline").split("\0");
  return (
    packageManager.test(basename(program)) || (basename(program) === "node" && packageManager.test(basename(script)))
  );
}

// pasta(1) is another name of passt, which runs as a variant for the processor.
const sandboxPrograms = [
  "bwrap",
  "pasta",
  "pasta.avx2",
  "passt",
  "passt.avx2",
  "setpriv",
  "nsenter",
  "unshare",
  "socat",
];

/** Returns the main process: in a pid namespace the one with innermost pid 2, else the first that is not part of the sandbox. */
function mainProcesses(tree: ProcessTree, shim: ShimPlace): TreeProcess[] {
  const below = tree.descendantsOf(shim.pid);
  if (shim.hasPidNamespace)
    return below.filter((process) => process.name !== "bwrap" && innermostPid(process.pid) === 2);
  return below.filter((process) => isOutermostOfApplication(process, below));
}

function isOutermostOfApplication(process: TreeProcess, below: readonly TreeProcess[]): boolean {
  if (sandboxPrograms.includes(process.name)) return false;
  const parent = below.find((other) => other.pid === process.parent);
  return parent === undefined || sandboxPrograms.includes(parent.name);
}

/** Returns the last number of `NSpid`, which lists one pid per namespace; undefined outside any. */
function innermostPid(pid: number): number | undefined {
  const numbers =
    readProcessFile(pid, "status")
      .match(/^NSpid:\s+(.*)$/m)?.[1]
      ?.split(/\s+/) ?? [];
  return numbers.length > ownDepth() ? Number(numbers.at(-1)) : undefined;
}

const ownDepth = (): number =>
  readProcessFile(globalThis.process.pid, "status")
    .match(/^NSpid:\s+(.*)$/m)?.[1]
    ?.split(/\s+/).length ?? 1;
