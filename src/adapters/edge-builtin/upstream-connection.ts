import { Socket } from "node:net";
import { ResponseReader, type ResponseHead, type ResponseSink } from "./response-reader.ts";

/** Who sends a request over a connection and gets its response. */
export interface ConnectionUser extends ResponseSink {
  /** Usable: at once when the connection was kept alive. */
  connected(connection: UpstreamConnection): void;
  /** Could not be opened: nothing was sent. */
  connectFailed(reason: string): void;
  /** Has room again after `write` answered false. */
  drained(): void;
}

/** What a connection tells the target it belongs to. */
export interface ConnectionOwner {
  readonly host: string;
  readonly port: number;
  freed(connection: UpstreamConnection): void;
  gone(connection: UpstreamConnection): void;
}

/** One TCP connection to a replica, carrying one request at a time. */
export class UpstreamConnection implements ResponseSink {
  readonly socket: Socket;
  /** Whether it has carried a request before: only then can the replica have closed it out of idleness. */
  reused = false;
  idleSinceMs = 0;
  usableUntilMs = 0;
  readonly #owner: ConnectionOwner;
  readonly #reader: ResponseReader = new ResponseReader(this);
  #user: ConnectionUser | undefined;
  #open = false;
  #sentAll = false;
  readonly #ended = () => this.#lost();

  constructor(owner: ConnectionOwner, user: ConnectionUser) {
    this.#owner = owner;
    this.#user = user;
    this.socket = new PatientSocket().setNoDelay(true).setKeepAlive(true, 60_000);
    this.socket.connect({ host: owner.host, port: owner.port });
    this.socket.on("connect", () => this.#opened());
    this.socket.on("data", (chunk: Buffer) => this.#received(chunk));
    this.socket.on("drain", () => this.#user?.drained());
    this.socket.on("end", this.#ended);
    this.socket.on("error", (error) => this.#lost(error));
    this.socket.on("close", () => this.#lost());
  }

  /** Whether any byte of the response has come. */
  get answered(): boolean {
    return this.#reader.started;
  }

  get keepAliveHintMs(): number | undefined {
    return this.#reader.keepAliveHintMs;
  }

  /** Gives an idle connection its next user. */
  reuse(user: ConnectionUser): void {
    this.#user = user;
    this.reused = true;
    user.connected(this);
  }

  /** Sends the request's head and expects its response. */
  send(method: string, head: string, bodyFollows: boolean): void {
    this.#sentAll = !bodyFollows;
    this.#reader.begin(method);
    this.socket.write(head, "latin1");
  }

  /** The whole request body has been written. */
  bodySent(): void {
    this.#sentAll = true;
  }

  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    this.socket.resume();
  }

  /** Cuts the connection; its user hears nothing more. */
  destroy(): void {
    this.#user = undefined;
    this.socket.destroy();
    this.#owner.gone(this);
  }

  /** Hands the bare socket over for a tunnel, with the bytes that came behind the head. */
  detach(): { socket: Socket; rest: Buffer } {
    this.#user = undefined;
    // Not all listeners of "end": one is the socket's own and closes its other half.
    this.socket.off("end", this.#ended);
    for (const event of ["connect", "data", "drain", "error", "close"]) this.socket.removeAllListeners(event);
    this.#owner.gone(this);
    return { socket: this.socket, rest: this.#reader.takeRest() };
  }

  information(): void {
    this.#user?.information();
  }

  head(head: ResponseHead): void {
    this.#user?.head(head);
  }

  body(chunk: Buffer): void {
    this.#user?.body(chunk);
  }

  end(trailers: string[]): void {
    const user = this.#user;
    this.#user = undefined;
    // A replica that answers before it has read the whole body leaves the connection in the middle of a request.
    if (this.#reader.keepAlive && this.#sentAll && !this.socket.destroyed) this.#free();
    else this.destroy();
    user?.end(trailers);
  }

  broken(reason: string): void {
    const user = this.#user;
    this.destroy();
    user?.broken(reason);
  }

  #free(): void {
    this.socket.resume();
    this.#owner.freed(this);
  }

  #opened(): void {
    this.#open = true;
    this.#user?.connected(this);
  }

  #received(chunk: Buffer): void {
    if (this.#user === undefined) this.destroy();
    else this.#reader.push(chunk);
  }

  #lost(error?: Error): void {
    const user = this.#user;
    if (user === undefined) {
      this.destroy();
    } else if (!this.#open) {
      this.destroy();
      user.connectFailed(error?.message ?? "closed");
    } else if (error === undefined && !this.#reader.idle) {
      this.#reader.close();
    } else {
      this.broken(error?.message ?? "closed early");
    }
  }
}

const readAfterWriteErrorMs = 500;

/**
 * A socket that still reads after a write has failed. A replica that refuses a body answers, closes and thereby resets the connection: Node
 * would end the socket on the failed write, with the answer unread in the kernel.
 */
class PatientSocket extends Socket {
  #waiting = false;

  override destroy(error?: Error): this {
    if ((error as NodeJS.ErrnoException | undefined)?.syscall !== "write" || this.#waiting) return super.destroy(error);
    this.#waiting = true;
    setTimeout(() => super.destroy(), readAfterWriteErrorMs).unref();
    return this;
  }

  /** A stream with an error drops what it reads, so that it is handed out here. */
  override push(chunk: Buffer | null): boolean {
    if (!this.#waiting) return super.push(chunk);
    if (chunk === null) super.destroy();
    else this.emit("data", chunk);
    return true;
  }
}
