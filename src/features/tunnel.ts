import type { SocketStream } from "../kit/socket-stream.ts";

/** The bytes of a client and the messages beside them; `signal` aborts when the tunnel must end. */
export interface Tunnel extends SocketStream {
  readonly signal: AbortSignal;
}
