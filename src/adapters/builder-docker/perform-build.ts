import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { TimeLimit } from "../../building/time-limit.ts";
import { BuildRefused } from "../../detection/failures.ts";
import type { DockerApi } from "../../kit/docker-api.ts";
import { quoted } from "../../kit/quoted.ts";
import { forwardedSockets } from "../../kit/server-address.ts";
import type { BuildRequest } from "../../ports/builder.ts";
import { imageLabels, type ContainerManifest } from "../../ports/image-labels.ts";
import { javaTrustStore } from "../../sandbox/java-trust-store.ts";
import type { BuildEngine } from "./build-engine.ts";
import type { BuildRun } from "./build-run.ts";
import { hostOfScope } from "./cache-scope.ts";
import { evaluateBuild } from "./evaluate-build.ts";
import { secretIds, type Generated } from "./generate-dockerfile.ts";
import { openBuildSession, type SessionAnswers } from "./open-build-session.ts";
import type { Dockerfile } from "./read-dockerfile.ts";
import { readProgress, type Progress } from "./read-progress.ts";
import { loginFor } from "./registry-access.ts";
import { createVertexLog } from "./vertex-log.ts";

interface Performed {
  readonly folder: string;
  readonly text: string;
  readonly target?: string;
  readonly args: Readonly<Record<string, string>>;
  /** Separates the cached results of its commands from those of other builds. */
  readonly scope: string;
  /** Separates its `--mount=type=cache` folders from those of other builds; defaults to `scope`. */
  readonly cacheScope?: string;
  readonly manifest: ContainerManifest | null;
  readonly generated?: Generated;
  /** The project's own Dockerfile as it was read. */
  readonly read?: Dockerfile;
}

/** Runs one build with BuildKit: writes its progress to the build's log, translates its failures, and returns the image's id. */
export async function performBuild(run: BuildRun, engine: BuildEngine, performed: Performed): Promise<string> {
  const { request, log, time } = run;
  const { folder, target, args, scope, manifest, generated, read } = performed;
  const progress = createVertexLog(log, generated?.steps ?? null);
  const group = engine.groups.open(scope, request.limits, forwardedSockets(request.reach));
  run.taken.add(engine.disks.enter({ layers: group.layers, isServed: progress.isServed }));
  const watch = watchBuild(time, request.limits.silenceMs, { ...progress, cpuSeconds: group.cpuSeconds });
  try {
    return await runBuild({
      ...{ api: engine.api, socket: engine.socket },
      ...(target === undefined ? {} : { target }),
      buildArgs: { ...args, BUILDKIT_CACHE_MOUNT_NS: performed.cacheScope ?? scope },
      extraHost: hostOfScope(scope),
      labels: manifest === null ? {} : labelsOf(request, manifest),
      answers: {
        ...{ context: folder, dockerfile: performed.text },
        secrets: secretsOf(run),
        credentials: (host) => loginFor(run.logins, host),
      },
      signal: watch.signal,
      onProgress(found) {
        watch.heard();
        progress.take(found);
      },
    });
  } catch (error) {
    watch.check();
    time.check();
    if (!(error instanceof BuildKitFailed)) throw error;
    const { message } = error;
    throw evaluateBuild({
      message,
      failed: progress.failed(),
      ...{ read, engineVersion: engine.version, logins: run.logins },
      limits: { ...request.limits, fileBytes: run.options.engine.fileBytes },
    });
  } finally {
    watch.stop();
    await group.remove();
  }
}

function labelsOf({ project_id }: BuildRequest, manifest: ContainerManifest): Record<string, string> {
  return { [imageLabels.project]: project_id, [imageLabels.manifest]: JSON.stringify(manifest) };
}

function certificateSecrets({ certificates }: BuildRun["options"]): (readonly [string, Buffer])[] {
  if (certificates === null) return [];
  return [
    [secretIds.certificates, certificates],
    [secretIds.trustStore, javaTrustStore(certificates.toString())],
  ];
}

/** Returns the secrets of a build: each variable by name, all variables as a shell file, and the certificates. */
function secretsOf({ options, request }: BuildRun): ReadonlyMap<string, Buffer> {
  const env = { ...options.packageEnv, ...request.env };
  const lines = Object.entries(env).flatMap(([name, value]) =>
    /^[A-Za-z_]\w*$/.test(name) ? [`export ${name}=${quoted(value)}\n`] : [],
  );
  return new Map([
    ...Object.entries(request.env).map(([name, value]) => [name, Buffer.from(value)] as const),
    [secretIds.env, Buffer.from(lines.join(""))],
    ...certificateSecrets(options),
  ]);
}

const pollEveryMs = 500;
// Processor seconds that count as a sign of life; an engine that only waits uses about none.
const busySeconds = 0.5;

/** Stops a build that prints nothing and computes nothing for `silenceMs`. */
function watchBuild(
  time: Pick<TimeLimit, "signal">,
  silenceMs: number,
  look: { cpuSeconds(): number | undefined; running(): string | undefined },
) {
  const stopper = new AbortController();
  let heardMs = Date.now();
  let usedSeconds = look.cpuSeconds() ?? 0;
  let hung: string | undefined;
  const timer = setInterval(() => {
    const seconds = look.cpuSeconds() ?? 0;
    if (seconds - usedSeconds >= busySeconds) {
      heardMs = Date.now();
      usedSeconds = seconds;
    }
    if (Date.now() - heardMs < silenceMs) return;
    hung ??= look.running() ?? "the build";
    stopper.abort();
  }, pollEveryMs);
  return {
    signal: AbortSignal.any([time.signal, stopper.signal]),
    /** Call it when the build prints something or starts its next step. */
    heard: () => (heardMs = Date.now()),
    /** Throws if the build was stopped for its silence. */
    check() {
      if (hung === undefined || time.signal.aborted) return;
      const summary = `\`${hung}\` hung: it printed and computed nothing for ${Math.round(silenceMs / 1000)} s.`;
      throw new BuildRefused("build_silent", { summary });
    },
    stop: () => clearInterval(timer),
  };
}

interface BuildCall {
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
async function runBuild(call: BuildCall): Promise<string> {
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
class BuildKitFailed extends Error {
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
