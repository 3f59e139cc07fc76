import { resolve, sep } from "node:path";
import type { Duplex } from "node:stream";
import type { Log } from "../kit/log.ts";
import type { Quarantine, RefChange } from "../ports/repositories.ts";
import type { GitGate, GitProject, PushDecision, PushRequest } from "./gate.ts";
import type { Push } from "./push.ts";

/** Twice what a thousand refs with long names need. */
const largestQuestionBytes = 1024 * 1024;
const endOfQuestion = "\n.\n";
const refusal: PushDecision = { accepted: false };

/** The hook's two pipes: one for its request and Berth's decision, one for the lines that the pusher reads. */
export interface HookPipes {
  readonly question: Duplex;
  readonly lines: Duplex;
}

interface Deciding {
  readonly gate: GitGate;
  readonly log: Log;
}

/** Waits for the request of git's hook, asks the gate, and streams its lines to the hook. Never rejects; without a request, refuses. */
export async function answerHook(deciding: Deciding, push: Push, { question, lines }: HookPipes): Promise<void> {
  for (const pipe of [question, lines]) pipe.on("error", () => {});
  const text = await readQuestion(question).catch(() => null);
  const asked = text === null ? null : parseQuestion(push, text);
  const say = (line: string) => void (lines.writable && lines.write(`${line}\n`));
  const { accepted } = asked === null ? refusal : await push.decide(decide(deciding, push, { asked, say }));
  lines.end();
  if (asked !== null) question.end(accepted ? "accepted\n" : "refused\n");
  else question.destroy();
}

interface Asked {
  readonly asked: Question;
  readonly say: (line: string) => void;
}

/** Never rejects: if no decision can be made, the push is refused. */
async function decide({ gate, log }: Deciding, push: Push, { asked, say }: Asked): Promise<PushDecision> {
  const reason = asked.wants === "unknown" ? unknownOption : refuseRefs(push.project, asked.refs);
  if (reason !== null) {
    say(` !     ${reason}`);
    return refusal;
  }
  const { project, caller, signal } = push;
  push.request = { project, caller, signal, ...asked, wants: asked.wants === "plan" ? "plan" : "deploy" };
  try {
    const decision = await gate.receive(push.request, say);
    if (!decision.accepted && push.reason !== undefined) say(` !     ${push.reason}`);
    return decision;
  } catch (error) {
    log.error({ err: error, project_id: project.id }, "a push could not be decided");
    say(" !     Berth could not decide about this push; nothing was changed, push again");
    return refusal;
  }
}

const unknownOption =
  "The only push option is `-o plan`, which shows what a push would do. Nothing was changed. To push without options: `git -c push.pushOption= push`.";

interface Question extends Pick<PushRequest, "refs" | "quarantine"> {
  readonly wants: PushRequest["wants"] | "unknown";
}

/** Parses what the hook sent; null if it is invalid. The quarantine must lie inside the push's own repository. */
function parseQuestion(push: Push, text: string): Question | null {
  const [path = "", objects = "", alternates = "", wants = "", ...refs] = text.split("\n");
  const updates = parseRefUpdates(refs.join("\n"));
  if (updates === null || !isWish(wants)) return null;
  if (path === "") return { refs: updates, wants, quarantine: null };
  const isInside = (each: string) => resolve(push.dir, each).startsWith(resolve(push.dir) + sep);
  if (![path, objects, ...alternates.split(":")].every(isInside)) return null;
  const quarantine: Quarantine = {
    GIT_QUARANTINE_PATH: resolve(push.dir, path),
    GIT_OBJECT_DIRECTORY: objects,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: alternates,
  };
  return { refs: updates, wants, quarantine };
}

const isWish = (word: string): word is Question["wants"] => ["deploy", "plan", "unknown"].includes(word);

/** Resolves to null if git exits without a request or the request is too long. */
function readQuestion(pipe: Duplex): Promise<string | null> {
  return new Promise((done) => {
    let text = "";
    pipe.once("close", () => done(null));
    pipe.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (text.endsWith(endOfQuestion)) done(Buffer.from(text.slice(0, -2), "latin1").toString("utf8"));
      else if (text.length > largestQuestionBytes) pipe.destroy();
    });
  });
}

/** More refs than a person pushes; push a mirror of a large repository in parts. */
const mostRefs = 1000;
const noObject = /^0+$/;

/** Parses the input of git's receive hooks: `<old> <new> <name>` per line. Returns null for anything else. */
export function parseRefUpdates(text: string): RefChange[] | null {
  const refs: RefChange[] = [];
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const match = /^([0-9a-f]{40,64}) ([0-9a-f]{40,64}) (refs\/\S+)$/.exec(line);
    if (!match) return null;
    const [, old, to, name] = match as unknown as [string, string, string, string];
    refs.push({ name, old: objectOrNull(old), new: objectOrNull(to) });
  }
  return refs;
}

/** Returns, as a sentence, why a push is refused regardless of its content; null if it may be decided. */
export function refuseRefs(project: GitProject, refs: readonly RefChange[]): string | null {
  if (refs.length === 0) return "The push names no branch.";
  if (refs.length > mostRefs) return `The push has more than ${mostRefs} branches and tags; push them in parts.`;
  for (const ref of refs) {
    if (!/^refs\/(?:heads|tags)\/./.test(ref.name)) return `Only branches and tags can be pushed, not ${ref.name}.`;
    if (ref.new === null && project.deploy_branch !== null && ref.name === `refs/heads/${project.deploy_branch}`)
      return `Branch ${project.deploy_branch} is what deploys; it cannot be deleted.`;
  }
  return null;
}

function objectOrNull(oid: string): string | null {
  return noObject.test(oid) ? null : oid;
}
