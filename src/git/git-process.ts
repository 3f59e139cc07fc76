import type { ChildProcess } from "node:child_process";
import { basename, dirname } from "node:path";
import { Transform, type Duplex, type Writable } from "node:stream";
import { signalTo, start, type Command, type PipedStreams } from "../kit/exec.ts";
import type { Log } from "../kit/log.ts";
import type { Repositories } from "../ports/repositories.ts";
import type { Confinement } from "../sandbox/confine.ts";
import { answerHook } from "./answer-hook.ts";
import { serveEnv, type GitPrograms } from "./commands.ts";
import type { GitCaller, GitGate, GitProject } from "./gate.ts";
import type { GitFiles } from "./git-files.ts";
import type { GitLimits } from "./limits.ts";
import { PacketMap, bandPacket } from "./packets.ts";
import type { GitService } from "./paths.ts";
import { Push } from "./push.ts";

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

export interface GitCall {
  readonly service: GitService;
  readonly caller: GitCaller;
  readonly project: GitProject;
  readonly protocol: string | null;
  /** Returns the command for the repository's folder name; it runs in the parent folder. */
  readonly command: (name: string) => Command;
  readonly env?: (dir: string) => Readonly<Record<string, string>>;
  /** Called once a second: resolves to whether the caller still has the right. */
  readonly stillAllowed: () => Promise<boolean>;
}

export type GitProcess = ReturnType<typeof watch>;

const recheckMs = 1000;
const killAfterMs = 5000;
/** git's own exit code for fatal errors; here also for death by a signal. */
const diedCode = 128;
/** What the pusher reads if git ended before it could report. */
export const endedEarly =
  "git ended on the platform before it could report. Look at what is live (berth status), then push again.\n";
// A signal to the control plane's process group (Ctrl-C, a supervisor) must not kill git: its hook still tells the pusher what happened.
const ownGroup = true;

