import type { ChildProcess } from "node:child_process";
import { basename, dirname } from "node:path";
import type { Duplex } from "node:stream";
import { signalTo, start, type Command, type PipedStreams } from "../kit/exec.ts";
import type { Log } from "../kit/log.ts";
import type { Repositories } from "../ports/repositories.ts";
import type { Confinement } from "../sandbox/confine.ts";
import { answerHook } from "./answer-hook.ts";
import { serveEnv, type GitPrograms } from "./commands.ts";
import type { GitCaller, GitGate, GitProject } from "./gate.ts";
import type { GitFiles } from "./git-files.ts";
import type { GitLimits } from "./limits.ts";
import type { GitService } from "./paths.ts";
import { Push } from "./push.ts";

/** What both transports share. */
export interface GitHost {
  readonly gate: GitGate;
  readonly repositories: Pick<Repositories, "ensure" | "setHead">;
  readonly files: GitFiles;
  readonly programs: GitPrograms;
  readonly confinement: Confinement;
  readonly limits: GitLimits;
  readonly log: Log;
  readonly running: Set<GitProcess>;
}

/** One call of git by an admitted caller. */
export interface GitCall {
  readonly service: GitService;
  readonly caller: GitCaller;
  readonly project: GitProject;
  readonly protocol: string | null;
  /** The program, given the name of the repository's folder; it runs in the folder above. */
  readonly command: (name: string) => Command;
  readonly env?: (dir: string) => Readonly<Record<string, string>>;
  /** Asked once a second: whether the caller's right still stands. */
  readonly stillAllowed: () => Promise<boolean>;
}

/** git at work for a client. */
export interface GitProcess {
  readonly organizationId: string;
  readonly child: ChildProcess & PipedStreams;
  /**
   * Exit code for the client: after a success once everything that follows a push is done, otherwise as soon as git has ended, because
   * the decision about a push may come much later. Never rejects.
   */
  readonly answered: Promise<number>;
  /** Resolves once git has ended and everything that follows a push is done. Never rejects. */
  readonly ended: Promise<void>;
  /** Records that bytes moved; a process without traffic for too long is ended. */
  touch(): void;
  /** The client has left: a fetch ends at once, and a push that is not live yet is cancelled. */
  clientGone(): void;
  /** Ends the conversation with a push's hook: it tells the pusher that Berth restarts, and git refuses the push. */
  releaseHook(): void;
  kill(): void;
}

const recheckMs = 1000;
const killAfterMs = 5000;
/** git's own exit code for what it dies of; stands for a signal here. */
const diedCode = 128;
// A signal to the control plane's process group (Ctrl-C, a supervisor) must not end git: the hook tells the pusher what happened.
const ownGroup = true;

/** Starts git for a client; null when as many as allowed are running. */
export async function startGit(host: GitHost, call: GitCall): Promise<GitProcess | null> {
  if (isBusy(host, call.caller)) return null;
  const dir = await host.repositories.ensure(call.project.id);
  const push = call.service === "git-receive-pack" ? new Push(call.project, call.caller, dir) : null;
  const child = startConfined(host, call, dir, push === null ? 0 : 2);
  child.stdin.on("error", () => {});
  const pipes = child.stdio.slice(3) as unknown as Duplex[];
  const [question, lines] = pipes;
  if (push !== null && question && lines) void answerHook(host, push, { question, lines });
  const process = watch(host, call, { child, push, pipes });
  host.running.add(process);
  void process.ended.then(() => host.running.delete(process));
  return process;
}

function startConfined({ confinement, files }: GitHost, call: GitCall, dir: string, pipes: number) {
  const env = { ...serveEnv(files, call.protocol), ...call.env?.(dir) };
  // Killed with the control plane while it moves a branch, git would leave a lock that blocks every later push. It ends by itself
  // when its pipes close.
  const shown = { writable: [dir], readable: [files.configFile, files.hooksDir], isDetached: true };
  // git is given the folder's name alone, so that its messages never show where on the machine it lies.
  const command = confinement.confine(call.command(basename(dir)), shown, dirname(dir));
  return start(command, { env, cwd: dirname(dir), ownGroup, pipes, isBackground: true });
}

function isBusy({ running, limits }: GitHost, caller: GitCaller): boolean {
  if (running.size >= limits.processes) return true;
  const own = [...running].filter((process) => process.organizationId === caller.organization_id);
  return own.length >= limits.processesPerOrganization;
}

interface Started {
  readonly child: ChildProcess & PipedStreams;
  readonly push: Push | null;
  readonly pipes: readonly Duplex[];
}

function watch(host: GitHost, call: GitCall, started: Started): GitProcess {
  const { child, push, pipes } = started;
  const isDeciding = () => push !== null && push.decision !== null;
  const kill = () => {
    signalTo(child, "SIGTERM", { ownGroup });
    setTimeout(() => signalTo(child, "SIGKILL", { ownGroup }), killAfterMs).unref();
  };
  let quietSinceMs = Date.now();
  const check = async () => {
    const isIdle = !isDeciding() && Date.now() - quietSinceMs > host.limits.idleMs;
    // A database that is away for a moment takes no right from who was admitted.
    const isAllowed = isIdle || (await call.stillAllowed().catch(() => true));
    if (isAllowed && !isIdle) return;
    // git must hear the decision: killed in the middle of it, it could not tell the pusher.
    if (isDeciding()) push?.abandon("Your right to push here ended: nothing was changed.");
    else kill();
  };
  const timer = setInterval(() => void check(), recheckMs);
  const exited = exitCode(child).finally(() => clearInterval(timer));
  const ended = exited.then(() => (push === null ? undefined : finishPush(host, push)));
  return {
    organizationId: call.caller.organization_id,
    child,
    answered: exited.then((code) => (code === 0 ? ended.then(() => code) : code)),
    ended,
    kill,
    releaseHook: () => pipes.forEach((pipe) => pipe.destroy()),
    touch: () => void (quietSinceMs = Date.now()),
    clientGone: () => {
      // End of input makes git give up a push that has not arrived whole; its output has no reader any more, but git must not block on it.
      child.stdin.destroy();
      child.stdout.resume();
      if (push === null) kill();
      else push.abandon();
    },
  };
}

function exitCode(child: ChildProcess): Promise<number> {
  // What git started and left behind would hold its output open, and the client with it.
  child.once("exit", () => signalTo(child, "SIGKILL", { ownGroup }));
  return new Promise((resolve) => {
    child.on("error", () => resolve(diedCode));
    child.once("close", (code) => resolve(code ?? diedCode));
  });
}

/** Reports an accepted push to the gate, whatever became of it. */
async function finishPush(host: GitHost, push: Push): Promise<void> {
  push.abandon();
  try {
    const decision = push.decision === null ? null : await push.decision;
    if (push.request === null || !decision?.accepted) return;
    if (decision.head !== undefined) await host.repositories.setHead(push.project.id, `refs/heads/${decision.head}`);
    await host.gate.completed(push.request);
  } catch (error) {
    host.log.error({ err: error, project_id: push.project.id }, "an accepted push could not be completed");
  }
}
