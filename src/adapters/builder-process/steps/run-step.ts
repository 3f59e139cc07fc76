import { availableParallelism } from "node:os";
import { relative } from "node:path";
import { stripVTControlCharacters } from "node:util";
import type { BuildLimits } from "../../../ports/builder.ts";
import type { Sandbox, SandboxBind, SandboxResult } from "../../../sandbox/sandbox.ts";
import type { BuildLog } from "../build-log.ts";
import { BuildRefused, type BuilderFailureCode } from "../failure-codes.ts";
import type { Step, Tool } from "../plan/plan.ts";
import type { Toolchain } from "../tools/toolchain.ts";
import { classify, tellingLine } from "./classify.ts";
import { unreachable } from "./unreachable.ts";
import { home, isBelowTmp, isPlain, type Workspace } from "./workspace.ts";

/** What all steps of one build share. */
export interface StepContext {
  readonly sandbox: Sandbox;
  readonly workspace: Workspace;
  readonly buildId: string;
  readonly tools: readonly Toolchain[];
  readonly packageDirs: readonly string[];
  /** The package manager's compiled code, if there is any. */
  readonly compiledCode: SandboxBind | null;
  /** The project's variables and the platform's settings. May hold secrets. */
  readonly env: Readonly<Record<string, string>>;
  readonly limits: BuildLimits;
  /** When the build's time is over, in milliseconds of `Date.now`. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
  readonly log: BuildLog;
}

const fewProcesses = 64;
const judgedBytes = 256 * 1024;

/** Runs one step in the sandbox, or what takes its place; refuses with the step's classified failure. Aborted: throws the signal's reason. */
export async function runStep(context: StepContext, step: Step): Promise<void> {
  const { log, sandbox } = context;
  log.step(step.title);
  const printed = printing(log, step);
  const spec = sandboxSpec(context, step);
  const watch = watchOver(context, () => sandbox.kill(spec.id));
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
    const end = { result, ended: watch.ended(), text: printed.end() };
    const { instead } = step;
    if (end.ended === null && result.exitCode !== 0 && instead?.fits(end.text)) {
      watch.stop();
      log.detail(instead.remark);
      return await runStep(context, instead.step);
    }
    judge(context, step, end);
  } finally {
    watch.stop();
  }
}

/** Sends a step's output to the log, each stream by its own lines, and keeps the newest of both in their order for judging. */
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
  /** Why the platform ended it, if it did. */
  readonly ended: "timeout" | "silence" | null;
  readonly text: string;
}

function judge(context: StepContext, step: Step, end: End): void {
  context.signal.throwIfAborted();
  if (end.result.exitCode === 0 && end.ended === null) return;
  if (step.quiet) showTail(context.log, end.text);
  throw refusal(context, step, end);
}

function refusal({ limits }: StepContext, step: Step, end: End): BuildRefused {
  const { stage } = step;
  const command = `\`${step.args.join(" ")}\``;
  const seconds = (ms: number) => `${Math.round(ms / 1000)} s`;
  if (end.ended === "timeout")
    return new BuildRefused("build_timeout", {
      stage,
      summary: `The build took longer than ${seconds(limits.timeoutMs)}.`,
    });
  if (end.ended === "silence")
    return new BuildRefused("build_silent", {
      stage,
      summary: `Nothing was printed for ${seconds(limits.silenceMs)}; ${command} was ended.`,
    });
  if (end.result.outOfMemory) {
    const summary = `${command} needed more than ${Math.round(limits.memoryBytes / 1024 / 1024)} MiB of memory.`;
    return new BuildRefused("build_out_of_memory", { stage, summary });
  }
  const code = classify(step, end.text);
  return new BuildRefused(code, { stage, ...describe(code, step, end) });
}

/** Codes that name no cause get the command and its most telling line as their sentence. */
function describe(code: BuilderFailureCode, step: Step, { result, text }: End): { summary?: string; hint?: string } {
  const telling = tellingLine(text, code === "registry_unreachable" ? unreachable : undefined);
  const hint = code === "lock_out_of_sync" ? lockHints[step.tool] : undefined;
  const better = hint === undefined ? {} : { hint };
  if (code !== step.otherwise) {
    if (telling === null || code === "build_out_of_memory") return better;
    return { summary: `${sentences[code] ?? ""}${telling}`, ...better };
  }
  const how = result.exitCode === null ? `was ended by ${result.signal}` : `ended with exit code ${result.exitCode}`;
  return { summary: `\`${step.args.join(" ")}\` ${how}${telling === null ? "." : `: ${telling}`}` };
}

const sentences: Partial<Record<BuilderFailureCode, string>> = {
  lock_out_of_sync: "The lock file does not fit the declared dependencies: ",
  dependency_not_found: "A dependency could not be found: ",
  registry_unreachable: "The package registry could not be reached: ",
  native_build_failed: "A dependency with native code could not be compiled: ",
};