/** Starts git for a client; resolves to null if the limit of running git processes is reached. */
export async function startGit(host: GitHost, call: GitCall): Promise<GitProcess | null> {
  const dir = await host.repositories.ensure(call.project.id, call.project.deploy_branch !== null);
  // Nothing is awaited from here until the process counts as running: concurrent calls would all pass the check.
  if (isBusy(host, call.caller)) return null;
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
  // Detached: if git died with the control plane while it moves a branch, it would leave a lock that blocks every later push. It exits by
  // itself when its pipes close.
  const shown = { writable: [dir], readable: [files.configFile, files.hooksDir], isDetached: true };
  // git gets only the folder's name, so that its messages never show where the folder is on the machine.
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

function watch(host: GitHost, call: GitCall, started: Started) {
  const { child, push, pipes } = started;
  const isDeciding = () => push !== null && push.decision !== null;
  const kill = () => {
    signalTo(child, "SIGTERM", { ownGroup });
    setTimeout(() => signalTo(child, "SIGKILL", { ownGroup }), killAfterMs).unref();
  };
  let quietSinceMs = Date.now();
  const check = async () => {
    const isIdle = !isDeciding() && Date.now() - quietSinceMs > host.limits.idleMs;
    // A short database outage does not revoke the right of an admitted caller.
    const isAllowed = isIdle || (await call.stillAllowed().catch(() => true));
    if (isAllowed && !isIdle) return;
    // git must receive the decision: killed while it waits, it could not report it to the pusher.
    if (isDeciding()) push?.abandon("Your right to push here ended: nothing was changed.");
    else kill();
  };
  const timer = setInterval(() => void check(), recheckMs);
  const exited = exitCode(child).finally(() => clearInterval(timer));
  const ended = exited.then(() => (push === null ? undefined : finishPush(host, push)));
  return {
    organizationId: call.caller.organization_id,
    child,
    /** Takes what the client sends. */
    input: push === null ? child.stdin : pushInput(push, child),
    /** What becomes of git's answer to a push on its way to the client; null for a fetch. */
    report: push === null ? null : explainReport(push, Math.floor(host.limits.packBytes / 1024 / 1024)),
    /** Exit code for the client: zero once the work after a push is done, any other as soon as git exits. Never rejects. */
    answered: exited.then((code) => (code === 0 ? ended.then(() => code) : code)),
    /** Resolves once git has exited and the work after a push is done. Never rejects. */
    ended,
    kill,
    /** Closes the pipes of a push's hook: the hook tells the pusher that Berth is restarting, and git refuses the push. */
    releaseHook: () => pipes.forEach((pipe) => pipe.destroy()),
    /** Records that data was transferred; a process that is idle for too long is killed. */
    touch: () => void (quietSinceMs = Date.now()),
    /** Handles the client's disconnect: kills a fetch, and cancels a push that is not live yet. */
    clientGone: () => {
      // End of input makes git abandon a push that has not fully arrived. Its output has no reader any more, but git must not block on it.
      child.stdin.destroy();
      child.stdout.resume();
      if (push === null) kill();
      else push.abandon();
    },
  };
}

function pushInput(push: Push, { stdin }: PipedStreams): Writable {
  const commands = dropShallow(push);
  const input = new Transform({ transform: (chunk: Buffer, _, done) => done(null, commands.map(chunk)) });
  input.pipe(stdin);
  return input;
}

function exitCode(child: ChildProcess): Promise<number> {
  // Processes that git started and left behind would keep its output open and the client waiting.
  child.once("exit", () => signalTo(child, "SIGKILL", { ownGroup }));
  return new Promise((resolve) => {
    child.on("error", () => resolve(diedCode));
    child.once("close", (code) => resolve(code ?? diedCode));
  });
}

/** Reports an accepted push to the gate, whether or not git could move its refs. */
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

const flush = "0000";

/**
 * Takes the client's `shallow` lines out of a push's commands. git would refuse every commit at which the client's history ends, even if the
 * project has its parents, and only after the hook. Without these lines git checks, before the hook, that nothing is missing.
 */
function dropShallow(push: Push): PacketMap {
  return new PacketMap((packet) => {
    if (packet.toString("latin1") === flush) return "last";
    if (!packet.toString("latin1", 4, 12).startsWith("shallow ")) return packet;
    push.isShallow = true;
    return Buffer.alloc(0);
  });
}

const mostTextBytes = 4096;

/** Adds a sentence of Berth's to git's report of a push that git itself refused before its hook. */
function explainReport(push: Push, packMib: number): PacketMap {
  let text = "";
  return new PacketMap((packet) => {
    if (packet[4] === 2 && text.length < mostTextBytes) text += packet.toString("utf8", 5);
    if (packet[4] !== 1) return packet;
    // The first packet of the report: git's own messages are complete.
    const lines = push.decision === null ? explain(text, push.isShallow, packMib) : [];
    const before = lines.map((line) => bandPacket(2, ` !     ${line}\n`));
    return lines.length === 0 ? packet : Buffer.concat([...before, packet]);
  });
}

function explain(text: string, isShallow: boolean, packMib: number): readonly string[] {
  if (/exceeds maximum allowed size/.test(text))
    return [
      `The push is larger than ${packMib} MiB, the most that this platform accepts (a quarter of BERTH_TREE_MIB). Nothing was changed.`,
      "Take data and generated files out of the commits. The largest files, with their sizes in bytes, are listed by:",
      "git rev-list --objects HEAD | git cat-file --batch-check='%(objectsize) %(rest)' | sort -n | tail -5",
    ];
  if (!/did not receive expected object|missing|unresolved delta/.test(text)) return [];
  return isShallow
    ? [
        "This clone is shallow: it has not sent the parents of its oldest commit, and the project does not have them. Nothing was changed.",
        "Fetch the whole history, then push again: git fetch --unshallow",
      ]
    : [
        "The push lacks objects that its commits need, as after a graft or in a damaged clone. Nothing was changed.",
        "Look for the gap with `git fsck --full`, and push from a complete clone.",
      ];
}
