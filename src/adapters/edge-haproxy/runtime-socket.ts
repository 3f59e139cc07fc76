import { connect } from "node:net";
import { masterSocket } from "./haproxy-settings.ts";

const limitMs = 5000;
// HAProxy reads a line of commands into one buffer, which limits its length.
const longestLine = 8000;

/** Sends one line of commands to a runtime API; resolves with the whole answer. `signal` ends the wait, by default after 5 s. */
export function callHaproxy(
  socketPath: string,
  line: string,
  signal: AbortSignal = AbortSignal.timeout(limitMs),
): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const isMaster = socketPath.endsWith(masterSocket);
    const socket = connect(socketPath);
    const giveUp = () => socket.destroy(new Error("HAProxy does not answer in time."));
    signal.addEventListener("abort", giveUp, { once: true });
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("error", reject);
    socket.on("close", () => {
      signal.removeEventListener("abort", giveUp);
      resolve(Buffer.concat(chunks).toString());
    });
    // The master keeps the connection open until `quit`. Closing our side instead would drop commands that have not started.
    socket.on("connect", () => socket.write(`${line}\n${isMaster ? "quit\n" : ""}`));
  });
}

/** Sends commands that change something, in order, a few at a time. Rejects with the first answer that does not report success. */
export async function changeHaproxy(socketPath: string, prefix: string, commands: readonly string[]): Promise<void> {
  for (const line of linesOf(commands.map((command) => prefix + command))) {
    const answer = await callHaproxy(socketPath, line);
    const refused = answer.split("\n").find((each) => each.trim() !== "" && !success.test(each));
    if (refused !== undefined) throw new Error(`HAProxy refused a change: ${refused}`);
  }
}

const success =
  /^(?:New server registered|IP changed from|no need to change|port changed|nothing changed|[^:]*'stats socket)/i;

function linesOf(commands: readonly string[]): string[] {
  const lines: string[] = [];
  let line = "";
  for (const command of commands) {
    if (line !== "" && line.length + command.length > longestLine) {
      lines.push(line);
      line = "";
    }
    line += line === "" ? command : `; ${command}`;
  }
  return line === "" ? lines : [...lines, line];
}
