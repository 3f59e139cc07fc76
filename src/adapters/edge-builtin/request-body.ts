import type { IncomingMessage } from "node:http";
import type { UpstreamConnection } from "./upstream-connection.ts";

/** Sends a request's body to a replica as it comes, no faster than the replica reads. */
export class RequestBody {
  /** Whether any of it was taken from the client: from then on it cannot be sent again. */
  started = false;
  complete = false;
  readonly #request: IncomingMessage;
  readonly #chunked: boolean;
  readonly #sent: (bytes: number) => void;
  #connection: UpstreamConnection | undefined;

  constructor(request: IncomingMessage, sent: (bytes: number) => void) {
    this.#request = request;
    this.#chunked = request.headers["transfer-encoding"] !== undefined;
    this.#sent = sent;
  }

  /** Starts sending over a connection on which the head is already written. */
  pump(connection: UpstreamConnection): void {
    this.started = true;
    this.#connection = connection;
    this.#request.on("data", this.#take);
    this.#request.on("end", this.#end);
  }

  /** The connection has room again. */
  resume(): void {
    if (this.#connection !== undefined) this.#request.resume();
  }

  /** Sends nothing more. */
  stop(): void {
    this.#connection = undefined;
    this.#request.off("data", this.#take);
    this.#request.off("end", this.#end);
  }

  readonly #take = (chunk: Buffer): void => {
    const socket = this.#connection?.socket;
    if (socket === undefined) return;
    this.#sent(chunk.length);
    if (!this.#write(socket, chunk)) this.#request.pause();
  };

  readonly #end = (): void => {
    this.complete = true;
    if (this.#chunked) this.#connection?.socket.write(`0\r\n${trailers(this.#request.rawTrailers)}\r\n`, "latin1");
    this.#connection?.bodySent();
  };

  #write(socket: UpstreamConnection["socket"], chunk: Buffer): boolean {
    if (!this.#chunked) return socket.write(chunk);
    socket.cork();
    socket.write(`${chunk.length.toString(16)}\r\n`, "latin1");
    socket.write(chunk);
    const room = socket.write("\r\n", "latin1");
    socket.uncork();
    return room;
  }
}

// RFC 9110 §6.5.1: what frames, routes or authenticates a message is not taken from its end.
const notInTrailers =
  /^(?:content-length|transfer-encoding|host|connection|trailer|te|authorization|cookie|expect|forwarded|x[-_]forwarded.*|x[-_]real[-_]ip)$/i;

function trailers(raw: readonly string[]): string {
  let text = "";
  for (let i = 0; i < raw.length; i += 2)
    if (!notInTrailers.test(raw[i] as string)) text += `${raw[i]}: ${raw[i + 1]}\r\n`;
  return text;
}

/** Whether a request says that a body follows its head. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return (headers["content-length"] ?? "0") !== "0" || headers["transfer-encoding"] !== undefined;
}
