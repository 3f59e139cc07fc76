import { Duplex } from "node:stream";

/** The part of a `ws` WebSocket that is used here, on either side. */
export interface MessageSocket {
  send(data: Buffer | string, sent?: (error?: Error | null) => void): void;
  close(code?: number, reason?: string): void;
  pause(): void;
  resume(): void;
  on(event: "message", listener: (data: Buffer, isBinary: boolean) => void): unknown;
  on(event: "close", listener: (code: number, reason: Buffer) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
}

/** A byte stream over a socket's binary messages; its text messages carry JSON objects beside the stream. */
export interface SocketStream {
  readonly bytes: Duplex;
  /** Sends a JSON object beside the bytes. */
  tell(message: Readonly<Record<string, unknown>>): void;
  /** Calls back for each JSON object from the other side; the first listener also for the first few that came before it. */
  onTold(listener: (message: Readonly<Record<string, unknown>>) => void): void;
}

/** A message can arrive together with the answer that opens the socket, before anybody could listen. */
const keptMessages = 16;

// Half-closes the stream, which WebSockets have no frame for.
const end = { type: "end" } as const;

/** Creates a bidirectional byte stream with back-pressure over a socket. It ends with the socket. */
export function socketStream(socket: MessageSocket): SocketStream {
  const listeners: ((message: Readonly<Record<string, unknown>>) => void)[] = [];
  const early: Readonly<Record<string, unknown>>[] = [];
  const tell = (message: Readonly<Record<string, unknown>>) => socket.send(JSON.stringify(message), () => {});
  let isEnded = false;
  const bytes = new Duplex({
    read: () => socket.resume(),
    write: (chunk: Buffer, _, done) => socket.send(chunk, done),
    final(done) {
      socket.send(JSON.stringify(end), () => done());
    },
    destroy(error, done) {
      socket.resume();
      done(error);
    },
  });
  bytes.on("error", () => {});
  socket.on("message", (data, isBinary) => {
    if (isBinary) return void (bytes.push(data) || socket.pause());
    const message = parseObject(data);
    if (message["type"] === end.type) {
      isEnded = true;
      bytes.push(null);
    }
    if (listeners.length === 0 && early.length < keptMessages) early.push(message);
    for (const listener of listeners) listener(message);
  });
  socket.on("error", () => {});
  // Data that arrived before the close may still be unread.
  socket.on("close", () =>
    isEnded && !bytes.readableEnded ? bytes.once("end", () => bytes.destroy()) : bytes.destroy(),
  );
  const onTold: SocketStream["onTold"] = (listener) => {
    listeners.push(listener);
    for (const message of early.splice(0)) listener(message);
  };
  return { bytes, tell, onTold };
}

function parseObject(data: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(data.toString("utf8"));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
