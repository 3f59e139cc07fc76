import type { ServerChannel, Session } from "ssh2";
import { admit, mayGoOn, missingText } from "./admission.ts";
import { serveCommand } from "./commands.ts";
import { copyOutput } from "./cgi.ts";
import { faultAnswer } from "./fault-answer.ts";
import type { GitAccess } from "./gate.ts";
import { endedEarly, startGit, type GitHost, type GitProcess } from "./git-process.ts";
import { parseSshCommand, safeProtocol, type SshRequest } from "./paths.ts";
import type { SshIdentity } from "./authenticate.ts";

/** Exit code for fatal errors, the same as git uses. */
const failedCode = 128;

/** Serves one session channel: a push, a fetch, or a greeting. No shell, no terminal, no forwarding. */
export function serveSshSession(host: GitHost, identity: SshIdentity, session: Session): void {
  let protocol: string | null = null;
  let isUsed = false;
  session.on("env", (accept, reject, info) => {
    // ssh2 names the fields `key` and `val`; its type definitions are outdated.
    const { key, val } = info as unknown as { key: string; val: string };
    if (key === "GIT_PROTOCOL") protocol = safeProtocol(val);
    (key === "GIT_PROTOCOL" ? accept : reject)?.();
  });
  session.on("shell", (accept, reject) => {
    if (isUsed) return void reject();
    isUsed = true;
    finish(accept(), 0, greeting(identity));
  });
  session.on("exec", (accept, reject, { command }) => {
    if (isUsed) return void reject();
    isUsed = true;
    const channel = accept();
    channel.on("error", () => {});
    serveCommandLine(host, identity, { channel, command, protocol }).catch((error: unknown) => {
      host.log.error({ err: error }, "an SSH session failed");
      finish(channel, failedCode, faultAnswer(error).text);
    });
  });
}

interface Line {
  readonly channel: ServerChannel;
  readonly command: string;
  readonly protocol: string | null;
}

async function serveCommandLine(host: GitHost, identity: SshIdentity, line: Line): Promise<void> {
  // Watched from here on, because the client may leave while git starts.
  const left = new AbortController();
  line.channel.once("close", () => left.abort());
  const request = parseSshCommand(line.command);
  if (request === null) return finish(line.channel, failedCode, unknownCommandText);
  const wanted = { path: request.path, access: accessOf(request) };
  const admission = await currentAdmission(host, identity, wanted);
  if (admission.outcome === "missing") return finish(line.channel, failedCode, missingText);
  if (admission.outcome !== "admitted") return finish(line.channel, failedCode, `${admission.reason}\n`);
  const process = await startGit(host, {
    service: request.service,
    caller: admission.caller,
    project: admission.project,
    protocol: line.protocol,
    command: (name) => serveCommand(host.programs, request.service, name),
    stillAllowed: async () => mayGoOn(await currentAdmission(host, identity, wanted)),
  });
  if (process === null) return finish(line.channel, failedCode, "Berth is busy; try again in a minute.\n");
  await connect(line.channel, process, left.signal);
}

/** A connection may outlive a key, so every session checks again, and then once a second. */
async function currentAdmission(host: GitHost, identity: SshIdentity, wanted: Parameters<typeof admit>[2]) {
  return admit(host.gate, await host.gate.authenticateKey(identity.fingerprint), wanted);
}

async function connect(channel: ServerChannel, process: GitProcess, left: AbortSignal): Promise<void> {
  const { child } = process;
  if (left.aborted) return process.clientGone();
  left.addEventListener("abort", process.clientGone, { once: true });
  channel.on("data", process.touch);
  child.stdout.on("data", process.touch);
  channel.pipe(process.input);
  const copied = copyOutput(child.stdout, channel, process.report);
  child.stderr.on("data", (chunk: Buffer) => void (left.aborted || channel.stderr.write(chunk)));
  const [code] = await Promise.all([process.answered, copied]);
  if (!left.aborted) finish(channel, code, code !== 0 && process.report !== null ? endedEarly : "");
}

function finish(channel: ServerChannel, code: number, text = ""): void {
  if (text !== "") (code === 0 ? channel : channel.stderr).write(code === 0 ? text : `berth: ${text}`);
  channel.exit(code);
  channel.end();
}

function accessOf(request: SshRequest): GitAccess {
  return request.service === "git-receive-pack" ? "write" : "read";
}

const unknownCommandText =
  "only git push and git fetch are served here, for addresses such as ssh://git@host:port/organization/project.git\n";

function greeting({ callers }: SshIdentity): string {
  const organizations = callers.map((caller) => caller.organization_slug).join(", ");
  return `Hi ${callers[0]?.name}! Your key works, for: ${organizations}. Berth takes git pushes here; there is no shell.\n`;
}
