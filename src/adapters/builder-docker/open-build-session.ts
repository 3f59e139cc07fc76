import { randomUUID } from "node:crypto";
import { request } from "node:http";
import { performServerHandshake, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";
import { dockerApiVersion } from "../../kit/docker-api.ts";
import type { RegistryLogin } from "../../ports/builder.ts";
import { dockerfileName } from "./build-run.ts";
import { readFields, textOf, writeFields } from "./protobuf.ts";
import { entriesBelow, fileEntry, framed, sendFiles } from "./send-files.ts";

export interface SessionAnswers {
  /** Files for `--mount=type=secret,id=…`, by id. */
  readonly secrets: ReadonlyMap<string, Buffer>;
  /** The build's context, and the text of its Dockerfile, which is read under the name `dockerfileName`. */
  readonly context: string;
  readonly dockerfile: string;
  readonly credentials: (host: string) => Pick<RegistryLogin, "username" | "password"> | undefined;
}

/**
 * Opens the connection on which BuildKit calls back during a build: it speaks gRPC to a server on our end of an upgraded connection. It
 * polls the health service every second and drops a session without one, after which secrets could not be read.
 */
export async function openBuildSession(socketPath: string, answers: SessionAnswers) {
  const id = randomUUID();
  const socket = await dial(socketPath, id);
  const session = performServerHandshake(socket);
  session.on("error", () => {});
  session.on("stream", (stream: ServerHttp2Stream, headers) => {
    stream.on("error", () => {});
    if (headers[":path"] === methods.files) sendFiles(stream, filesFor(answers, headers)).catch(() => stream.close());
    else serve(stream, handlers(answers)[String(headers[":path"])]);
  });
  return {
    id,
    close() {
      session.destroy();
      socket.destroy();
    },
  };
}

const methods = {
  credentials: "/moby.filesync.v1.Auth/Credentials",
  secret: "/moby.buildkit.secrets.v1.Secrets/GetSecret",
  files: "/moby.filesync.v1.FileSync/DiffCopy",
  health: "/grpc.health.v1.Health/Check",
} as const;

/** Returns what BuildKit asks for. It applies no `.dockerignore` itself, which Berth has done already, in bounded time. */
function filesFor({ context, dockerfile }: SessionAnswers, headers: IncomingHttpHeaders) {
  if (headers["dir-name"] === "dockerfile") return [fileEntry(dockerfileName, dockerfile)];
  return headers["include-patterns"] === ".dockerignore" ? [] : entriesBelow(Buffer.from(context));
}

type Handler = (message: Buffer) => Buffer | undefined;

function handlers({ secrets, credentials }: SessionAnswers): Readonly<Record<string, Handler>> {
  return {
    // HealthCheckResponse{status: SERVING}
    [methods.health]: () => Buffer.from([0x08, 0x01]),
    [methods.secret]: (message) => {
      const secret = secrets.get(textOf(readFields(message), 1));
      return secret === undefined ? undefined : writeFields({ 1: secret });
    },
    [methods.credentials]: (message) => {
      const found = credentials(textOf(readFields(message), 1));
      return found === undefined ? Buffer.alloc(0) : writeFields({ 1: found.username, 2: found.password });
    },
  };
}

// gRPC status codes.
const [ok, notFound, unimplemented] = ["0", "5", "12"];

/** Serves one unary call: one message in, one out, each after a 5-byte header (not compressed, length), with the status in the trailers. */
function serve(stream: ServerHttp2Stream, handler: Handler | undefined): void {
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => void chunks.push(chunk));
  stream.on("end", () => {
    const answer = handler?.(Buffer.concat(chunks).subarray(5));
    const status = handler === undefined ? unimplemented : answer === undefined ? notFound : ok;
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": status as string }));
    if (answer === undefined) return void stream.end();
    stream.end(framed(answer));
  });
}

function dial(socketPath: string, id: string): Promise<Duplex> {
  const headers = {
    ...{ Connection: "Upgrade", Upgrade: "h2c" },
    ...{ "X-Docker-Expose-Session-Uuid": id, "X-Docker-Expose-Session-Name": "berth" },
    // Builds with the same key would share files of the same size and time, whatever these contain.
    "X-Docker-Expose-Session-Sharedkey": id,
    "X-Docker-Expose-Session-Grpc-Method": Object.values(methods),
  };
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, method: "POST", path: `/${dockerApiVersion}/session`, headers });
    asked.once("upgrade", (_answer, socket: Duplex, head) => {
      socket.on("error", () => {});
      // BuildKit may have sent its first bytes in the same packet.
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    asked.once("response", (answer) => {
      answer.resume();
      reject(new Error(`the Docker engine refused a build session: ${answer.statusCode}`));
    });
    asked.once("error", reject);
    asked.end();
  });
}
