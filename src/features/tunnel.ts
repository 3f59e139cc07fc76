import type { SocketStream } from "../kit/socket-stream.ts";

/** A client's byte stream and the messages beside it; `signal` aborts when the tunnel must end. */
export interface Tunnel extends SocketStream {
  readonly signal: AbortSignal;
}
