import { chmod, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { resolve, sep } from "node:path";
import type { Log } from "../kit/log.ts";
import type { Quarantine } from "../ports/repositories.ts";
import type { GitGate, PushDecision, PushRequest } from "./gate.ts";
import type { Push, Pushes } from "./pushes.ts";
import { parseRefUpdates, refuseRefs } from "./ref-rules.ts";

/** A thousand refs with long names fit twice over. */
const largestQuestionBytes = 1024 * 1024;
const refusal: PushDecision = { accepted: false };

/** The unix socket on which git's hook asks whether a push is accepted. */
export interface HookServer {
  listen(): Promise<void>;
  close(): Promise<void>;
}

/** Makes the server that puts each push to the gate and streams its lines to the waiting hook. */
export function createHookServer(options: { socketPath: string; pushes: Pushes; gate: GitGate; log: Log }): HookServer {
  const server = createServer((req, res) => {
    answer(options, req, res).catch((error: unknown) => {
      options.log.error({ err: error }, "a push's hook could not be answered");
      res.destroy();
    });
  });
  return {
    listen: () => listen(server, options.socketPath),
    close: async () => {
      server.close();
      server.closeAllConnections();
      await rm(options.socketPath, { force: true });
    },
  };
}

async function listen(server: Server, socketPath: string): Promise<void> {
  await new Promise<void>((done, fail) => server.once("error", fail).listen(socketPath, done));
  await chmod(socketPath, 0o600);
}

interface Deciding {
  readonly pushes: Pushes;
  readonly gate: GitGate;
  readonly log: Log;
}

async function answer(context: Deciding, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const push = context.pushes.find(/^\/pushes\/([\w-]+)$/.exec(req.url ?? "")?.[1] ?? "");
  const question = push?.decision === null ? parseQuestion(push, await readBody(req)) : null;
  if (!push || !question || push.decision !== null) {
    res.writeHead(403).end();
    return;
  }
  res.writeHead(200, { "content-type": "text/plain; charset=utf-8", trailer: "x-decision" });
  res.flushHeaders();
  res.once("close", () => res.writableFinished || push.abandon());
  const say = (line: string) => void (res.writable && res.write(`${line}\n`));
  const { accepted } = await push.decide(decide(context, push, { question, say }));
  res.addTrailers({ "x-decision": accepted ? "accepted" : "refused" });
  res.end();
}

interface Asked {
  readonly question: Question;
  readonly say: (line: string) => void;
}

/** Never rejects: what cannot be decided is refused. */
async function decide({ gate, log }: Deciding, push: Push, { question, say }: Asked): Promise<PushDecision> {
  const reason = refuseRefs(push.project, question.refs);
  if (reason !== null) {
    say(` !     ${reason}`);
    return refusal;
  }
  const { project, caller, signal } = push;
  push.request = { project, caller, signal, ...question };
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

type Question = Pick<PushRequest, "refs" | "quarantine">;

/** What the hook sent, checked: the quarantine must lie inside of the push's own repository. */
function parseQuestion(push: Push, text: string): Question | null {
  const { refs, quarantine } = JSON.parse(text) as { refs: string; quarantine?: Quarantine };
  const updates = parseRefUpdates(refs);
  if (updates === null) return null;
  if (!quarantine) return { refs: updates, quarantine: null };
  const path = resolve(push.dir, quarantine.GIT_QUARANTINE_PATH);
  if (!path.startsWith(resolve(push.dir) + sep)) return null;
  return { refs: updates, quarantine: { ...quarantine, GIT_QUARANTINE_PATH: path } };
}

async function readBody(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > largestQuestionBytes) throw new Error("A push's hook asked too long a question.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
