import { WebSocket } from "ws";
import { tunnelProtocol } from "../contract/table.ts";
import { socketStream, type SocketStream } from "../kit/socket-stream.ts";
import { parseJson } from "../kit/parse-json.ts";
import { findPlatform } from "./find-platform.ts";
import type { CliContext } from "./context.ts";
import { CliError } from "./failures.ts";

/** A tunnel through the control plane. */
export interface OpenTunnel extends SocketStream {
  /** Resolves when the platform reports success; otherwise rejects with its reason. */
  readonly ended: Promise<void>;
  /** Resolves to the next message of this type. Rejects if the tunnel ends before it. */
  next(type: string): Promise<Readonly<Record<string, unknown>>>;
  close(): void;
}

const handshakeTimeoutMs = 30_000;

/** Opens the WebSocket of a row with `upgrades`. */
export async function openTunnel(ctx: CliContext, path: string): Promise<OpenTunnel> {
  const { url, token } = await findPlatform(ctx.environment, ctx.options);
  const socket = new WebSocket(`${url.replace(/^http/, "ws").replace(/\/+$/, "")}${path}`, tunnelProtocol, {
    headers: { authorization: `Bearer ${token}` },
    handshakeTimeout: handshakeTimeoutMs,
    perMessageDeflate: false,
  });
  const stream = socketStream(socket as never);
  const ended = new Promise<void>((resolve, reject) => {
    socket.on("close", (code, reason) => (code === 1000 ? resolve() : reject(closedEarly(reason.toString()))));
  });
  // Callers await it when their work is done; until then, a rejection must not count as unhandled.
  ended.catch(() => {});
  const next = (type: string) =>
    new Promise<Readonly<Record<string, unknown>>>((resolve, reject) => {
      stream.onTold((message) => message["type"] === type && resolve(message));
      ended.then(() => reject(closedEarly("")), reject);
    });
  await opened(socket);
  return { ...stream, ended, next, close: () => socket.close(1000) };
}

function opened(socket: WebSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", (error) =>
      reject(
        new CliError("unavailable", "unavailable", { message: `The tunnel could not be opened: ${error.message}` }),
      ),
    );
    socket.once("unexpected-response", (_, response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("end", () => reject(refusalOf(response.statusCode ?? 0, Buffer.concat(chunks).toString())));
    });
  });
}

function refusalOf(status: number, text: string): CliError {
  const said = parseJson<Record<string, unknown>>(text) ?? {};
  const message = textIn(said, "error") ?? `The platform answered ${status} instead of opening a tunnel.`;
  const hint = textIn(said, "hint");
  return new CliError(status === 409 ? "conflict" : "refused", textIn(said, "code") ?? "refused", { message, hint });
}

function textIn(said: Readonly<Record<string, unknown>>, field: string): string | undefined {
  const value = said[field];
  return typeof value === "string" ? value : undefined;
}

function closedEarly(reason: string): CliError {
  const message = reason === "" ? "The connection to the platform broke." : `The platform ended the tunnel: ${reason}`;
  return new CliError("refused", "tunnel_ended", { message });
}
