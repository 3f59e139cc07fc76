import { availableParallelism } from "node:os";
import { relative } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { classify } from "../../../detection/classify.ts";
import { BuildRefused } from "../../../detection/failures.ts";
import type { Step } from "../../../detection/plan.ts";
import type { BuildLimits } from "../../../ports/builder.ts";
import { forwardedSockets, type ServerAddress } from "../../../kit/server-address.ts";
import type { Sandbox, SandboxBind, SandboxResult } from "../../../sandbox/sandbox.ts";
import type { BuildLog } from "../../../building/build-log.ts";
import { headersHome, type Toolchain } from "../tools/toolchain.ts";
import type { TimeLimit } from "../../../building/time-limit.ts";
import { watchStep } from "./watch-step.ts";
import { isPlain } from "../../../building/is-plain.ts";
import { stepEnv, toolEnv } from "../../../building/step-env.ts";
import { describeStepFailure } from "../../../building/step-failure.ts";
import { home, isBelowTmp, type Workspace } from "./workspace.ts";

export interface StepContext {
  readonly sandbox: Sandbox;
  readonly workspace: Workspace;
  readonly buildId: string;
  readonly tools: readonly Toolchain[];
  readonly packageDirs: readonly string[];
  /** The package manager's compiled code; null if there is none. */
  readonly compiledCode: SandboxBind | null;
  /** The project's variables and the platform's settings. May contain secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** Servers that commands may reach, such as the project's database. */
  readonly reach: readonly ServerAddress[];
  readonly limits: BuildLimits;
  readonly time: TimeLimit;
  readonly log: BuildLog;
}

const fewProcesses = 64;
const judgedBytes = 256 * 1024;

/** Runs one step in the sandbox, and `instead` if it fails in a way that this can handle. Throws `BuildRefused`, or as `TimeLimit.check` does. */
export async function runStep(context: StepContext, step: Step): Promise<void> {
  if ((await tryStep(context, step)) || step.instead === undefined) return;
  context.log.detail(step.instead.note);
  await runStep(context, step.instead.step);
}

/** Runs one step; returns false if it failed in a way that its `instead` can handle. */
export async function tryStep(context: StepContext, step: Step): Promise<boolean> {
  const { log, sandbox } = context;
  log.step(step.title);
  const printed = printing(log, step);
  const spec = sandboxSpec(context, step);
  const watch = watchStep(context, step, {
    kill: () => sandbox.kill(spec.id),
    cpuSeconds: () => sandbox.usage(spec.id)?.cpuSeconds,
  });
  const hear = (write: (chunk: Buffer) => void) => (chunk: Buffer) => {
    watch.heard();
    write(chunk);
  };
  try {
    const listeners = { onStdout: hear(printed.stdout), onStderr: hear(printed.stderr) };
    const result = await sandbox.run(spec, {
      signal: watch.signal,
      maxOutputBytes: 1024,
      keepNetwork: true,
      ...listeners,
    });
    const end = { result, wasSilent: watch.wasSilent(), text: printed.end() };
    context.time.check(step.stage);
    if (!end.wasSilent && result.exitCode !== 0 && step.instead?.fits(end.text)) return false;
    if (result.exitCode === 0 && !end.wasSilent) return true;
    if (step.quiet) for (const line of end.text.trim().split("\n").slice(-30)) log.detail(line);
    throw refusal(context, step, end);
  } finally {
    watch.stop();
  }
}

/** Writes a step's output to the log, each stream in its own lines, and keeps the newest of both in order for `classify`. */
function printing(log: BuildLog, step: Step) {
  const keeps = step.tool === "npm" ? withoutUsage() : undefined;
  const streams = { stdout: log.output(keeps), stderr: log.output(keeps) };
  let newest: Buffer[] = [];
  let size = 0;
  const writer = (name: keyof typeof streams) => (chunk: Buffer) => {
    newest.push(chunk);
    size += chunk.length;
    if (size > 2 * judgedBytes) {
      newest = [Buffer.concat(newest).subarray(-judgedBytes)];
      size = judgedBytes;
    }
    if (!step.quiet) streams[name].push(chunk);
  };
  const end = () => {
    for (const stream of Object.values(streams)) stream.end();
    return stripVTControlCharacters(Buffer.concat(newest).toString("utf8"));
  };
  return { stdout: writer("stdout"), stderr: writer("stderr"), end };
}

interface End {
  readonly result: SandboxResult;
  /** Whether the platform stopped the step for its silence. */
  readonly wasSilent: boolean;
  readonly text: string;
}

