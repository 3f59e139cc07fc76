import { connect, type Socket } from "node:net";
import type { EdgeRequest } from "../../ports/edge.ts";
import { requestRing } from "./haproxy-settings.ts";

// The path comes last, so that only it is cut off.
const maxLineBytes = 1400;
const ringBytes = 256 * 1024;
/** Requests of a project that are logged each second; of more, a random part. */
const loggedPerSecond = 20;
// More than HAProxy logs in a second of 200 busy projects.
const maxLinesPerReport = 5000;
const reportEveryMs = 1000;

/** Returns a frontend's log and its line's format. HAProxy encodes what could end a line. The path has no query string. */
export function requestLog(): string[] {
  const took = "%[var(txn.took)]";
  const format = `%[var(txn.route),field(2,/)] %[var(txn.begun)] ${took} %ST %HM %B %[var(txn.weight,1)] %si:%sp %[var(txn.id)] %HPO`;
  return [`log ring@${requestRing} len ${maxLineBytes} format raw local0 info`, `log-format "${format}"`];
}

/**
 * Returns the section of the ring, which the control plane reads at the runtime API. It forgets its oldest lines, so a request never waits
 * for a reader. With a server in the ring, HAProxy 2.6 takes a whole processor while that is away.
 */
export function requestRingSection(): string {
  const lines = ["format raw", `maxlen ${maxLineBytes}`, `size ${ringBytes}`];
  return `ring ${requestRing}\n${lines.map((line) => `  ${line}\n`).join("")}`;
}

/** Returns the rules that decide whether a request is logged, after it was counted. */
export function choosing(): string[] {
  return [
    "http-request set-log-level silent if !{ sc_tracked(0) }",
    `http-request set-var(txn.weight) sc0_http_req_rate,div(${loggedPerSecond}) if { sc0_http_req_rate gt ${2 * loggedPerSecond} }`,
    "http-request set-log-level silent if { var(txn.weight) -m found } !{ rand,mod(txn.weight) eq 0 }",
  ];
}

const line =
  /^(prj_[\w.-]{1,64}) (\d{1,17}) (\d{1,12}|-) (\d{3}) ([A-Za-z]{1,20}|<BADREQ>) (\d{1,15}) (\d{1,7}) (\S{1,100}) (\S{1,128}) (\/\S*|\*)$/;

/** Parses a line of the log; undefined for a request that belongs to no project. */
function readRequest(text: string): EdgeRequest | undefined {
  const found = line.exec(text);
  if (found === null) return undefined;
  const [, project_id = "", begun, took, status, method = "", bytes, weight, target, id, path = ""] = found;
  return {
    project_id,
    at: new Date(Number(begun) / 1000).toISOString(),
    method,
    path,
    status: Number(status),
    ms: took === "-" ? 0 : Number(took) / 1000,
    bytes: Number(bytes),
    target: target === undefined || /^(?:-|\[?::\]?|0\.0\.0\.0)?:|^</.test(target) ? null : target,
    request_id: id === "-" || id === undefined ? null : id,
    weight: Math.max(1, Number(weight)),
  };
}

/** Reads the log of the worker that accepts connections, and reports it once a second. */
export class RequestFollower {
  readonly #socketPath: string;
  readonly #timer: NodeJS.Timeout;
  #waiting: EdgeRequest[] = [];
  #socket: Socket | undefined;
  #isOver = false;

  constructor(socketPath: string, note: (requests: readonly EdgeRequest[]) => void) {
    this.#socketPath = socketPath;
    this.#timer = setInterval(() => {
      if (this.#waiting.length > 0) note(this.#waiting);
      this.#waiting = [];
      if (this.#socket === undefined) this.#connect(" -n");
    }, reportEveryMs).unref();
    this.#connect(" -n");
  }

  /** Goes on with a new worker, from its first line. A connection to the old one would keep that from ending. */
  moveOn(): void {
    this.#socket?.destroy();
    this.#connect("");
  }

  close(): void {
    this.#isOver = true;
    clearInterval(this.#timer);
    this.#socket?.destroy();
  }

  /** HAProxy closes the connection after 30 seconds without a line. */
  #connect(onlyNew: "" | " -n"): void {
    if (this.#isOver) return;
    const socket = connect(this.#socketPath, () => socket.write(`show events ${requestRing} -w${onlyNew}\n`));
    this.#socket = socket.unref();
    let rest = "";
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      if (this.#socket === socket) this.#socket = undefined;
    });
    socket.on("data", (chunk) => {
      const lines = `${rest}${chunk.toString("latin1")}`.split("\n");
      rest = lines.pop() ?? "";
      for (const text of lines) {
        const request = this.#waiting.length < maxLinesPerReport ? readRequest(text.trimEnd()) : undefined;
        if (request !== undefined) this.#waiting.push(request);
      }
    });
  }
}
