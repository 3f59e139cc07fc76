import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { DockerApi } from "../../kit/docker-api.ts";
import { readProgress, type Progress } from "./read-progress.ts";
import { openBuildSession, type SessionAnswers } from "./open-build-session.ts";

export interface BuildCall {
  readonly api: DockerApi;
  readonly socket: string;
  readonly target?: string;
  readonly buildArgs: Readonly<Record<string, string>>;
  /** Entry of `/etc/hosts` that all commands get, as `name:address`. */
  readonly extraHost: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly answers: SessionAnswers;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
}

/** Builds an image with BuildKit through the engine's API and resolves with its id. An abort ends the build's processes within a second. */
export async function runBuild(call: BuildCall): Promise<string> {
  const session = await openBuildSession(call.socket, call.answers);
  try {
    const answer = await call.api.stream({
      method: "POST",
      path: "/build",
      query: {
        ...{ version: "2", remote: "client-session", session: session.id, target: call.target },
        ...{ buildargs: call.buildArgs, labels: call.labels, extrahosts: call.extraHost },
      },
      signal: call.signal,
      timeoutMs: 0,
    });
    return await readAnswer(answer, call);
  } finally {
    session.close();
  }
}

/** BuildKit's own message for a build that ended without an image. */
export class BuildKitFailed extends Error {
  override readonly name = "BuildKitFailed";
}

interface Line {
  readonly id?: string;
  readonly aux?: string | { readonly ID: string };
  readonly error?: string;
}

async function readAnswer(answer: Readable, { onProgress, signal }: BuildCall): Promise<string> {
  let image: string | undefined;
  for await (const text of createInterface({ input: answer, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (text.trim() === "") continue;
    const line = JSON.parse(text) as Line;
    if (line.error !== undefined) throw new BuildKitFailed(line.error);
    if (typeof line.aux === "string" && line.id === "moby.buildkit.trace") onProgress(readProgress(line.aux));
    else if (typeof line.aux === "object") image = line.aux.ID;
  }
  signal.throwIfAborted();
  if (image === undefined) throw new Error("the Docker engine ended a build without an image and without an error");
  return image;
}