function refusal({ limits }: StepContext, step: Step, end: End): BuildRefused {
  const { stage } = step;
  const command = `\`${step.args.join(" ")}\``;
  if (end.wasSilent) {
    const summary = `${command} hung: it printed and computed nothing for ${Math.round(limits.silenceMs / 1000)} s.`;
    return new BuildRefused("build_silent", { stage, summary });
  }
  const limitMib = mib(limits.memoryBytes);
  if (end.result.outOfMemory) {
    const summary = `${command} reached the build's memory limit of ${limitMib} MiB.`;
    return new BuildRefused("build_out_of_memory", { stage, summary });
  }
  const code = classify(step, end.text);
  if (code === "build_out_of_memory") {
    const heapMib = nodeHeapMib(limits);
    const summary = /heap out of memory/.test(end.text)
      ? `${command} reached the heap limit of Node.js, ${heapMib} MiB (three quarters of the build's ${limitMib} MiB).`
      : `${command} ran out of memory; the build's limit is ${limitMib} MiB.`;
    return new BuildRefused(code, { stage, summary });
  }
  const { exitCode, signal } = end.result;
  const how = exitCode === null ? `was ended by ${signal}` : `ended with exit code ${exitCode}`;
  return new BuildRefused(code, { stage, ...describeStepFailure(code, step, { how, text: end.text }) });
}

function sandboxSpec(context: StepContext, step: Step) {
  const { workspace, tools } = context;
  return {
    id: buildSandboxId(context.buildId),
    uid: workspace.uid,
    argv: step.args,
    env: {
      ...stepEnv,
      ...context.env,
      ...step.env,
      ...ownEnv,
      ...headersEnv(tools),
      NODE_OPTIONS: nodeOptions(context),
    },
    app: { source: workspace.app, access: "write" },
    storageDir: null,
    binds: binds(context),
    path: [`${home}/.venv/bin`, `${home}/node_modules/.bin`, ...tools.map((tool) => `${tool.target}/bin`)],
    cwd: home,
    network: { kind: "egress", reach: forwardedSockets(context.reach) },
    limits: {
      memoryBytes: context.limits.memoryBytes,
      processes: Math.max(fewProcesses, context.limits.processes),
      cpus: availableParallelism(),
    },
  } as const;
}

/** Returns the id of the sandbox for all steps of a build. Its network stays until the sandbox is removed. */
export function buildSandboxId(buildId: string): string {
  return `build-${buildId.toLowerCase().replace(/[^a-z0-9_]/g, "_")}`;
}

const mib = (bytes: number): number => Math.round(bytes / 1024 / 1024);

/** Heap limit for Node.js, whose own default is smaller on large machines, and on small ones larger than the sandbox. */
const nodeHeapMib = ({ memoryBytes }: BuildLimits): number => Math.floor(mib(memoryBytes) * 0.75);

/** The project's own options come last, so they win. */
function nodeOptions({ limits, env }: StepContext): string {
  return `--max-old-space-size=${nodeHeapMib(limits)} ${env["NODE_OPTIONS"] ?? ""}`.trimEnd();
}

/** Mounts /tmp and the home folder from disk instead of memory, so that files there do not count against the build's memory. */
function binds({ workspace, tools, packageDirs, compiledCode }: StepContext): SandboxBind[] {
  return [
    { source: workspace.tmp, target: "/tmp", writable: true },
    ...(compiledCode && isStillThere(workspace, compiledCode.target) ? [compiledCode] : []),
    { source: workspace.home, target: "/home/app", writable: true },
    { source: workspace.cache, target: "/cache", writable: true },
    ...tools.map(({ source, target }) => ({ source, target, writable: false })),
    ...packageDirs
      .filter((folder) => isStillThere(workspace, folder))
      .map((folder) => ({ source: folder, target: folder, writable: false })),
  ];
}

/** Returns whether a mount target below /tmp is still a folder: bubblewrap would follow a link out of the sandbox. */
function isStillThere({ tmp }: Workspace, target: string): boolean {
  return !isBelowTmp(target) || isPlain(tmp, relative("/tmp", target), "folder");
}

/** Like `toolEnv`, for what only builds in a sandbox of processes need. */
const ownEnv = {
  ...toolEnv,
  HOME: "/home/app",
  COREPACK_ENABLE_STRICT: "0",
  DO_NOT_TRACK: "1",
  GATSBY_TELEMETRY_DISABLED: "1",
  NG_CLI_ANALYTICS: "false",
  CHECKPOINT_DISABLE: "1",
  GOPATH: "/home/app/go",
};

/** Lets node-gyp use these headers instead of fetching them from nodejs.org. */
function headersEnv(tools: readonly Toolchain[]): Readonly<Record<string, string>> {
  return tools.some(({ name }) => name === "node-headers") ? { npm_config_nodedir: headersHome } : {};
}

/** Drops the usage text that npm prints after some errors and that pushes the error itself out of sight. */
function withoutUsage(): (line: string) => boolean {
  let isUsage = false;
  return (line) => {
    // The log file that this line names is visible only inside the build.
    if (/^npm (?:error|ERR!) A complete log of this run/.test(line)) return false;
    if (/^npm (?:error|ERR!) (?:Usage:|Clean install a project)/.test(line)) isUsage = true;
    const keeps = !isUsage && !/^npm (?:error|ERR!)\s*$/.test(line);
    if (/^npm (?:error|ERR!) Run "npm help/.test(line)) isUsage = false;
    return keeps;
  };
}