const lockHints: Partial<Record<Tool, string>> = {
  npm: "Run `npm install` on your machine, commit package-lock.json and push again.",
  pnpm: "Run `pnpm install` on your machine, commit pnpm-lock.yaml and push again.",
  yarn: "Run `yarn install` on your machine, commit yarn.lock and push again.",
  go: "Run `go mod tidy` on your machine, commit go.mod and go.sum, and push again.",
};

function showTail(log: BuildLog, text: string): void {
  for (const line of text.trim().split("\n").slice(-30)) log.detail(line);
}

function sandboxSpec(context: StepContext, step: Step) {
  const { workspace, tools } = context;
  return {
    id: buildSandboxId(context.buildId),
    uid: workspace.uid,
    argv: step.args,
    env: { ...stepEnv, ...context.env, ...step.env, ...ownEnv },
    app: { source: workspace.app, access: "write" },
    storageDir: null,
    binds: binds(context),
    path: [`${home}/.venv/bin`, `${home}/node_modules/.bin`, ...tools.map((tool) => `${tool.target}/bin`)],
    cwd: home,
    network: { kind: "egress" },
    limits: {
      memoryBytes: context.limits.memoryBytes,
      processes: Math.max(fewProcesses, context.limits.processes),
      cpus: availableParallelism(),
    },
  } as const;
}

/** The sandbox of all steps of a build; its network stays until it is removed. */
export function buildSandboxId(buildId: string): string {
  return `build-${buildId.toLowerCase().replace(/[^a-z0-9_]/g, "_")}`;
}

/** On disk instead of in memory: what a build writes there must not count against its memory. */
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

/** bubblewrap would follow a link that an earlier step has put in its place, out of the sandbox. */
function isStillThere({ tmp }: Workspace, target: string): boolean {
  return !isBelowTmp(target) || isPlain(tmp, relative("/tmp", target), "folder");
}

const stepEnv = { NODE_ENV: "production", TERM: "dumb", NO_COLOR: "1" };

/** Not for the project to change: where caches are, and that nothing asks questions or phones home. */
const ownEnv = {
  HOME: "/home/app",
  npm_config_cache: "/cache/npm",
  npm_config_update_notifier: "false",
  npm_config_color: "false",
  YARN_CACHE_FOLDER: "/cache/yarn",
  YARN_GLOBAL_FOLDER: "/cache/yarn-modern",
  YARN_NODE_LINKER: "node-modules",
  YARN_ENABLE_TELEMETRY: "0",
  COREPACK_ENABLE_STRICT: "0",
  DO_NOT_TRACK: "1",
  NEXT_TELEMETRY_DISABLED: "1",
  NUXT_TELEMETRY_DISABLED: "1",
  ASTRO_TELEMETRY_DISABLED: "1",
  GATSBY_TELEMETRY_DISABLED: "1",
  NG_CLI_ANALYTICS: "false",
  CHECKPOINT_DISABLE: "1",
  PIP_CACHE_DIR: "/cache/pip",
  PIP_DISABLE_PIP_VERSION_CHECK: "1",
  GOCACHE: "/cache/go-build",
  GOMODCACHE: "/cache/go-mod",
  GOPATH: "/home/app/go",
};

/** npm follows some errors with the whole manual of its command, which pushes the error itself out of sight. */
function withoutUsage(): (line: string) => boolean {
  let isUsage = false;
  return (line) => {
    // Its own log lies where only the build sees it.
    if (/^npm (?:error|ERR!) A complete log of this run/.test(line)) return false;
    if (/^npm (?:error|ERR!) (?:Usage:|Clean install a project)/.test(line)) isUsage = true;
    const keeps = !isUsage && !/^npm (?:error|ERR!)\s*$/.test(line);
    if (/^npm (?:error|ERR!) Run "npm help/.test(line)) isUsage = false;
    return keeps;
  };
}

/** Ends the step when the build's time is over, when it is silent for too long, or when the build is cancelled. */
function watchOver({ limits, deadlineMs, signal }: StepContext, kill: () => void) {
  const stopper = new AbortController();
  let ended: "timeout" | "silence" | null = null;
  const end = (why: typeof ended) => {
    ended ??= why;
    stopper.abort();
    // The sandbox's outermost process need not take what is in it along.
    kill();
  };
  const cancel = () => end(null);
  const silence = setTimeout(end, limits.silenceMs, "silence");
  const timeout = setTimeout(end, Math.max(1, deadlineMs - Date.now()), "timeout");
  signal.addEventListener("abort", cancel, { once: true });
  const stop = () => {
    clearTimeout(silence);
    clearTimeout(timeout);
    signal.removeEventListener("abort", cancel);
  };
  return {
    signal: stopper.signal,
    heard: () => void (stopper.signal.aborted || silence.refresh()),
    ended: () => ended,
    stop,
  };
}
